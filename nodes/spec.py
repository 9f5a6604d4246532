"""The one shape of a node that the executor knows; typed functions, V1 and V3 classes are adapted to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

InputGroup = Literal["required", "optional", "hidden"]

# Inputs that become several in a prompt: one that grows, and a combo whose choice brings inputs.
GROWING = "COMFY_AUTOGROW_V3"
CASES = "COMFY_DYNAMICCOMBO_V3"

# What a hidden input may ask for. One of any other type is an input that only a program fills in.
AUTOMATIC = frozenset(
    [
        "PROMPT",
        "DYNPROMPT",
        "EXTRA_PNGINFO",
        "UNIQUE_ID",
        "AUTH_TOKEN_COMFY_ORG",
        "API_KEY_COMFY_ORG",
        "COMFY_USAGE_SOURCE",
    ]
)


def plain_type(declared: Any) -> Any:
    """Packs make a wildcard of a str that differs from nothing; here it is "*", which is hashable."""
    is_odd = isinstance(declared, str) and type(declared) is not str
    return "*" if is_odd and not (declared != "the name of no type") else declared  # noqa: SIM202


@dataclass(frozen=True, slots=True)
class Slot:
    """One input. `type` is a socket name such as "INT" or "IMAGE", "COMBO" with `choices`, or "*".

    `options` is the second element of the object_info entry (default, min, max, step, multiline, tooltip,
    lazy ...). `folder` says that the value names a file there ("input" for uploads), so that its stamp joins
    the cache key. `within` is the dynamic input that this one came from: `images` for `images.image0`.
    """

    name: str
    type: str
    group: InputGroup = "required"
    options: Mapping[str, Any] = field(default_factory=dict)
    choices: Sequence[Any] | None = None
    folder: str | None = None
    within: str | None = None

    @classmethod
    def of(cls, name: str, entry: Any, group: InputGroup, within: str | None = None) -> Slot:
        """From an entry of INPUT_TYPES: `(type, options)`, `(type,)` or a type; a list as type is a combo."""
        parts = entry if isinstance(entry, tuple | list) else (entry,)
        declared, options = plain_type(parts[0]), dict(parts[1]) if len(parts) > 1 else {}
        if isinstance(declared, list | tuple):
            return cls(name, "COMBO", group, options, list(declared), within=within)
        choices = options.get("options") if declared == "COMBO" else None
        return cls(name, declared, group, options, choices, within=within)

    @property
    def is_automatic(self) -> bool:
        """The server fills it in."""
        return self.group == "hidden" and self.type in AUTOMATIC

    @property
    def lazy(self) -> bool:
        return bool(self.options.get("lazy"))

    @property
    def wants_link(self) -> bool:
        """The node asks for the link itself, `[node id, slot]`, instead of the value."""
        return bool(self.options.get("rawLink"))

    def config(self) -> list[Any]:
        """The input's entry in object_info and in validation errors."""
        first = (
            list(self.choices) if self.choices is not None and "options" not in self.options else self.type
        )
        return [first, dict(self.options)] if self.options else [first]


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
        """Files, and diffusers folders where these are allowed, of a model folder such as "checkpoints"."""

    def input_names(self, kind: str) -> list[str]:
        """Files of the input directory; `kind` is "image", "video", "audio" or "any"."""

    def language_models(self) -> list[str]: ...

    def vision_language_models(self) -> list[str]:
        """Those of the language models that take images."""

    def input_folders(self) -> list[str]:
        """Folders below the input directory, by relative names, after one with example pictures."""

    def stamp(self, folder: str, name: str) -> str | None:
        """A text that changes when the file may have changed; None when there is no such file.

        `folder` is a model folder, or "input", whose names may carry a subfolder and ` [output]` or
        ` [temp]`.
        """


@dataclass(frozen=True, slots=True)
class Blocker:
    """A value that keeps every consumer from running. A `message` is reported once, at the first of them."""

    message: str | None = None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What a node gives back: values by output slot, `ui` for the client, `expand` for a subgraph to run
    instead.

    `ui` maps names to lists. `expand` is a prompt (id to class_type and inputs); with it, values of the form
    `[id, slot]` stand for outputs of the new nodes.
    """

    values: tuple[Any, ...] = ()
    ui: Mapping[str, Any] | None = None
    expand: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """`inputs(library)` may give other choices later (files come and go), never other names for a typed node.

    `call(context, **inputs)` returns a NodeResult or, where `is_async`, an awaitable of one; a plain function
    is run in a worker thread. `lazy_needs(context, **known)` names the lazy inputs still wanted; unknown ones
    are None. `fingerprint(library, **constants)` changes the cache key when outside state changed; NaN or an
    exception means "always". `check(library, **constants)` returns True or a sentence; `checked_inputs` are
    the inputs that it names ("*" for all), which the ordinary range and choice checks then leave to it.
    Linked inputs are None in both. An `input_types` among the checked inputs receives the types that the
    links bring and replaces the link check. `uses_node_id` keeps two nodes with equal inputs apart in the
    cache. `accepts_any_input` passes undeclared inputs, `accepts_any_link` those of them that are linked.
    `foreign` code was written for ComfyUI, and gets this program's models in faces that look like ComfyUI's.
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
    uses_node_id: bool = False
    accepts_any_input: bool = False
    accepts_any_link: bool = False
    foreign: bool = False
    is_api_node: bool = False
    has_intermediate_output: bool = False
