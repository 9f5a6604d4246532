import os
import threading
import time
from pathlib import Path

import pytest

from app.config import Directories
from app.files import Files, UnsafeName, fill_prefix, split_annotation, within, within_by_name
from app.folders import ModelFolders
from nodes.context import NodeInputError

ESCAPES = ["../x", "a/../../x", "/etc/passwd", "..", "a/..\\..\\x", "C:\\x", "C:/x", "x\0.png", "//server/x"]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    directories = Directories.below(tmp_path / "base")
    made = Files(directories, ModelFolders(directories))
    made.make_directories()
    return made


@pytest.mark.parametrize("name", ESCAPES)
def test_no_name_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    for resolve in (within, within_by_name):
        with pytest.raises(UnsafeName):
            resolve(tmp_path, name)


@pytest.mark.parametrize("name", ["é" * 200, "a/" * 600, "\ud800.png"])
def test_names_that_no_file_can_have_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeName):
        within(tmp_path, name)


def test_a_link_leads_out_of_users_folders_but_models_may_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeName):
        within(tmp_path / "root", "link/secret.png")
    assert within_by_name(tmp_path / "root", "link/model.pt") == tmp_path / "root" / "link" / "model.pt"


def test_names_inside_stay_as_they_are(tmp_path: Path) -> None:
    assert within(tmp_path, "a/./b/../c.png") == tmp_path / "a" / "c.png"
    assert within(tmp_path, "") == tmp_path
    assert within(tmp_path, "..hidden.png") == tmp_path / "..hidden.png"


def test_annotations_are_split_off() -> None:
    assert split_annotation("a b.png [output]") == ("a b.png", "output")
    assert split_annotation("a.png[temp]") == ("a.png", "temp")
    assert split_annotation("a [x].png") == ("a [x].png", None)


def test_an_input_is_found_by_annotation_and_subfolder(files: Files) -> None:
    (files.directories.output / "sub").mkdir()
    (files.directories.output / "sub" / "a.png").touch()
    (files.directories.input / "b.png").touch()
    assert files.input("sub/a.png [output]") == files.directories.output / "sub" / "a.png"
    assert files.input("b.png") == files.directories.input / "b.png"
    for missing in ("a.png", "../base/input/b.png", "sub [output]", "b.png [temp]"):
        with pytest.raises(NodeInputError):
            files.input(missing)


def test_inputs_are_listed_flat_and_by_kind(files: Files) -> None:
    for name in ("b.PNG", "a.webp", "c.mp4", "d.flac", "e.txt"):
        (files.directories.input / name).touch()
    (files.directories.input / "folder").mkdir()
    assert files.input_names("image") == ["a.webp", "b.PNG"]
    assert files.input_names("video") == ["c.mp4"]
    assert files.input_names("any") == ["a.webp", "b.PNG", "c.mp4", "d.flac", "e.txt"]


def test_output_numbers_go_on_from_the_highest(files: Files) -> None:
    output = files.directories.output
    (output / "pic_00041_.png").touch()
    (output / "other_00099_.png").touch()
    path, saved = files.next_output("pic", ".png")
    assert path == output / "pic_00042_.png"
    assert saved.as_ui() == {"filename": "pic_00042_.png", "subfolder": "", "type": "output"}


def test_a_prefix_may_name_a_subfolder_but_not_leave(files: Files) -> None:
    path, saved = files.next_output("a/b/pic", "png", temporary=True)
    assert path == files.directories.temp / "a" / "b" / "pic_00001_.png"
    assert (saved.subfolder, saved.type) == ("a/b", "temp")
    for prefix in ("../pic", "/elsewhere/pic", ""):
        with pytest.raises(NodeInputError):
            files.next_output(prefix, "png")


def test_the_tokens_of_a_prefix_are_filled_in() -> None:
    now = time.struct_time((2026, 3, 4, 5, 6, 7, 0, 0, 0))
    pattern = "%year%-%month%-%day%_%hour%%minute%%second%_%width%x%height%_%unknown%_100%"
    assert fill_prefix(pattern, (64, 32), now) == "2026-03-04_050607_64x32_%unknown%_100%"


def test_two_nodes_at_once_never_get_the_same_name(files: Files) -> None:
    taken: list[Path] = []

    def take() -> None:
        for _ in range(25):
            taken.append(files.next_output("pic", "png")[0])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 100


def test_a_stamp_changes_with_the_file_and_is_none_without_it(files: Files) -> None:
    path = files.directories.input / "a.txt"
    assert files.stamp("input", "a.txt") is None
    path.write_text("one")
    os.utime(path, (1, 1))
    first = files.stamp("input", "a.txt")
    os.utime(path, (2, 2))
    assert first is not None
    assert files.stamp("input", "a.txt") != first
    assert files.stamp("nowhere", "a.txt") is None


def test_models_are_found_and_their_absence_is_said_with_the_place(files: Files) -> None:
    folder = files.directories.models / "loras" / "style"
    folder.mkdir(parents=True)
    (folder / "a.safetensors").touch()
    assert files.model("loras", "style/a.safetensors") == folder / "a.safetensors"
    with pytest.raises(NodeInputError, match="not in the model folder loras"):
        files.model("loras", "b.safetensors")
    with pytest.raises(NodeInputError, match="there are: checkpoints"):
        files.model("lorras", "b.safetensors")
    with pytest.raises(NodeInputError):
        files.model("loras", "../../input")


def test_adapters_are_folders_below_their_own(files: Files) -> None:
    root = files.directories.models / "llm_loras"
    for name in ("loud", "house/quiet", "house/other"):
        (root / name).mkdir(parents=True)
    for name in ("loud", "house/quiet"):
        (root / name / "adapter_config.json").touch()
    assert files.adapter_paths() == {"house/quiet": root / "house" / "quiet", "loud": root / "loud"}
    assert files.names("llm_loras") == ["house/quiet", "loud"]


def test_language_models_are_packaged_ones_then_those_of_the_folder(files: Files) -> None:
    llm = files.directories.models / "llm"
    (llm / "tiny").mkdir(parents=True)
    (llm / "tiny" / "config.json").touch()
    (llm / "b.gguf").touch()
    paths = files.language_model_paths()
    assert list(paths)[-3:] == ["b.gguf", "glyph-vlm", "tiny"]
    assert paths["tiny"] == llm / "tiny"
