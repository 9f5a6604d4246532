"""A saved workflow -> the prompt that its editor would have queued, and a report of what was odd about it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.workflow.instances import FRONTEND_ONLY, Builder, Definitions, Instance, rounded, slot_named
from app.workflow.report import Report
from app.workflow.resolve import Constant, LinkLoop, Resolver, Source
from app.workflow.schema import BYPASSED, MUTED, Node, read_workflow
from app.workflow.texts import choose, fill_tokens
from app.workflow.widgets import NOTHING, Widget, input_entries, is_socket, sent_value

SAVE_NODES = frozenset(
    {"SaveImage", "SaveImageWebsocket", "SaveAnimatedWEBP", "SaveAnimatedPNG", "SaveLatent", "SaveGLB"}
)


@dataclass(frozen=True, slots=True)
class Conversion:
    prompt: dict[str, dict[str, Any]]
    report: Report


def convert(
    document: Mapping[str, Any],
    definitions: Definitions,
    *,
    strict: bool = False,
    rng: random.Random | None = None,
    now: datetime | None = None,
) -> Conversion:
    """`definitions` is an object_info mapping. `strict` keeps to ComfyUI's front end where ours does better.

    Raises `NotAWorkflow`, or `ValueError` for a subgraph that contains itself.
    """
    report = Report()
    workflow = read_workflow(document)
    report.id_map = workflow.renumbered
    root = Builder(workflow, definitions, strict, report).build()
    emitter = _Emitter(
        root, definitions, strict, report, rng or random.Random(), now or datetime.now().astimezone()
    )
    return Conversion(emitter.prompt(), report)


@dataclass(frozen=True, slots=True)
class _Emitter:
    root: Instance
    definitions: Definitions
    strict: bool
    report: Report
    rng: random.Random
    now: datetime

    def prompt(self) -> dict[str, dict[str, Any]]:
        prompt: dict[str, dict[str, Any]] = {}
        for instance in self.root.walk():
            if instance.hidden:
                continue
            for node in instance.scope.nodes.values():
                if _is_emitted(instance, node):
                    prompt[instance.execution_id(node.id)] = self._node(instance, node)
        for entry in prompt.values():
            entry["inputs"] = {
                name: value for name, value in entry["inputs"].items() if not _dangles(value, prompt)
            }
        return prompt

    def _node(self, instance: Instance, node: Node) -> dict[str, Any]:
        execution_id = instance.execution_id(node.id)
        definition = self.definitions.get(node.type)
        if definition is None:
            self.report.miss(node.type, execution_id)
            inputs = _unknown_values(node)
        else:
            inputs = {}
            for widget in instance.widgets[node.id]:
                if widget.sent and widget.value is not NOTHING:
                    inputs[widget.name] = self._value(instance, node, widget)
        inputs |= self._links(instance, node)
        title = node.title or (definition or {}).get("display_name") or node.type
        entry: dict[str, Any] = {"inputs": inputs, "class_type": node.type, "_meta": _meta(node, title)}
        if definition is None and self.strict:
            del entry["class_type"]
        return entry

    def _value(self, instance: Instance, node: Node, widget: Widget) -> Any:
        value = widget.value
        if isinstance(value, str) and widget.options.get("dynamicPrompts"):
            return choose(value, self.rng)
        if isinstance(value, str) and widget.name == "filename_prefix" and "%" in value:
            return fill_tokens(value, self._widget_text, self.now)
        if widget.type == "COMFY_BRANCH_INPUT_NAMES":
            linked = [name for (target, name) in instance.incoming if target == node.id]
            return {"__value__": linked}
        return sent_value(widget)

    def _links(self, instance: Instance, node: Node) -> dict[str, Any]:
        links: dict[str, Any] = {}
        resolver = Resolver(self.definitions, self.strict, self.report)
        for (target, name), link in instance.incoming.items():
            if target != node.id or not self._accepts(instance, node, name):
                continue
            try:
                found = resolver.follow(instance, link, resolver.input_type(node, name))
            except LinkLoop as loop:
                self.report.warn(instance.execution_id(node.id), name, "loop", str(loop))
                continue
            if isinstance(found, Source):
                links[name] = [found.node, found.slot]
            elif isinstance(found, Constant):
                widget = instance.widget(node.id, name) or Widget(name, None, "*")
                filled = Widget(name, rounded(found.value, widget), widget.type, widget.options)
                links[name] = self._value(instance, node, filled)
        return links

    def _accepts(self, instance: Instance, node: Node, name: str) -> bool:
        """A slot that was a widget's keeps its link only while the widget exists."""
        definition = self.definitions.get(node.type)
        slot = slot_named(node, name)
        if definition is None or slot is None or slot.widget is None:
            return True
        sockets = {entry[0] for entry in input_entries(definition) if is_socket(entry)}
        return name in sockets or instance.widget(node.id, name) is not None or not self.strict

    def _widget_text(self, name: str, widget_name: str) -> str | None:
        for instance in self.root.walk():
            for node in instance.scope.nodes.values():
                if name in (node.properties.get("Node name for S&R"), node.title):
                    widget = instance.widget(node.id, widget_name)
                    return None if widget is None else str(widget.value)
        return None


def _is_emitted(instance: Instance, node: Node) -> bool:
    virtual = node.type in FRONTEND_ONLY or node.id in instance.children
    return not virtual and node.mode not in (MUTED, BYPASSED)


def _dangles(value: Any, prompt: Mapping[str, Any]) -> bool:
    is_link = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    return is_link and value[0] not in prompt


def _unknown_values(node: Node) -> dict[str, Any]:
    """Values of a node without a definition have no names."""
    values = list(node.values.values()) if isinstance(node.values, dict) else node.values or []
    names = ["UNKNOWN" if i == 0 else f"UNKNOWN_{i}" for i in range(len(values))]
    return {
        name: {"__value__": value} if isinstance(value, list) else value
        for name, value in zip(names, values, strict=True)
    }


def _meta(node: Node, title: str) -> dict[str, Any]:
    pack = {key: node.properties[key] for key in ("cnr_id", "aux_id", "ver") if node.properties.get(key)}
    return {"title": title, **pack}
