"""No top-level module of ours may carry the name of a distribution that others import."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_kernels_folder_is_a_source_root_and_no_package() -> None:
    assert not (ROOT / "kernels" / "__init__.py").exists()
    assert (ROOT / "kernels" / "treadle_kernels" / "__init__.py").exists()


def test_no_top_level_package_shadows_a_known_distribution() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    known = {"kernels", "platform", "types", "queue", "server", "comfy", "execution", "folder_paths", "utils"}
    assert not packages & known
