"""ComfyUI's V1 node classes as NodeSpecs. It reads the class attributes; it knows no pack and no module of
ComfyUI.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodes.foreign import contained
from nodes.spec import Blocker, InputGroup, Library, NodeResult, NodeSpec, Output, Slot, plain_type

MAX_INSTANCES = 1024
_UNDECLARED = "an input name that no pack declares"


def spec_of_class(id: str, kind: type, display_name: str | None, pack: str | None) -> NodeSpec:
    """Raises when an attribute that every V1 class has is missing."""
    function_name = kind.FUNCTION  # type: ignore[attr-defined]
    function = getattr(kind, function_name)
    is_async = inspect.iscoroutinefunction(function)
    check = getattr(kind, "VALIDATE_INPUTS", None)
    lazy = getattr(kind, "check_lazy_status", None)
    instances = _Instances(kind)
    outputs = _outputs(kind)
    return NodeSpec(
        id=id,
        display_name=display_name or id,
        category=str(getattr(kind, "CATEGORY", "")),
        inputs=lambda _library: _slots(kind),
        outputs=outputs,
        call=_calling(instances, function_name, is_async, len(outputs)),
        description=str(getattr(kind, "DESCRIPTION", "")),
        is_async=is_async,
        is_output=bool(getattr(kind, "OUTPUT_NODE", False)),
        input_is_list=bool(getattr(kind, "INPUT_IS_LIST", False)),
        not_idempotent=bool(getattr(kind, "NOT_IDEMPOTENT", False)),
        deprecated=bool(getattr(kind, "DEPRECATED", False)),
        experimental=bool(getattr(kind, "EXPERIMENTAL", False)),
        python_module=f"custom_nodes.{pack}" if pack else "nodes",
        pack=pack,
        lazy_needs=_lazy(instances) if lazy else None,
        fingerprint=_ignoring_library(kind, kind.IS_CHANGED) if hasattr(kind, "IS_CHANGED") else None,
        check=_ignoring_library(kind, check) if check else None,
        checked_inputs=parameters_of(check) if check else frozenset(),
        search_aliases=tuple(getattr(kind, "SEARCH_ALIASES", ())),
        uses_node_id=any(slot.type == "UNIQUE_ID" for slot in _slots(kind)),
        accepts_any_input=_accepts_any(kind),
        foreign=True,
        accepts_any_link="*" in parameters_of(function),
        is_api_node=bool(getattr(kind, "API_NODE", False)),
        has_intermediate_output=bool(getattr(kind, "HAS_INTERMEDIATE_OUTPUT", False)),
    )


def _input_types(kind: type) -> Mapping[str, Any]:
    declared: Mapping[str, Any] = contained(kind.INPUT_TYPES)  # type: ignore[attr-defined]
    return declared


def _slots(kind: type) -> tuple[Slot, ...]:
    declared = _input_types(kind)
    groups: tuple[InputGroup, ...] = ("required", "optional", "hidden")
    return tuple(
        Slot.of(name, entry, group) for group in groups for name, entry in (declared.get(group) or {}).items()
    )


def _accepts_any(kind: type) -> bool:
    """Some packs pass a dict that claims to contain every name."""
    optional = _input_types(kind).get("optional")
    return optional is not None and _UNDECLARED in optional


def _outputs(kind: type) -> tuple[Output, ...]:
    types = tuple(plain_type(declared) for declared in kind.RETURN_TYPES)  # type: ignore[attr-defined]
    names = tuple(getattr(kind, "RETURN_NAMES", ()) or ())
    lists = tuple(getattr(kind, "OUTPUT_IS_LIST", ()) or ())
    tooltips = tuple(getattr(kind, "OUTPUT_TOOLTIPS", ()) or ())
    return tuple(
        Output(
            type="COMBO" if isinstance(declared, list | tuple) else declared,
            name=str(names[i])
            if i < len(names)
            else "COMBO"
            if isinstance(declared, list | tuple)
            else declared,
            is_list=i < len(lists) and bool(lists[i]),
            tooltip=tooltips[i] if i < len(tooltips) else None,
            choices=list(declared) if isinstance(declared, list | tuple) else None,
        )
        for i, declared in enumerate(types)
    )


class _Instances:
    """One object a node id, so that what a node keeps on `self` outlives a prompt; the oldest go first."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._by_node: OrderedDict[str, Any] = OrderedDict()

    def of(self, node_id: str) -> Any:
        if node_id not in self._by_node:
            self._by_node[node_id] = self._kind()
        self._by_node.move_to_end(node_id)
        while len(self._by_node) > MAX_INSTANCES:
            self._by_node.popitem(last=False)
        return self._by_node[node_id]


@dataclass(frozen=True, slots=True)
class _Call:
    instances: _Instances
    function_name: str
    num_outputs: int

    def __call__(self, context: Any, **inputs: Any) -> NodeResult:
        function = getattr(self.instances.of(context.node_id), self.function_name)
        return result_of(function(**inputs), self.num_outputs)


def _calling(
    instances: _Instances, function_name: str, is_async: bool, num_outputs: int
) -> Callable[..., NodeResult | Awaitable[NodeResult]]:
    async def call_async(context: Any, **inputs: Any) -> NodeResult:
        function = getattr(instances.of(context.node_id), function_name)
        return result_of(await function(**inputs), num_outputs)

    return call_async if is_async else _Call(instances, function_name, num_outputs)


def result_of(value: Any, num_outputs: int) -> NodeResult:
    """A V1 return value: a tuple, a blocker for all outputs, a dict with ui, result and expand, or None."""
    if isinstance(value, NodeResult):
        return value
    if isinstance(value, Blocker):
        return NodeResult((value,) * num_outputs)
    if isinstance(value, Mapping):
        inner = value.get("result")
        values = result_of(inner, num_outputs).values
        return NodeResult(values, value.get("ui"), value.get("expand"))
    if value is None:
        return NodeResult()
    if isinstance(value, tuple | list):
        return NodeResult(_filled(tuple(value), num_outputs))
    if num_outputs == 0:
        # a node without outputs may return whatever its last line was
        return NodeResult()
    raise TypeError(f"a node returns a tuple or a dict, this one returned {type(value).__name__}")


def _filled(values: tuple[Any, ...], num_outputs: int) -> tuple[Any, ...]:
    """Some classes return fewer values than they declare; only who takes one of the others is concerned."""
    missing = range(len(values), num_outputs)
    absent = (
        Blocker(f"output {i} was not computed: the node returned {len(values)} values") for i in missing
    )
    return (*values, *absent)


def _lazy(instances: _Instances) -> Callable[..., Any]:
    def needs(context: Any, **known: Any) -> Any:
        return instances.of(context.node_id).check_lazy_status(**known)

    return needs


def _ignoring_library(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    takes_lists = bool(getattr(kind, "INPUT_IS_LIST", False))

    def call(_library: Library, **constants: Any) -> Any:
        return function(**({n: [value] for n, value in constants.items()} if takes_lists else constants))

    return call


def parameters_of(function: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    catches_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD}
    return frozenset(named | {"*"} if catches_all else named)
