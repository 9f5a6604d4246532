"""What a node of the third style declares, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.compat.v3.inputs import Input, Output
from nodes.spec import Blocker, NodeResult


class Hidden(StrEnum):
    """Inputs that no user fills in; a node finds them in `cls.hidden`."""

    unique_id = "UNIQUE_ID"
    prompt = "PROMPT"
    extra_pnginfo = "EXTRA_PNGINFO"
    dynprompt = "DYNPROMPT"
    auth_token_comfy_org = "AUTH_TOKEN_COMFY_ORG"
    api_key_comfy_org = "API_KEY_COMFY_ORG"
    comfy_usage_source = "COMFY_USAGE_SOURCE"


@dataclass(slots=True)
class Schema:
    node_id: str
    display_name: str | None = None
    category: str = "sd"
    inputs: Sequence[Input] = field(default_factory=list)
    outputs: Sequence[Output] = field(default_factory=list)
    hidden: Sequence[Hidden] = field(default_factory=list)
    description: str = ""
    search_aliases: Sequence[str] = field(default_factory=list)
    is_input_list: bool = False
    is_output_node: bool = False
    is_deprecated: bool = False
    is_experimental: bool = False
    is_dev_only: bool = False
    is_api_node: bool = False
    price_badge: Any = None
    not_idempotent: bool = False
    enable_expand: bool = False
    accept_all_inputs: bool = False
    essentials_category: str | None = None
    has_intermediate_output: bool = False

    def validate(self) -> None:
        """Raises for names that are there twice."""
        for what, names in (("inputs", [one.id for one in self.inputs]), ("outputs", self._output_ids())):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{self.node_id} has {what} of the same name: {', '.join(twice)}")

    def _output_ids(self) -> list[str]:
        return [output.id for output in self.outputs if output.id is not None]


class HiddenHolder:
    """`cls.hidden` while a node runs; what the node did not ask for is None."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._values.get(name)


class NodeOutput:
    """Values in the order of the schema's outputs. `ui` is a dict or one of comfy_api's ui objects."""

    def __init__(
        self,
        *args: Any,
        ui: Any = None,
        expand: Mapping[str, Any] | None = None,
        block_execution: str | None = None,
    ) -> None:
        self.args = args
        self.ui = ui
        self.expand = expand
        self.block_execution = block_execution

    @property
    def result(self) -> tuple[Any, ...] | None:
        return self.args or None

    def __getitem__(self, index: int) -> Any:
        return self.args[index]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NodeOutput:
        """From a return value of the first style."""
        values = data.get("result") or ()
        return cls(*values, ui=data.get("ui"), expand=data.get("expand"))

    def node_result(self, num_outputs: int) -> NodeResult:
        ui = self.ui.as_dict() if hasattr(self.ui, "as_dict") else self.ui
        if self.block_execution is not None:
            return NodeResult((Blocker(self.block_execution),) * num_outputs, ui)
        return NodeResult(tuple(self.args), ui, self.expand)


class ComfyNode:
    """Subclasses are never made objects of: everything is a class method."""

    hidden: HiddenHolder = HiddenHolder({})

    @classmethod
    def define_schema(cls) -> Schema:
        raise NotImplementedError(f"{cls.__name__} has no define_schema")

    @classmethod
    def execute(cls, **kwargs: Any) -> NodeOutput:
        raise NotImplementedError(f"{cls.__name__} has no execute")

    @classmethod
    def GET_SCHEMA(cls) -> Schema:
        schema = cls.define_schema()
        schema.validate()
        return schema
