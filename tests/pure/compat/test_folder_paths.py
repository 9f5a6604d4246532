"""folder_paths over the running server's folders, which packs may add to."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.compat.faces import folder_paths
from app.compat.host import Host


def test_the_directories_are_the_servers(host: Host) -> None:
    directories = host.config.directories
    assert folder_paths.get_output_directory() == folder_paths.output_directory == str(directories.output)
    assert folder_paths.models_dir == str(directories.models)
    assert folder_paths.get_directory_by_type("temp") == str(directories.temp)
    assert folder_paths.get_directory_by_type("elsewhere") is None


def test_a_folder_that_a_pack_adds_is_listed_and_found_by_the_server_too(host: Host, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "a.bin2").write_text("x")
    folder_paths.add_model_folder_path("own_models", str(tmp_path / "own"))
    assert folder_paths.get_filename_list("own_models") == ["a.bin2"]
    assert host.files.model("own_models", "a.bin2") == tmp_path / "own" / "a.bin2"
    folder_paths.folder_names_and_paths["direct"] = ([str(tmp_path / "own")], {".none"})
    assert folder_paths.get_filename_list("direct") == []
    folder_paths.folder_names_and_paths["direct"][1].add(".bin2")
    assert folder_paths.get_filename_list("direct") == ["a.bin2"]
    with pytest.raises(KeyError):
        folder_paths.get_filename_list("unheard_of")


def test_a_default_path_comes_first(host: Host, tmp_path: Path) -> None:
    before = folder_paths.get_folder_paths("loras")
    folder_paths.add_model_folder_path("loras", str(tmp_path / "mine"), is_default=True)
    assert folder_paths.get_folder_paths("loras") == [str(tmp_path / "mine"), *before]
    assert folder_paths.get_folder_paths("unet") == folder_paths.get_folder_paths("diffusion_models")


def test_a_name_cannot_lead_out_of_its_folder(host: Host, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("x")
    assert folder_paths.get_full_path("loras", "../../secret.txt") is None
    with pytest.raises(ValueError, match="leads out"):
        folder_paths.get_annotated_filepath("../secret.txt")
    with pytest.raises(ValueError, match="leads out"):
        folder_paths.get_save_image_path("../../x", folder_paths.get_output_directory())


def test_annotations_choose_the_directory(host: Host) -> None:
    output = folder_paths.get_output_directory()
    assert folder_paths.get_annotated_filepath("a.png [output]") == f"{output}/a.png"
    assert folder_paths.get_annotated_filepath("a.png") == f"{folder_paths.get_input_directory()}/a.png"
    assert not folder_paths.exists_annotated_filepath("a.png [temp]")


def test_numbers_of_saved_pictures_go_on_where_they_ended(host: Host) -> None:
    output = Path(folder_paths.get_output_directory())
    (output / "sub").mkdir()
    (output / "sub" / "pic_00007_.png").write_text("")
    found = folder_paths.get_save_image_path("sub/pic", str(output), 4, 5)
    assert found == (str(output / "sub"), "pic", 8, "sub", "sub/pic")
    assert folder_paths.get_save_image_path("%width%x%height%", str(output), 4, 5)[1] == "4x5"
