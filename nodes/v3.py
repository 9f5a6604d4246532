"""ComfyUI's V3 node classes, those with a `define_schema`, as NodeSpecs. It knows their shape alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from nodes.foreign import contained
from nodes.legacy import parameters_of, result_of
from nodes.spec import Library, NodeResult, NodeSpec, Output, Slot

_AUTOMATIC = ("prompt", "extra_pnginfo")
_OF_API_NODES = ("auth_token_comfy_org", "api_key_comfy_org", "comfy_usage_source")


def is_v3(kind: Any) -> bool:
    return hasattr(kind, "define_schema")


def spec_of_schema(kind: Any, pack: str | None, display_name: str | None = None) -> NodeSpec:
    """Raises what `define_schema` raises."""
    schema = contained(kind.GET_SCHEMA)
    outputs = tuple(_output(one) for one in schema.outputs)
    check, fingerprint = _own(kind, "validate_inputs"), _own(kind, "fingerprint_inputs")
    return NodeSpec(
        id=schema.node_id,
        display_name=display_name or schema.display_name or schema.node_id,
        category=schema.category,
        inputs=lambda _library: _slots(contained(kind.GET_SCHEMA)),
        outputs=outputs,
        call=_calling(kind, schema, len(outputs)),
        description=schema.description,
        is_async=inspect.iscoroutinefunction(kind.execute),
        is_output=schema.is_output_node,
        input_is_list=schema.is_input_list,
        not_idempotent=schema.not_idempotent,
        deprecated=schema.is_deprecated,
        experimental=schema.is_experimental,
        python_module=f"custom_nodes.{pack}" if pack else "nodes",
        pack=pack,
        lazy_needs=_lazy(kind, schema) if _own(kind, "check_lazy_status") else None,
        fingerprint=_without_library(fingerprint, schema) if fingerprint else None,
        check=_without_library(check, schema) if check else None,
        checked_inputs=parameters_of(check) if check else frozenset(),
        search_aliases=tuple(schema.search_aliases),
        uses_node_id=any(_name(one) == "unique_id" for one in schema.hidden),
        foreign=True,
        accepts_any_input=schema.accept_all_inputs,
        is_api_node=schema.is_api_node,
        has_intermediate_output=schema.has_intermediate_output,
    )


def _slots(schema: Any) -> tuple[Slot, ...]:
    given = [
        Slot.of(one.id, one.entry(), "optional" if one.optional else "required") for one in schema.inputs
    ]
    hidden = [Slot.of(name, name.upper(), "hidden") for name in _hidden_names(schema)]
    return (*given, *hidden)


def _hidden_names(schema: Any) -> list[str]:
    names = [_name(one) for one in schema.hidden]
    names += _AUTOMATIC if schema.is_output_node else ()
    names += _OF_API_NODES if schema.is_api_node else ()
    return list(dict.fromkeys(names))


def _name(hidden: Any) -> str:
    return str(getattr(hidden, "value", hidden)).lower()


def _output(declared: Any) -> Output:
    name = declared.display_name or declared.id or declared.wire_type
    return Output(declared.wire_type, name, declared.is_output_list, declared.tooltip)


def _own(kind: Any, name: str) -> Callable[..., Any] | None:
    """None where the class says nothing about it."""
    function: Callable[..., Any] | None = getattr(kind, name, None)
    return function


def _calling(kind: Any, schema: Any, num_outputs: int) -> Callable[..., Any]:
    hidden_names = _hidden_names(schema)

    def running(hidden: Mapping[str, Any]) -> Any:
        """A class of its own for each call, so that calls side by side have each their hidden inputs."""
        return type(kind.__name__, (kind,), {"hidden": kind.hidden.__class__(hidden)})

    def split(inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        hidden = {name: inputs.pop(name) for name in hidden_names if name in inputs}
        return running(hidden), inputs

    async def call_async(_context: Any, **inputs: Any) -> NodeResult:
        bound, given = split(inputs)
        return _result(await bound.execute(**given), num_outputs)

    def call(_context: Any, **inputs: Any) -> NodeResult:
        bound, given = split(inputs)
        return _result(bound.execute(**given), num_outputs)

    return call_async if inspect.iscoroutinefunction(kind.execute) else call


def _result(value: Any, num_outputs: int) -> NodeResult:
    if hasattr(value, "node_result"):
        result: NodeResult = value.node_result(num_outputs)
        return result
    return result_of(value, num_outputs)


def _lazy(kind: Any, schema: Any) -> Callable[..., Any]:
    hidden = frozenset(_hidden_names(schema))

    def needs(_context: Any, **known: Any) -> Any:
        return kind.check_lazy_status(**{name: value for name, value in known.items() if name not in hidden})

    return needs


def _without_library(function: Callable[..., Any], schema: Any) -> Callable[..., Any]:
    hidden = frozenset(_hidden_names(schema))

    def call(_library: Library, **constants: Any) -> Any:
        given = {name: value for name, value in constants.items() if name not in hidden}
        return function(**({n: [value] for n, value in given.items()} if schema.is_input_list else given))

    return call
