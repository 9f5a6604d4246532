"""One input or output of a schema, as data: its name, its type on the wire, its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

Entry = tuple[str, dict[str, Any]]


def plain(value: Any) -> Any:
    """Enum members and option objects as the JSON that they stand for."""
    if isinstance(value, Enum):
        return value.value
    return value.as_dict() if hasattr(value, "as_dict") else value


def present(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: plain(value) for key, value in options.items() if value is not None}


class Input:
    """`wire_type` is the socket's name in prompts and links."""

    io_type: ClassVar[str] = "*"

    def __init__(
        self,
        id: str,
        display_name: str | None = None,
        optional: bool = False,
        tooltip: str | None = None,
        lazy: bool | None = None,
        extra_dict: Mapping[str, Any] | None = None,
        raw_link: bool | None = None,
        advanced: bool | None = None,
    ) -> None:
        self.id = id
        self.display_name = display_name
        self.optional = optional
        self.tooltip = tooltip
        self.lazy = lazy
        self.extra_dict = dict(extra_dict or {})
        self.rawLink = raw_link
        self.advanced = advanced
        self._of_its_kind: dict[str, Any] = {}

    @property
    def wire_type(self) -> str:
        return self.io_type

    def get_io_type(self) -> str:
        return self.wire_type

    def options(self) -> dict[str, Any]:
        common = {
            "display_name": self.display_name,
            "tooltip": self.tooltip,
            "lazy": self.lazy,
            "rawLink": self.rawLink,
            "advanced": self.advanced,
        }
        return present({**common, **self._of_its_kind}) | self.extra_dict

    def entry(self) -> Entry:
        return self.wire_type, self.options()


class WidgetInput(Input):
    """An input that is a field on the node unless something is linked to it."""

    def __init__(
        self,
        id: str,
        display_name: str | None = None,
        optional: bool = False,
        tooltip: str | None = None,
        lazy: bool | None = None,
        default: Any = None,
        socketless: bool | None = None,
        widget_type: str | None = None,
        force_input: bool | None = None,
        extra_dict: Mapping[str, Any] | None = None,
        raw_link: bool | None = None,
        advanced: bool | None = None,
        **of_its_kind: Any,
    ) -> None:
        super().__init__(id, display_name, optional, tooltip, lazy, extra_dict, raw_link, advanced)
        self.default = default
        self._of_its_kind = {
            "default": default,
            "socketless": socketless,
            "widgetType": widget_type,
            "forceInput": force_input,
            **of_its_kind,
        }


class Output:
    io_type: ClassVar[str] = "*"

    def __init__(
        self,
        id: str | None = None,
        display_name: str | None = None,
        tooltip: str | None = None,
        is_output_list: bool = False,
    ) -> None:
        self.id = id
        self.display_name = display_name
        self.tooltip = tooltip
        self.is_output_list = is_output_list

    @property
    def wire_type(self) -> str:
        return self.io_type

    def get_io_type(self) -> str:
        return self.wire_type


def groups_of(inputs: Sequence[Input]) -> dict[str, dict[str, Entry]]:
    """In the form of INPUT_TYPES."""
    groups: dict[str, dict[str, Entry]] = {"required": {}, "optional": {}}
    for one in inputs:
        groups["optional" if one.optional else "required"][one.id] = one.entry()
    return groups
