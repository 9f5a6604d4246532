"""`main.py models`: every model that nodes can name, and where it was found."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from app.files import Files
from app.flags import add_directory_flags, headless_config
from app.folders import ModelFolders

_NOT_MODELS = ("configs", "custom_nodes", "datasets", "llm")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="main.py models", description=__doc__, allow_abbrev=False)
    add_directory_flags(parser)
    config = headless_config(parser.parse_args(list(argv)))
    files = Files(config.directories, ModelFolders(config.directories, config.extra_model_paths))
    for folder, models in installed(files).items():
        print(folder)
        for name, path in models.items():
            print(f"  {name}  {path}")
    print(
        f"\nPut models below {config.directories.models}, or name more places with --extra-model-paths-config"
    )
    return 0


def installed(files: Files) -> dict[str, dict[str, Path]]:
    """Folders without a model are left out."""
    found: dict[str, dict[str, Path]] = {"llm": dict(files.language_model_paths())}
    for folder in files.folders.folder_names():
        if folder not in _NOT_MODELS:
            found[folder] = {name: files.model(folder, name) for name in files.names(folder)}
    return {folder: models for folder, models in found.items() if models}
