"""How a family is recognised: declared keys and shapes of a file, or declared facts of a configuration.

The first match in a list wins; nothing here loads weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.platform.checkpoint import Shapes

if TYPE_CHECKING:
    import torch

    from runtime.diffusion.api import ControlRef
    from runtime.diffusion.families.base import Family
    from runtime.diffusion.parts import Part

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """Tensors that a file must have. A shape of None matches any; None within a shape matches any size."""

    present: Mapping[str, Shape | None]
    absent: tuple[str, ...] = ()

    def matches(self, shapes: Shapes) -> bool:
        return all(
            name in shapes and _fits(shapes[name], shape) for name, shape in self.present.items()
        ) and not any(name in shapes for name in self.absent)


@dataclass(frozen=True, slots=True)
class LoadContext:
    """What a family needs from its surroundings when it loads weights."""

    device: str
    dtype: torch.dtype
    language_models: Callable[[], Mapping[str, Path]]
    control_net: Callable[[ControlRef], Any]


@dataclass(frozen=True, slots=True)
class Architecture:
    """One family as the catalogue knows it.

    `facts` are entries of a network's config.json, with the scheduler's `prediction_type` added. `signatures`
    match a single file, where the network's own prefix is already taken off. `encoders` are the text encoders
    in the order of diffusers' text_encoder, text_encoder_2, text_encoder_3. `measure` looks into a
    file's network where its shapes leave a choice.
    """

    name: str
    facts: Mapping[str, Any]
    signatures: tuple[Signature, ...]
    encoders: tuple[str, ...]
    create: Callable[[LoadContext], Family]
    clip_kinds: tuple[str, ...] = field(default=())
    measure: Callable[[Part], bool] | None = None

    def fits_file(self, seen: Shapes, network: Part) -> bool:
        """`seen` are the network's own names, and the file's."""
        if not any(signature.matches(seen) for signature in self.signatures):
            return False
        return self.measure is None or self.measure(network)

    def has_facts(self, config: Mapping[str, Any]) -> bool:
        return all(config.get(name) == value for name, value in self.facts.items())


def _fits(shape: tuple[int, ...], wanted: Shape | None) -> bool:
    if wanted is None:
        return True
    return len(shape) == len(wanted) and all(
        want is None or size == want for size, want in zip(shape, wanted)
    )
