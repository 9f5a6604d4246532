"""Sizes and tiles are those of transformers' own functions, which lie in modules that ask for torchvision."""

from __future__ import annotations

import ast
import math
import random
from collections import defaultdict
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers.image_utils import SizeDict

from runtime.llm.processors import tiles
from runtime.llm.processors.crops import Phi4MultimodalImageProcessor
from runtime.llm.processors.patches import Kimi_K25ImageProcessor
from runtime.llm.processors.tiles import Llama4ImageProcessor


def functions_of(module: str) -> dict[str, Any]:
    """A module's functions and methods without its imports and classes."""
    found = find_spec("transformers")
    assert found is not None
    assert found.origin is not None
    source = (Path(found.origin).parent / "models" / module).read_text()
    tree = ast.parse(source)
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    parts = [*tree.body, *(part for each in classes for part in each.body)]
    tree.body = [each for each in parts if isinstance(each, ast.FunctionDef) and not _is_dressed(each)]
    names: dict[str, Any] = {
        "math": math,
        "torch": torch,
        "defaultdict": defaultdict,
        "lru_cache": lru_cache,
        "SizeDict": SizeDict,
        "Unpack": dict,
        "Llama4ImageProcessorKwargs": Any,
        "Kimi_K25ImageProcessorKwargs": Any,
        "Phi4MultimodalImageProcessorKwargs": Any,
        "TensorType": Any,
        "BatchFeature": Any,
        "ImageInput": Any,
        "PILImageResampling": Any,
        "tvF": SimpleNamespace(
            resize=lambda image, size: image.new_zeros(3, *size),
            pad=lambda image, at, fill: functional.pad(image, (at[0], at[2], at[1], at[3])),
        ),
    }
    exec(compile(tree, module, "exec"), names)
    return names


def _is_dressed(function: ast.FunctionDef) -> bool:
    """By what is not imported here."""
    names = [ast.unparse(each) for each in function.decorator_list]
    return any(not name.startswith("lru_cache") for name in names)


def sizes() -> list[tuple[int, int]]:
    choose = random.Random(4)
    return [(choose.randint(1, 2000), choose.randint(1, 2000)) for _ in range(200)]


@pytest.mark.parametrize("most", [4, 16])
@pytest.mark.parametrize("enlarges", [False, True])
def test_llama4_chooses_tiles_and_sizes_as_the_original(most: int, enlarges: bool) -> None:
    original = functions_of("llama4/image_processing_llama4.py")
    square = SizeDict(height=336, width=336)
    possible = torch.tensor(original["find_supported_resolutions"](most, square))
    processor = Llama4ImageProcessor({"height": 336}, most, enlarges)
    for size in sizes():
        canvas = tuple(original["get_best_fit"](size, possible, enlarges).tolist())
        rows, columns = tiles.grid(size, 336, most, enlarges)
        assert (rows * 336, columns * 336) == canvas, size
        limit = canvas
        if not enlarges:
            limit = tuple(min(max(own, 336), whole) for own, whole in zip(size, canvas, strict=True))
        height, width = original["get_max_res_without_distortion"](size, limit)
        assert processor._fitting(size, canvas) == (max(height, 1), max(width, 1)), size


def test_llama4_cuts_a_picture_row_by_row_and_adds_the_whole() -> None:
    pixels = np.zeros((32, 32, 3), np.uint8)
    pixels[:16, 16:], pixels[16:, :16], pixels[16:, 16:] = 85, 170, 255
    made = Llama4ImageProcessor({"height": 16}, 4)([pixels])
    assert made["aspect_ratios"].tolist() == [[2, 2]]
    means = made["pixel_values"].mean((1, 2, 3))
    assert means[:4].tolist() == pytest.approx([-1, -1 / 3, 1 / 3, 1], abs=0.01)
    assert means[4] == pytest.approx(0, abs=0.05)


def test_kimi_shrinks_as_the_original() -> None:
    resize = functions_of("kimi_k25/image_processing_kimi_k25.py")["navit_resize"]
    processor = Kimi_K25ImageProcessor({"max_height": 40}, 900)
    for height, width in sizes():
        fitted, padded = resize(height, width, 14, 2, 900, 40)
        assert processor.fitting(height, width) == fitted
        assert tuple(-(-each // 28) * 28 for each in fitted) == padded


def test_kimi_cuts_patches_row_by_row() -> None:
    pixels = np.zeros((28, 56, 3), np.uint8)
    pixels[:14, 14:28] = 255
    made = Kimi_K25ImageProcessor()([pixels])
    assert made["image_grid_thw"].tolist() == [[1, 2, 4]]
    assert made["pixel_values"].mean((1, 2, 3)).tolist() == [-1, 1, -1, -1, -1, -1, -1, -1]


def test_phi4_chooses_crops_and_says_what_shows_as_the_original() -> None:
    original = functions_of("phi4_multimodal/image_processing_phi4_multimodal.py")
    itself = SimpleNamespace(
        find_closest_aspect_ratio=lambda *given: original["find_closest_aspect_ratio"](None, *given)
    )
    processor = Phi4MultimodalImageProcessor({"height": 64, "width": 64}, patch_size=8, dynamic_hd=6)
    choose = random.Random(5)
    for _ in range(60):
        height, width = choose.randint(40, 400), choose.randint(40, 400)
        image = torch.zeros(3, height, width, dtype=torch.uint8)
        padded, shows = original["dynamic_preprocess"](itself, image, 64, 8, 8, max_num=6)
        made = processor([image.permute(1, 2, 0).numpy()])
        rows, columns = padded.shape[1] // 64, padded.shape[2] // 64
        assert made["image_sizes"].tolist() == [[rows * 64, columns * 64]]
        masks = made["image_attention_mask"][0, 1:].unflatten(0, (rows, columns)).transpose(1, 2)
        assert torch.equal(masks.flatten(0, 1).flatten(1), shows), (height, width)
        halved = shows[::2, ::2]
        assert made["num_img_tokens"] == [16 + 1 + int(halved.sum()) + int(halved[:, 0].sum()) + 4]
