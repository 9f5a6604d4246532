import os
from pathlib import Path

import pytest

from app.config import BadConfig, Directories
from app.folders import ModelFolders, read_extra_paths


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return Directories.below(tmp_path)


def put(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_models_are_listed_sorted_with_their_subfolders(directories: Directories) -> None:
    for name in ("b.safetensors", "a/c.ckpt", "notes.txt", "a/.git/x.pt"):
        put(directories.models / "loras" / name)
    assert ModelFolders(directories).names("loras") == ["a/c.ckpt", "b.safetensors"]


def test_a_diffusers_folder_is_one_checkpoint(directories: Directories) -> None:
    checkpoints = directories.models / "checkpoints"
    for name in ("a.safetensors", "nice/model_index.json", "nice/unet/diffusion_pytorch_model.safetensors"):
        put(checkpoints / name)
    assert ModelFolders(directories).names("checkpoints") == ["glyph", "a.safetensors", "nice"]


def test_the_embedded_checkpoint_comes_first_wherever_the_users_models_lie(directories: Directories) -> None:
    folders = ModelFolders(directories)
    assert folders.names("checkpoints")[0] == "glyph"


def test_a_new_file_is_seen_at_the_next_look(directories: Directories) -> None:
    loras = directories.models / "loras"
    folders = ModelFolders(directories)
    assert folders.names("loras") == []
    put(loras / "a.safetensors")
    assert folders.names("loras") == ["a.safetensors"]
    put(loras / "deep" / "b.safetensors")
    os.utime(loras, (1, 1))
    assert folders.names("loras") == ["a.safetensors", "deep/b.safetensors"]
    (loras / "a.safetensors").unlink()
    assert folders.names("loras") == ["deep/b.safetensors"]


def test_a_folder_that_links_to_itself_is_walked_once(directories: Directories) -> None:
    loras = directories.models / "loras"
    put(loras / "a.safetensors")
    (loras / "again").symlink_to(loras)
    assert ModelFolders(directories).names("loras") == ["a.safetensors"]


def test_old_folder_names_mean_the_new_ones(directories: Directories) -> None:
    put(directories.models / "unet" / "a.safetensors")
    put(directories.models / "clip" / "b.gguf")
    folders = ModelFolders(directories)
    assert folders.names("diffusion_models") == folders.names("unet") == ["a.safetensors"]
    assert folders.names("clip") == ["b.gguf"]


def test_the_wire_order_of_folder_names_is_kept(directories: Directories) -> None:
    names = ModelFolders(directories).folder_names()
    assert names[:8] == [
        "checkpoints",
        "configs",
        "loras",
        "vae",
        "text_encoders",
        "diffusion_models",
        "clip_vision",
        "style_models",
    ]


def test_extra_paths_add_folders_and_may_come_first(directories: Directories, tmp_path: Path) -> None:
    put(tmp_path / "big" / "lo" / "x.safetensors")
    put(tmp_path / "big" / "lo2" / "x.safetensors")
    put(tmp_path / "big" / "odd" / "thing.xyz")
    config = tmp_path / "extra.yaml"
    config.write_text(
        "mine:\n  base_path: big\n  is_default: true\n  loras: |\n    lo\n    lo2\n  odd: odd\nempty:\n"
    )
    folders = ModelFolders(directories, [config])
    loras = folders.folder("loras")
    assert loras is not None
    assert loras.roots[0] == tmp_path / "big" / "lo2"
    assert folders.names("loras") == ["x.safetensors"]
    assert folders.names("odd") == ["thing.xyz"]
    assert folders.folder_names()[-1] == "odd"


def test_a_malformed_extra_paths_file_is_named(tmp_path: Path) -> None:
    config = tmp_path / "extra.yaml"
    for content in ("- a\n- b\n", "a: [", "a: text\n"):
        config.write_text(content)
        with pytest.raises(BadConfig, match=r"extra\.yaml"):
            read_extra_paths(config)
    with pytest.raises(BadConfig, match="cannot be read"):
        read_extra_paths(tmp_path / "absent.yaml")
