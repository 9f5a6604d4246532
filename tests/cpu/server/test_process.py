"""The program as people start it: a process with flags, its port, its exit status."""

import io
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.cpu.server.process import ENVIRONMENT, MAIN, Server, finished

PICTURE = {
    "1": {
        "class_type": "EmptyImage",
        "inputs": {"width": 16, "height": 8, "batch_size": 1, "color": 0xFF8000},
    },
    "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "pic"}},
}

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path, "--lowvram", "--use-pytorch-cross-attention")
    yield started
    if started.process.poll() is None:
        started.stop()


def test_a_server_answers_runs_remembers_and_stops(server: Server, tmp_path: Path) -> None:
    print(f"the port answered {server.seconds_to_answer:.2f} s after the start of the process")
    workflow = {"id": "w", "nodes": []}
    answer = server.post(
        "/prompt", {"prompt": PICTURE, "extra_data": {"extra_pnginfo": {"workflow": workflow}}}
    )
    item = finished(server, answer["prompt_id"])
    assert item["status"]["status_str"] == "success", item["status"]
    (saved,) = item["outputs"]["2"]["images"]
    assert saved == {"filename": "pic_00001_.png", "subfolder": "", "type": "output"}
    picture = Image.open(io.BytesIO(server.get(f"/view?filename={saved['filename']}")))
    assert (picture.size, picture.getpixel((0, 0))) == ((16, 8), (255, 128, 0))
    assert json.loads(picture.text["prompt"]) == PICTURE  # type: ignore[attr-defined]
    assert json.loads(picture.text["workflow"]) == workflow  # type: ignore[attr-defined]
    assert "KSampler" in json.loads(server.get("/api/object_info"))
    said = server.said()
    assert "Starting server" in said
    assert f"To see the GUI go to: http://127.0.0.1:{server.port}" in said
    assert "accepted and ignored: --lowvram --use-pytorch-cross-attention" in said
    assert server.stop() == 0
    again = Server(tmp_path)
    try:
        assert answer["prompt_id"] in json.loads(again.get("/history"))
    finally:
        assert again.stop() == 0


def run(tmp_path: Path, workflow: Any, *flags: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "workflow.json"
    path.write_text(workflow if isinstance(workflow, str) else json.dumps(workflow))
    command = [*MAIN, "run", str(path), "--cpu", "--base-directory", str(tmp_path), *flags]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def test_run_executes_a_prompt_without_a_server(tmp_path: Path) -> None:
    done = run(tmp_path, PICTURE, "--set", "1.color=255", "--set", "2.filename_prefix=blue/pic")
    assert done.returncode == 0, done.stderr
    path = tmp_path / "output" / "blue" / "pic_00001_.png"
    assert done.stdout.splitlines() == [str(path)]
    with Image.open(path) as picture:
        assert picture.getpixel((0, 0)) == (0, 0, 255)


def test_run_prints_json_when_asked(tmp_path: Path) -> None:
    done = run(tmp_path, {"prompt": PICTURE}, "--json", "--output-directory", str(tmp_path / "elsewhere"))
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["error"]) == ("success", None)
    assert answer["outputs"]["2"]["images"][0]["filename"] == "pic_00001_.png"
    assert (tmp_path / "elsewhere" / "pic_00001_.png").is_file()


