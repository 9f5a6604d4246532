"""Public packs of plain tools, where TREADLE_PACKS names a folder that holds them; they are in no repository.

The folder has, under the names that they have in public, ComfyMath, Derfuu_ComfyUI_ModdedNodes,
ComfyUI-basic_data_handling, execution-inversion-demo-comfyui, ComfyUI-Logic, comfyui-tooling-nodes and
ComfyUI-Custom-Scripts; the extra `packs` is installed.
"""

from __future__ import annotations

import base64
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.cpu.server.process import Server, finished

PACKS = os.environ.get("TREADLE_PACKS")
pytestmark = [
    pytest.mark.skipif(PACKS is None, reason="TREADLE_PACKS names no folder of packs"),
    pytest.mark.timeout(180),
]

NUM_NODES = {
    "ComfyMath": 53,
    "Derfuu_ComfyUI_ModdedNodes": 31,
    "ComfyUI-basic_data_handling": 301,
    "execution-inversion-demo-comfyui": 29,
    "ComfyUI-Logic": 7,
    "comfyui-tooling-nodes": 30,
    "ComfyUI-Custom-Scripts": 13,
}
DATA = "Basic data handling: "
Box = tuple[str, dict[str, Any]]

MATHS: list[tuple[Box, list[Any]]] = [
    (("CM_IntBinaryOperation", {"op": "Pow", "a": 3, "b": 4}), [81]),
    (("CM_FloatUnaryOperation", {"op": "Sqrt", "a": 2.25}), [1.5]),
    (("CM_IntUnaryCondition", {"op": "IsEven", "a": 7}), [False]),
    (("CM_ComposeVec2", {"x": 3.0, "y": -1.0}), [[3.0, -1.0]]),
    (("DF_Sum", {"Value_A": 1.25, "Value_B": 2.5}), [3.75]),
    (("DF_Square_root", {"Value": 9.0}), [3.0, -3.0]),
    (("DF_Ceil", {"Value": 2.2}), [3]),
    (("IntMathOperation", {"a": 17, "b": 5, "operation": "modulo"}), [2]),
    ((DATA + "MathFormula", {"formula": "a * 2 + 1", "a": ["number", 0]}), [15.0]),
    ((DATA + "MathMax", {"value1": 4, "value2": 9}), [9.0]),
    (("MathExpression|pysssss", {"expression": "round(a / 2, 1) + 1", "a": ["number", 0]}), [4, 4.5]),
]
TEXT: list[tuple[Box, list[Any]]] = [
    (("DF_String_Concatenate", {"Prepend": "warp", "Append": "weft", "Delimiter": "-"}), ["warp-weft"]),
    (
        (
            "DF_String_Replace",
            {"Text": "a1b22", "Pattern": r"\d+", "Replace_With": "#", "Mode": "RegEx"},
        ),
        ["a#b#"],
    ),
    ((DATA + "StringReplace", {"string": "loom, loom", "old": "oo", "new": "0", "count": 1}), ["l0m, loom"]),
    ((DATA + "RegexFindallList", {"string": "a1b22", "pattern": r"\d+"}), [["1", "22"]]),
    ((DATA + "StringTitle", {"string": "the loom"}), ["The Loom"]),
    ((DATA + "StringLength", {"string": "αβγ"}), [3]),
    (
        ("StringFunction|pysssss", {"action": "append", "tidy_tags": "yes", "text_a": "a,", "text_b": "b"}),
        ["a, b"],
    ),
]
LOGIC: list[tuple[Box, list[Any]]] = [
    (("Compare-🔬", {"a": 3, "b": 4, "comparison": "a < b"}), [True]),
    (("If ANY return A else B-🔬", {"ANY": 0, "IF_TRUE": "yes", "IF_FALSE": "no"}), ["no"]),
    ((DATA + "Boolean Xor", {"input1": True, "input2": False}), [True]),
    (
        (
            DATA + "StringComparison",
            {"string1": "warp", "string2": "weft", "operator": "<", "case_sensitive": True},
        ),
        [True],
    ),
    ((DATA + "IfElse", {"condition": False, "if_true": ["number", 0], "if_false": ["word", 0]}), ["weft"]),
    (("InversionDemoLazySwitch", {"switch": True, "on_false": ["word", 0], "on_true": ["number", 0]}), [7]),
    (("IntConditions", {"a": 2, "b": 2, "operation": ">="}), [True]),
    (("BoolOperationNode", {"a": True, "b": True, "op": "a XOR b"}), [False]),
    (("CM_FloatBinaryCondition", {"op": "Gt", "a": 1.0, "b": 2.0}), [False]),
]
RED = (255, 0, 0)
IMAGES: list[tuple[Box, tuple[int, int]]] = [
    (
        (
            "DF_Image_scale_by_ratio",
            {"image": ["red", 0], "upscale_by": 2.0, "upscale_method": "bilinear", "crop": "disabled"},
        ),
        (64, 48),
    ),
    (
        (
            "DF_Image_scale_to_side",
            {
                "image": ["red", 0],
                "side_length": 16,
                "side": "Longest",
                "upscale_method": "area",
                "crop": "disabled",
            },
        ),
        (16, 12),
    ),
    (
        (
            "ConstrainImage|pysssss",
            {
                "images": ["red", 0],
                "max_width": 16,
                "max_height": 16,
                "min_width": 0,
                "min_height": 0,
                "crop_if_required": "no",
            },
        ),
        (16, 12),
    ),
    (("ETN_ApplyMaskToImage", {"image": ["red", 0], "mask": ["mask", 0]}), (32, 24)),
    (("ETN_LoadImageBase64", {"image": "RED AS TEXT"}), (32, 24)),
    (
        ("InversionDemoLazyMixImages", {"image1": ["red", 0], "image2": ["red", 0], "mask": ["mask", 0]}),
        (32, 24),
    ),
]
MAKERS = {
    "number": {"class_type": "PrimitiveInt", "inputs": {"value": 7}},
    "word": {"class_type": "PrimitiveString", "inputs": {"value": "weft"}},
    "mask": {"class_type": "SolidMask", "inputs": {"value": 0.5, "width": 32, "height": 24}},
    "red": {
        "class_type": "EmptyImage",
        "inputs": {"width": 32, "height": 24, "batch_size": 1, "color": 0xFF0000},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    base = tmp_path_factory.mktemp("packs")
    (base / "custom_nodes").mkdir()
    for name in NUM_NODES:
        (base / "custom_nodes" / name).symlink_to(Path(str(PACKS)) / name)
    server = Server(base)
    yield server
    server.stop()


def outputs_of(server: Server, prompt: Mapping[str, Any]) -> dict[str, Any]:
    row = finished(server, server.post("/prompt", {"prompt": prompt})["prompt_id"])
    assert row["status"]["status_str"] == "success", row["status"]["messages"][-1]
    return dict(row["outputs"])


def prompt_with(box: Box, sinks: Mapping[str, Any]) -> dict[str, Any]:
    class_type, inputs = box
    return {**MAKERS, "node": {"class_type": class_type, "inputs": inputs}, **sinks}


def test_every_node_of_the_packs_is_there(server: Server) -> None:
    modules = [entry["python_module"] for entry in json.loads(server.get("/object_info")).values()]
    found = {name: modules.count(f"custom_nodes.{name}") for name in NUM_NODES}
    assert found == NUM_NODES, server.said()


@pytest.mark.parametrize(("box", "expected"), MATHS + TEXT + LOGIC, ids=lambda value: str(value)[:60])
def test_a_node_computes_what_it_says(server: Server, box: Box, expected: list[Any]) -> None:
    sinks = {
        f"sink{i}": {"class_type": "PreviewAny", "inputs": {"source": ["node", i]}}
        for i in range(len(expected))
    }
    shown = outputs_of(server, prompt_with(box, sinks))
    texts = [shown[f"sink{i}"]["text"][0] for i in range(len(expected))]
    assert [value if isinstance(value, str) else json.dumps(value) for value in expected] == [
        text if isinstance(value, str) else json.dumps(json.loads(text.replace("'", '"').lower()))
        for text, value in zip(texts, expected)
    ]


@pytest.mark.parametrize(("box", "size"), IMAGES, ids=lambda value: str(value)[:40])
def test_a_node_makes_a_red_picture_of_its_size(server: Server, box: Box, size: tuple[int, int]) -> None:
    if box[1].get("image") == "RED AS TEXT":
        buffer = io.BytesIO()
        Image.new("RGB", size, RED).save(buffer, "PNG")
        box = (box[0], {"image": base64.b64encode(buffer.getvalue()).decode()})
    sink = {"class_type": "SaveImage", "inputs": {"images": ["node", 0], "filename_prefix": "red"}}
    (saved,) = outputs_of(server, prompt_with(box, {"sink": sink}))["sink"]["images"]
    picture = Image.open(io.BytesIO(server.get(f"/view?filename={saved['filename']}&type=output")))
    assert picture.size == size
    assert picture.convert("RGB").getpixel((size[0] // 2, size[1] // 2)) == RED


def test_a_loop_of_expansions_counts(server: Server) -> None:
    loop = {
        "open": {"class_type": "ForLoopOpen", "inputs": {"remaining": 5, "initial_value1": ["number", 0]}},
        "node": {"class_type": "IntMathOperation", "inputs": {"a": ["open", 2], "b": 3, "operation": "add"}},
        "close": {
            "class_type": "ForLoopClose",
            "inputs": {"flow_control": ["open", 0], "initial_value1": ["node", 0]},
        },
        "sink": {"class_type": "PreviewAny", "inputs": {"source": ["close", 0]}},
    }
    assert outputs_of(server, {**MAKERS, **loop})["sink"]["text"] == [str(7 + 5 * 3)]


def test_a_tile_is_cut_and_put_back(server: Server) -> None:
    tiles = {
        "large": {
            "class_type": "EmptyImage",
            "inputs": {"width": 1024, "height": 512, "batch_size": 1, "color": 0xFF0000},
        },
        "layout": {
            "class_type": "ETN_TileLayout",
            "inputs": {
                "image": ["large", 0],
                "min_tile_size": 512,
                "padding": 32,
                "blending": 8,
                "multiple": 8,
            },
        },
        "tile": {
            "class_type": "ETN_ExtractImageTile",
            "inputs": {"image": ["large", 0], "layout": ["layout", 0], "index": 0},
        },
        "node": {
            "class_type": "ETN_MergeImageTile",
            "inputs": {"image": ["large", 0], "layout": ["layout", 0], "index": 0, "tile": ["tile", 0]},
        },
        "size": {"class_type": "DF_Get_image_size", "inputs": {"image": ["node", 0]}},
        "sink": {"class_type": "PreviewAny", "inputs": {"source": ["size", 0]}},
    }
    assert outputs_of(server, tiles)["sink"]["text"] == ["1024"]
