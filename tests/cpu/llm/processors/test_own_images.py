"""Sizes and tiles are those of transformers' own functions, which lie in modules that ask for torchvision."""

from __future__ import annotations

import ast
import math
import random
from collections import defaultdict
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.image_utils import SizeDict

from runtime.llm.processors import tiles
from runtime.llm.processors.patches import Kimi_K25ImageProcessor
from runtime.llm.processors.tiles import Llama4ImageProcessor


def functions_of(module: str) -> dict[str, Any]:
    """A module's functions without its imports and classes."""
    found = find_spec("transformers")
    assert found is not None
    assert found.origin is not None
    source = (Path(found.origin).parent / "models" / module).read_text()
    tree = ast.parse(source)
    tree.body = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    names: dict[str, Any] = {
        "math": math,
        "torch": torch,
        "defaultdict": defaultdict,
        "lru_cache": lru_cache,
        "SizeDict": SizeDict,
    }
    exec(compile(tree, module, "exec"), names)
    return names


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
