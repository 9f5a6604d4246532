"""The example pack: it loads as a user's pack does, and its nodes do what docs/writing_nodes.md says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from app.events import Event, NodeProgress
from app.files import Files
from app.graph.context import JobNodeContext
from nodes.context import NodeInputError
from nodes.registry import Registry

PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = Registry()
    registry.load_packs(PROJECT / "custom_nodes", allowed=["example_pack"])
    return registry


def test_the_pack_loads_without_an_error(registry: Registry) -> None:
    (pack,) = registry.packs
    assert pack.error is None
    assert [spec.id for spec in pack.specs] == list(registry)
    assert {spec.pack for spec in pack.specs} == {"example_pack"}


def test_the_page_shows_the_packs_own_nodes(registry: Registry) -> None:
    page = (PROJECT / "docs" / "writing_nodes.md").read_text()
    code = (PROJECT / "custom_nodes" / "example_pack" / "__init__.py").read_text()
    shown = [line for line in page.splitlines() if line.startswith(("@node(", "async def "))]
    assert len(shown) >= 4
    for line in shown:
        assert line.replace('category="examples"', "category=CATEGORY") in code


def test_a_tint_mixes_by_its_amount(registry: Registry, context: JobNodeContext) -> None:
    image = torch.full((1, 1, 1, 3), 0.5)
    call = registry["ExampleTint"].call
    (full,) = call(context, image=image, color="red", amount=1.0).values  # type: ignore[union-attr]
    torch.testing.assert_close(full, torch.tensor([[[[0.5, 0.1, 0.1]]]]))
    (none,) = call(context, image=image, color="red", amount=0.0).values  # type: ignore[union-attr]
    assert torch.equal(none, image)


def test_a_contact_sheet_shows_every_picture_and_its_progress(
    registry: Registry, context: JobNodeContext, published: list[Event]
) -> None:
    images = torch.zeros(5, 2, 3, 3)
    (sheet,) = registry["ExampleContactSheet"].call(context, images=images, columns=2, gap=1).values  # type: ignore[union-attr]
    assert sheet.shape == (1, 10, 9, 3)
    assert (sheet == 0).sum() == images.numel()
    assert [event.value for event in published if isinstance(event, NodeProgress)] == [0, 1, 2, 3, 4]


def test_a_file_is_measured_by_its_name(registry: Registry, context: JobNodeContext, files: Files) -> None:
    (files.directories.input / "a.bin").write_bytes(b"12345")
    assert registry["ExampleFileSize"].call(context, file="a.bin").values == (5, "a.bin")  # type: ignore[union-attr]


async def test_a_question_is_answered_yes_or_no(
    registry: Registry, context: JobNodeContext, language: Any
) -> None:
    ask: Any = registry["ExampleYesOrNo"].call
    assert (await ask(context, model="tiny", question="Is water wet?")).values == (False,)
    language.words = (" Yes", ".")
    assert (await ask(context, model="tiny", question="Is water wet?")).values == (True,)
    with pytest.raises(NodeInputError, match="no question"):
        await ask(context, model="tiny", question=" ")