def test_run_names_the_node_and_the_cause_of_a_failure(tmp_path: Path) -> None:
    wrong = {
        "1": {"class_type": "LoadImage", "inputs": {"image": "absent.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "../../out"}},
    }
    refused = run(tmp_path, wrong)
    assert refused.returncode == 2
    assert "node 1 (LoadImage)" in refused.stderr
    wrong["1"] = PICTURE["1"]
    failed = run(tmp_path, wrong)
    assert failed.returncode == 1
    assert "node 2 (SaveImage) failed" in failed.stderr
    assert "leads out of its folder" in failed.stderr


@pytest.mark.parametrize(
    ("workflow", "reason"),
    [("{broken", "is not JSON"), ("[1]", "should be a JSON object"), ("{}", "neither a prompt nor")],
)
def test_run_refuses_what_is_no_workflow(tmp_path: Path, workflow: str, reason: str) -> None:
    refused = run(tmp_path, workflow)
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert "Traceback" not in refused.stderr


WORKFLOW = {
    "nodes": [
        {"id": 3, "type": "EmptyImage", "widgets_values": [16, 8, 1, 255], "outputs": [{"links": [1]}]},
        {
            "id": 4,
            "type": "SaveImage",
            "widgets_values": ["drawn"],
            "inputs": [{"name": "images", "link": 1}],
        },
    ],
    "links": [[1, 3, 0, 4, 0, "IMAGE"]],
}


def convert(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [*MAIN, "convert", str(path), "--base-directory", str(path.parent), *flags]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


def test_convert_prints_a_prompt_that_run_executes_and_its_picture_runs_again(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(WORKFLOW))
    converted = convert(path)
    assert converted.returncode == 0, converted.stderr
    prompt = json.loads(converted.stdout)
    assert prompt["4"]["inputs"] == {"images": ["3", 0], "filename_prefix": "drawn"}
    done = run(tmp_path, WORKFLOW)
    (picture,) = done.stdout.splitlines()
    assert json.loads(convert(Path(picture)).stdout)["3"]["inputs"] == prompt["3"]["inputs"]
    command = [*MAIN, "run", picture, "--cpu", "--base-directory", str(tmp_path), "--set", "3.width=24"]
    again = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert again.stdout.splitlines() == [str(tmp_path / "output" / "drawn_00002_.png")], again.stderr
    with Image.open(again.stdout.strip()) as drawn:
        assert drawn.size == (24, 8)
        assert json.loads(drawn.text["workflow"]) == WORKFLOW  # type: ignore[attr-defined]


def test_convert_takes_its_definitions_from_files(tmp_path: Path) -> None:
    path, first, second = (tmp_path / name for name in ("saved.json", "first.json", "second.json"))
    path.write_text(json.dumps(WORKFLOW))
    first.write_text(json.dumps({"EmptyImage": described({"wide": ["INT", {}], "high": ["INT", {}]})}))
    second.write_text(json.dumps({"SaveImage": described({"images": ["IMAGE"], "name": ["STRING", {}]})}))
    both = convert(path, "--object-info", str(first), "--object-info", str(second))
    assert both.returncode == 0, both.stderr
    prompt = json.loads(both.stdout)
    assert prompt["3"]["inputs"] == {"wide": 16, "high": 8}
    assert prompt["4"]["inputs"] == {"name": "drawn", "images": ["3", 0]}
    one = convert(path, "--object-info", str(first), "--strict")
    assert "missing node type SaveImage: 4" in one.stderr
    path.write_text("{broken")
    refused = convert(path, "--object-info", str(first))
    assert (refused.returncode, "is not JSON" in refused.stderr) == (2, True)


def described(required: dict[str, Any]) -> dict[str, Any]:
    return {"input": {"required": required}, "input_order": {"required": list(required)}, "output": ["IMAGE"]}


def test_models_lists_what_is_installed_and_where(tmp_path: Path) -> None:
    loras = tmp_path / "models" / "loras"
    loras.mkdir(parents=True)
    (loras / "style.safetensors").touch()
    command = [*MAIN, "models", "--base-directory", str(tmp_path)]
    listed = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert listed.returncode == 0, listed.stderr
    assert f"style.safetensors  {loras / 'style.safetensors'}" in listed.stdout
    assert "glyph" in listed.stdout


def test_a_port_in_use_is_said_and_ends_the_program(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [*MAIN, "--cpu", "--port", str(taken.getsockname()[1]), "--base-directory", str(tmp_path)]
        ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "cannot listen on port" in ended.stderr
    assert "Traceback" not in ended.stderr
