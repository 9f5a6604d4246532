"""Inputs that are several: unions, types that must match, inputs that grow, choices that bring inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.compat.v3.inputs import Input as PlainInput
from app.compat.v3.inputs import Output as PlainOutput
from app.compat.v3.inputs import groups_of
from app.compat.v3.sockets import ComfyTypeIO
from nodes.spec import CASES, GROWING


class MultiType(ComfyTypeIO):
    """One input that takes any of several types."""

    class Input(PlainInput):
        def __init__(self, id: str | PlainInput, types: Sequence[type[ComfyTypeIO]], **options: Any) -> None:
            self._widget = id if isinstance(id, PlainInput) else None
            if isinstance(id, PlainInput):
                options = {"display_name": id.display_name, "optional": id.optional} | options
                super().__init__(id.id, **options)
            else:
                super().__init__(id, **options)
            self.io_types = list(types)

        @property
        def wire_type(self) -> str:
            first = [self._widget.wire_type] if self._widget is not None else []
            return ",".join(dict.fromkeys([*first, *(one.io_type for one in self.io_types)]))

        def options(self) -> dict[str, Any]:
            if self._widget is None:
                return super().options()
            return self._widget.options() | super().options() | {"widgetType": self._widget.wire_type}


class MatchType(ComfyTypeIO):
    """Inputs and outputs of one template have the same type in an editor; the server does not check it."""

    io_type = "COMFY_MATCHTYPE_V3"

    class Template:
        def __init__(self, template_id: str, allowed_types: Any = None) -> None:
            self.template_id = template_id
            given = [] if allowed_types is None else allowed_types
            self.allowed_types = list(given) if isinstance(given, list | tuple | set) else [given]

        def as_dict(self) -> dict[str, Any]:
            names = ",".join(one.io_type for one in self.allowed_types) or "*"
            return {"template_id": self.template_id, "allowed_types": names}

    class Input(PlainInput):
        def __init__(self, id: str, template: MatchType.Template, **options: Any) -> None:
            super().__init__(id, **options)
            self.template = template
            self._of_its_kind = {"template": template}

    class Output(PlainOutput):
        def __init__(self, template: MatchType.Template, id: str | None = None, **options: Any) -> None:
            super().__init__(id, **options)
            self.template = template


class Autogrow(ComfyTypeIO):
    """As many inputs as there are links, within limits; the node gets a dict."""

    io_type = GROWING
    Type = dict[str, Any]

    class TemplatePrefix:
        def __init__(self, input: PlainInput, prefix: str, min: int = 1, max: int = 10) -> None:
            self.input, self.prefix, self.min, self.max = input, prefix, min, max

        def as_dict(self) -> dict[str, Any]:
            of_each = groups_of([self.input])
            return {"input": of_each, "prefix": self.prefix, "min": self.min, "max": self.max}

    class TemplateNames:
        def __init__(self, input: PlainInput, names: Sequence[str], min: int = 1) -> None:
            self.input, self.names, self.min = input, list(names), min

        def as_dict(self) -> dict[str, Any]:
            return {"input": groups_of([self.input]), "names": self.names, "min": self.min}

    class Input(PlainInput):
        def __init__(self, id: str, template: Any, **options: Any) -> None:
            super().__init__(id, **options)
            self.template = template
            self._of_its_kind = {"template": template}


class DynamicCombo(ComfyTypeIO):
    """A choice that decides which further inputs there are; the node gets a dict."""

    io_type = CASES
    Type = dict[str, Any]

    class Option:
        def __init__(self, key: str, inputs: Sequence[PlainInput]) -> None:
            self.key, self.inputs = key, list(inputs)

        def as_dict(self) -> dict[str, Any]:
            return {"key": self.key, "inputs": groups_of(self.inputs)}

    class Input(PlainInput):
        def __init__(self, id: str, options: Sequence[DynamicCombo.Option], **shared: Any) -> None:
            super().__init__(id, **shared)
            self.options_ = list(options)
            self._of_its_kind = {"options": [option.as_dict() for option in options]}
