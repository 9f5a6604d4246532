"""`main.py convert` in this process: every form of file, and what it says of those it cannot read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from app.cli.convert import main
from tests.pure.workflow.drawn import GOLDEN, graph, node

WORKFLOW = graph([node(1, "T_Src", values=[7]), node(2, "T_Sink", "x:*")], (1, 0, 2, "x"))
PROMPT = {
    "1": {"class_type": "T_Src", "inputs": {"n": 7}},
    "2": {"class_type": "T_Sink", "inputs": {"x": ["1", 0]}},
}


@pytest.fixture
def convert(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(path: Path | str, *flags: str) -> tuple[int, str, str]:
        code = main([str(path), "--object-info", str(GOLDEN / "object_info_synthetic.json"), *flags])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def essence(text: str) -> Any:
    return {
        key: {"class_type": entry["class_type"], "inputs": entry["inputs"]}
        for key, entry in json.loads(text).items()
    }


@pytest.mark.parametrize("document", [WORKFLOW, {"prompt": WORKFLOW}, PROMPT, {"prompt": PROMPT}])
def test_json_in_every_form_gives_the_prompt(document: Any, tmp_path: Path, convert: Any) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document))
    code, out, err = convert(path)
    assert (code, essence(out), err) == (0, PROMPT, "")


@pytest.mark.parametrize("suffix", ["png", "webp"])
@pytest.mark.parametrize("carried", [{"workflow": WORKFLOW}, {"prompt": PROMPT, "workflow": WORKFLOW}])
def test_a_picture_gives_the_prompt_that_it_carries(
    suffix: str, carried: dict[str, Any], tmp_path: Path, convert: Any
) -> None:
    path, image = tmp_path / f"picture.{suffix}", Image.new("RGB", (8, 8))
    if suffix == "png":
        chunks = PngInfo()
        for name, value in carried.items():
            chunks.add_text(name, json.dumps(value))
        image.save(path, pnginfo=chunks)
    else:
        exif = image.getexif()
        for tag, (name, value) in zip((0x010F, 0x0110), carried.items(), strict=False):
            exif[tag] = f"{name}:{json.dumps(value)}"
        image.save(path, exif=exif)
    code, out, _ = convert(path)
    assert (code, essence(out)) == (0, PROMPT)


def picture_without_anything(path: Path) -> None:
    Image.new("RGB", (8, 8)).save(path, format="PNG")


BAD: list[tuple[Any, str]] = [
    (None, "cannot be read: No such file or directory"),
    (b"{", "is not JSON"),
    (b"\xff\xfe\x00", "is not JSON"),
    (b"[1, 2]", "neither a prompt nor a saved workflow: it should be a JSON object"),
    (b"{}", "neither a prompt nor a saved workflow"),
    (b'{"hello": 1}', "neither a prompt nor a saved workflow"),
    (b'{"1": {"inputs": {}}}', "neither a prompt nor a saved workflow"),
    (b'{"nodes": 3}', "neither a prompt nor a saved workflow"),
    (b"\x89PNG\r\n\x1a\nrest", "the picture cannot be read"),
    (picture_without_anything, "carries no workflow: it has neither 'prompt' nor 'workflow' in it"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_what_is_no_workflow_is_refused_with_a_sentence(
    content: Any, message: str, tmp_path: Path, convert: Any
) -> None:
    path = tmp_path / "bad"
    if callable(content):
        content(path)
    elif content is not None:
        path.write_bytes(content)
    code, out, err = convert(path)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert str(path) in err
    assert message in err


def test_a_subgraph_in_itself_is_refused_with_a_sentence(tmp_path: Path, convert: Any) -> None:
    inner = {"id": "self", "name": "Self", "nodes": [{"id": 5, "type": "self"}], "links": []}
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"nodes": [{"id": 1, "type": "self"}], "definitions": {"subgraphs": [inner]}}))
    code, out, err = convert(path)
    assert (code, out) == (2, "")
    assert (
        err == "error: this saved workflow cannot be converted to a prompt: subgraph 'Self' contains itself\n"
    )


def test_what_is_odd_is_told_beside_the_prompt(tmp_path: Path, convert: Any) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"nodes": [{"id": 1, "type": "Nobody"}], "links": []}))
    code, out, err = convert(path)
    assert code == 0
    assert err == "missing node type Nobody: 1\n"
    assert json.loads(out)["1"]["class_type"] == "Nobody"


def test_definitions_that_cannot_be_read_are_named(tmp_path: Path, convert: Any) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(WORKFLOW))
    code, _, err = convert(path, "--object-info", str(tmp_path / "absent.json"))
    assert (code, err) == (
        2,
        f"error: {tmp_path / 'absent.json'} cannot be read: No such file or directory\n",
    )


def test_seeds_move_on_when_asked(tmp_path: Path, convert: Any) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(graph([node(1, "T_IntCtlMode", values=[5, "increment", 1])])))
    assert essence(convert(path)[1])["1"]["inputs"]["k"] == 5
    assert essence(convert(path, "--advance-seeds")[1])["1"]["inputs"]["k"] == 6
