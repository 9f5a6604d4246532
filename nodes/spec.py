"""The one shape of a node that the executor knows. Typed functions, V1 and V3 classes are all adapted to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

InputGroup = Literal["required", "optional", "hidden"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One input. `type` is a socket name such as "INT" or "IMAGE", "COMBO" with `choices`, or "*".

    `options` is the second element of the object_info entry (default, min, max, step, multiline, tooltip, lazy ...).
    `raw_type` is the first element when it is not simply the type name (V1 combos list their choices there).
    """

    name: str
    type: str
    group: InputGroup = "required"
    options: Mapping[str, Any] = field(default_factory=dict)
    choices: Sequence[Any] | None = None

    @property
    def lazy(self) -> bool:
        return bool(self.options.get("lazy"))


@dataclass(frozen=True, slots=True)
class Output:
    type: str
    name: str
    is_list: bool = False
    tooltip: str | None = None
    choices: Sequence[Any] | None = None


class Library(Protocol):
    """What a declaration may ask about files, so that a combo can list them. Names only, never paths."""

    def names(self, folder: str) -> list[str]:
        """Files (and diffusers folders, where the folder allows them) of a model folder such as "checkpoints"."""

    def input_names(self, kind: str) -> list[str]:
        """Files of the input directory; `kind` is "image", "video", "audio" or "any"."""

    def language_models(self) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What a node gives back: values by output slot, `ui` for the client, `expand` for a subgraph to run instead."""

    values: tuple[Any, ...] = ()
    ui: Mapping[str, Any] | None = None
    expand: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """`inputs(library)` may give other choices later (files come and go), never other names for a typed node.

    `call(context, **inputs)` returns a NodeResult or an awaitable of one; a plain function is run in a worker thread.
    `lazy_needs(context, **known)` names the lazy inputs still wanted. `fingerprint(**constants)` changes the cache key
    when outside state (a file) changed. `check(**constants)` returns True or a sentence; `checked_inputs` are the
    inputs that it names, which the ordinary range and choice checks then leave to it.
    """

    id: str
    display_name: str
    category: str
    inputs: Callable[[Library], tuple[Slot, ...]]
    outputs: tuple[Output, ...]
    call: Callable[..., NodeResult | Awaitable[NodeResult]]
    description: str = ""
    is_async: bool = False
    is_output: bool = False
    input_is_list: bool = False
    not_idempotent: bool = False
    deprecated: bool = False
    experimental: bool = False
    version: int = 1
    python_module: str = "nodes"
    pack: str | None = None
    lazy_needs: Callable[..., list[str] | Awaitable[list[str]]] | None = None
    fingerprint: Callable[..., Any] | None = None
    check: Callable[..., bool | str | Awaitable[bool | str]] | None = None
    checked_inputs: frozenset[str] = frozenset()
    search_aliases: tuple[str, ...] = ()
