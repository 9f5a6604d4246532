"""From a typed function to a NodeSpec. `@node(...)` also puts the spec where the registry collects it.

    @node("KSampler", display="KSampler", category="model/sampling")
    async def k_sampler(ctx: NodeContext, *, model: Model, seed: Seed = 0) -> Latent: ...

The first parameter may be `ctx`; inputs keep the order of the signature. A return annotation `X` or `tuple[X,
Y]` gives the outputs; a node that returns a NodeResult names them with `returns=`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from nodes import types as t
from nodes.spec import CASES, GROWING, InputGroup, Library, NodeResult, NodeSpec, Output, Slot

F = TypeVar("F", bound=Callable[..., Any])

DECLARED: dict[str, NodeSpec] = {}

_PLAIN = {int: "INT", float: "FLOAT", str: "STRING", bool: "BOOLEAN", Any: "*"}


def node(id: str, **declaration: Any) -> Callable[[F], F]:
    """Declares a node of this process; takes the keywords of `spec_of`."""

    def register(function: F) -> F:
        assert id not in DECLARED, f"two nodes called {id}"
        DECLARED[id] = spec_of(function, id, **declaration)
        return function

    return register


def spec_of(
    function: Callable[..., Any],
    id: str,
    *,
    category: str,
    display: str | None = None,
    description: str = "",
    returns: Sequence[Any] | None = None,
    outputs: Sequence[str] | None = None,
    output_is_list: Sequence[bool] | None = None,
    output_tooltips: Sequence[str] | None = None,
    is_output: bool = False,
    input_is_list: bool = False,
    not_idempotent: bool = False,
    deprecated: bool = False,
    experimental: bool = False,
    version: int = 1,
    search_aliases: Sequence[str] = (),
    lazy_needs: Callable[..., Any] | None = None,
    fingerprint: Callable[..., Any] | None = None,
    check: Callable[..., Any] | None = None,
) -> NodeSpec:
    """`outputs` are names (default: the types). `lazy_needs(**known)` returns input names. `fingerprint` and
    `check` take the constants that they name, after a `library` when that is their first parameter.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    returned = hints.pop("return", NoneType)
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and parameters[0].name == "ctx"
    declared = tuple(_input(p, hints[p.name]) for p in (parameters[1:] if takes_context else parameters))
    types = _output_types(returned) if returns is None else tuple(_reading(r).type for r in returns)
    assert outputs is None or len(outputs) == len(types), f"{id}: {len(types)} outputs, names {outputs}"
    is_async = inspect.iscoroutinefunction(function)
    return NodeSpec(
        id=id,
        display_name=display or id,
        category=category,
        inputs=lambda library: tuple(one.slot(library) for one in declared),
        outputs=tuple(
            Output(
                type=type_name,
                name=outputs[i] if outputs else type_name,
                is_list=bool(output_is_list and output_is_list[i]),
                tooltip=output_tooltips[i] if output_tooltips else None,
            )
            for i, type_name in enumerate(types)
        ),
        call=_calling(function, takes_context, is_async, len(types)),
        description=description or inspect.cleandoc(function.__doc__ or ""),
        is_async=is_async,
        is_output=is_output,
        input_is_list=input_is_list,
        not_idempotent=not_idempotent,
        deprecated=deprecated,
        experimental=experimental,
        version=version,
        python_module=function.__module__,
        lazy_needs=_without_context(lazy_needs) if lazy_needs else None,
        fingerprint=_with_library(fingerprint) if fingerprint else None,
        check=_with_library(check) if check else None,
        checked_inputs=_names(check) if check else frozenset(),
        search_aliases=tuple(search_aliases),
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one annotation says."""

    type: str
    options: Mapping[str, Any]
    choices: Sequence[Any] | Callable[[Library], Sequence[Any]] | None
    folder: str | None
    hidden: bool
    optional: bool


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    group: InputGroup
    reading: _Reading

    def slot(self, library: Library) -> Slot:
        choices = self.reading.choices
        listed = list(choices(library)) if callable(choices) else choices
        return Slot(
            self.name, self.reading.type, self.group, self._options(listed), listed, self.reading.folder
        )

    def _options(self, listed: Sequence[Any] | None) -> Mapping[str, Any]:
        """A combo starts at its first choice anyway; a default that is not listed would be invalid."""
        options = dict(self.reading.options)
        if listed is not None and (
            not listed or options.get("default") == listed[0] or options.get("default") not in listed
        ):
            options.pop("default", None)
        return options


def _input(parameter: inspect.Parameter, hint: Any) -> _Input:
    reading = _reading(hint)
    options = dict(reading.options)
    if parameter.default is not inspect.Parameter.empty and parameter.default is not None:
        options = {"default": parameter.default} | options
    elif reading.type == "STRING" and not reading.hidden and "default" not in options:
        options = {"default": ""} | options
    group: InputGroup = "hidden" if reading.hidden else "optional" if reading.optional else "required"
    return _Input(
        parameter.name,
        group,
        _Reading(reading.type, options, reading.choices, reading.folder, reading.hidden, reading.optional),
    )


def _reading(hint: Any) -> _Reading:
    base, marks, optional = _unwrapped(hint)
    choices: Any = list(get_args(base)) if get_origin(base) is Literal else None
    socket: str | None = None
    folder: str | None = None
    hidden = False
    options: dict[str, Any] = {}
    for mark in marks:
        match mark:
            case t.Socket():
                socket = mark.name
            case t.Hidden():
                socket, hidden = mark.name, True
            case t.Files(where):
                choices, folder = _model_names(where), where
            case t.InputFiles(media, upload):
                choices, folder = _input_names(media), "input"
                if upload and media != "any":
                    options[f"{media}_upload"] = True
            case t.Choices(values):
                choices = values
            case t.Grows():
                socket, options["template"] = GROWING, _template(mark)
            case t.Cases(inputs):
                socket, choices = CASES, list(inputs)
                options["options"] = [
                    {"key": key, "inputs": {"required": _entries(of)}} for key, of in inputs.items()
                ]
            case t.InOptional():
                optional = True
            case _:
                options |= _options(mark)
    kind = socket or ("COMBO" if choices is not None else _PLAIN.get(base))
    assert kind, f"{hint} is no socket type; use one of nodes.types or Annotated[..., Socket(name)]"
    return _Reading(kind, options, choices, folder, hidden, optional)


def _template(grows: t.Grows) -> dict[str, Any]:
    template: dict[str, Any] = {"input": {"required": _entries({grows.prefix: grows.of})}, "min": grows.min}
    if grows.names:
        return template | {"names": list(grows.names)}
    return template | {"prefix": grows.prefix, "max": grows.max}


def _entries(annotations: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Entries of inputs inside a dynamic one. They have no Python default; `Options` may give one."""
    entries = {}
    for name, hint in annotations.items():
        reading = _reading(hint)
        assert not callable(reading.choices), f"{name}: choices inside a dynamic input cannot depend on files"
        options = dict(reading.options)
        if reading.choices is None:
            entries[name] = [reading.type, options]
        else:
            entries[name] = ["COMBO", {"options": list(reading.choices), "multiselect": False} | options]
    return entries


def _options(mark: Any) -> dict[str, Any]:
    match mark:
        case t.Int(low, high, step, control):
            options: dict[str, Any] = {"min": low, "max": high}
            return (
                options
                | ({"step": step} if step else {})
                | ({"control_after_generate": True} if control else {})
            )
        case t.Float(low, high, step, digits):
            options = {"min": low, "max": high}
            return options | ({"step": step} if step else {}) | ({"round": digits} if digits else {})
        case t.Multiline(dynamic, placeholder):
            options = {"multiline": True} | ({"dynamicPrompts": True} if dynamic else {})
            return options | ({"placeholder": placeholder} if placeholder else {})
        case t.Tooltip(text):
            return {"tooltip": text}
        case t.Lazy():
            return {"lazy": True}
        case t.Options(values):
            return values
    raise AssertionError(f"{mark} is no mark of nodes.types")


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """The plain type, all marks around it, and whether None is allowed."""
    if get_origin(hint) is Annotated:
        base, marks, optional = _unwrapped(get_args(hint)[0])
        return base, (*marks, *hint.__metadata__), optional
    if get_origin(hint) in (typing.Union, UnionType) and NoneType in get_args(hint):
        (inner,) = (a for a in get_args(hint) if a is not NoneType)
        base, marks, _ = _unwrapped(inner)
        return base, marks, True
    return hint, (), False


def _model_names(folder: str) -> Callable[[Library], Sequence[str]]:
    return lambda library: library.names(folder)


def _input_names(kind: str) -> Callable[[Library], Sequence[str]]:
    return lambda library: library.input_names(kind)


def _output_types(returned: Any) -> tuple[str, ...]:
    if returned in (NoneType, NodeResult):
        return ()
    parts = get_args(returned) if get_origin(returned) is tuple else (returned,)
    return tuple(_reading(part).type for part in parts)


def _calling(
    function: Callable[..., Any], takes_context: bool, is_async: bool, num_outputs: int
) -> Callable[..., Any]:
    def arguments(context: Any) -> tuple[Any, ...]:
        return (context,) if takes_context else ()

    def call(context: Any, **inputs: Any) -> NodeResult:
        return _result(function(*arguments(context), **inputs), num_outputs)

    async def call_async(context: Any, **inputs: Any) -> NodeResult:
        return _result(await function(*arguments(context), **inputs), num_outputs)

    return call_async if is_async else call


def _result(value: Any, num_outputs: int) -> NodeResult:
    if isinstance(value, NodeResult):
        return value
    if value is None and num_outputs == 0:
        return NodeResult()
    return NodeResult(value if isinstance(value, tuple) and num_outputs != 1 else (value,))


def _without_context(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _context, **known: function(**_named(function, known))


def _with_library(function: Callable[..., Any]) -> Callable[..., Any]:
    takes_library = next(iter(inspect.signature(function).parameters), None) == "library"

    def call(library: Library, **constants: Any) -> Any:
        return function(*((library,) if takes_library else ()), **_named(function, constants))

    return call


def _named(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in _names(function)}


def _names(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters) - {"library"}
