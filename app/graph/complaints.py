"""What validation says about a prompt, in the words that clients match on. One constructor a form."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodes.spec import Slot

LONG_LIST = 20


@dataclass(frozen=True, slots=True)
class Complaint:
    type: str
    message: str
    details: str = ""
    extra_info: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "message": self.message,
            "details": self.details,
            "extra_info": dict(self.extra_info),
        }


@dataclass(frozen=True, slots=True)
class NodeComplaints:
    class_type: str
    errors: tuple[Complaint, ...]
    dependent_outputs: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "errors": [error.as_json() for error in self.errors],
            "dependent_outputs": list(self.dependent_outputs),
            "class_type": self.class_type,
        }


@dataclass(frozen=True, slots=True)
class PromptRejected:
    """Nothing of the prompt can run. `as_json` is the body of the 400 answer."""

    error: Complaint
    node_errors: Mapping[str, NodeComplaints] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "error": self.error.as_json(),
            "node_errors": {id: node.as_json() for id, node in self.node_errors.items()},
        }


def invalid_prompt(reason: str) -> Complaint:
    return Complaint("invalid_prompt", "Invalid prompt", reason)


def missing_node_type(node_id: str, class_type: str | None, title: str) -> Complaint:
    if class_type is None:
        message = (
            f"Node '{title}' has no class_type. The workflow may be corrupted or a custom node is missing."
        )
    else:
        message = f"Node '{title}' not found. The custom node may not be installed."
    return Complaint(
        "missing_node_type",
        message,
        f"Node ID '#{node_id}'",
        {"node_id": node_id, "class_type": class_type, "node_title": title},
    )


def no_outputs() -> Complaint:
    return Complaint("prompt_no_outputs", "Prompt has no outputs")


def outputs_failed(on_outputs: Sequence[Complaint]) -> Complaint:
    details = "\n".join(f"{error.message}: {error.details}" for error in on_outputs)
    return Complaint("prompt_outputs_failed_validation", "Prompt outputs failed validation", details)


def required_input_missing(name: str) -> Complaint:
    return Complaint(
        "required_input_missing", "Required input is missing", name.rpartition(".")[2], {"input_name": name}
    )


def bad_linked_input(slot: Slot, received: Any) -> Complaint:
    return Complaint(
        "bad_linked_input",
        "Bad linked input, must be a length-2 list of [node_id, slot_index]",
        slot.name,
        _about(slot, received_value=received),
    )


def return_type_mismatch(slot: Slot, received_type: Any, link: Sequence[Any]) -> Complaint:
    return Complaint(
        "return_type_mismatch",
        "Return type mismatch between linked nodes",
        f"{slot.name}, received_type({received_type}) mismatch input_type({slot.config()[0]})",
        _about(slot, received_type=received_type, linked_node=list(link)),
    )


def invalid_input_type(slot: Slot, received: Any, error: BaseException) -> Complaint:
    return Complaint(
        "invalid_input_type",
        f"Failed to convert an input value to a {slot.type} value",
        f"{slot.name}, {received}, {error}",
        _about(slot, received_value=received, exception_message=str(error)),
    )


def value_smaller_than_min(slot: Slot, value: Any) -> Complaint:
    return Complaint(
        "value_smaller_than_min",
        f"Value {value} smaller than min of {slot.options['min']}",
        slot.name,
        _about(slot, received_value=value),
    )


def value_bigger_than_max(slot: Slot, value: Any) -> Complaint:
    return Complaint(
        "value_bigger_than_max",
        f"Value {value} bigger than max of {slot.options['max']}",
        slot.name,
        _about(slot, received_value=value),
    )


def value_not_in_list(slot: Slot, value: Any, choices: Sequence[Any]) -> Complaint:
    is_long = len(choices) > LONG_LIST
    listed = f"(list of length {len(choices)})" if is_long else str(list(choices))
    extra = _about(slot, received_value=value) | ({"input_config": None} if is_long else {})
    return Complaint(
        "value_not_in_list", "Value not in list", f"{slot.name}: '{value}' not in {listed}", extra
    )


def custom_validation_failed(name: str, verdict: object) -> Complaint:
    details = name if verdict is False else f"{name} - {verdict}"
    return Complaint(
        "custom_validation_failed", "Custom validation failed for node", details, {"input_name": name}
    )


def exception_on_output(error: BaseException) -> Complaint:
    return Complaint(
        "exception_during_validation",
        "Exception when validating node",
        str(error),
        {"exception_type": type_name(error), "traceback": _trace(error)},
    )


def exception_upstream(error: BaseException, slot: Slot, link: Sequence[Any]) -> Complaint:
    """`slot` and `link` belong to the consumer that led to the node at fault."""
    return Complaint(
        "exception_during_inner_validation",
        "Exception when validating inner node",
        str(error),
        _about(
            slot,
            exception_message=str(error),
            exception_type=type_name(error),
            traceback=_trace(error),
            linked_node=list(link),
        ),
    )


def dependency_cycle(node_id: str, path: Sequence[tuple[str, str]]) -> Complaint:
    """`path` holds (id, class) and ends where it began."""
    return Complaint(
        "dependency_cycle",
        "Dependency cycle detected",
        " -> ".join(f"{id} ({class_type})" for id, class_type in path),
        {"node_id": node_id, "cycle_nodes": [id for id, _ in path[:-1]]},
    )


def type_name(error: BaseException) -> str:
    """Dotted, as clients know it: builtins without their module."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _about(slot: Slot, **facts: Any) -> dict[str, Any]:
    return {"input_name": slot.name, "input_config": slot.config()} | facts


def _trace(error: BaseException) -> list[str]:
    """Our own faults carry a note that says more than a stack would."""
    notes: list[str] = getattr(error, "__notes__", [])
    return notes or traceback.format_tb(error.__traceback__)
