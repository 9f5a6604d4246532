"""A saved workflow -> the prompt that its editor would have queued, and a report of what was odd about it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.workflow.defaults import NOTHING
from app.workflow.groups import with_groups_unpacked
from app.workflow.instance import Instance, rounded
from app.workflow.models import missing_models
from app.workflow.report import Report
from app.workflow.resolve import Constant, LinkLoop, Resolver, Source
from app.workflow.schema import BYPASSED, MUTED, InputSlot, Node, read_workflow
from app.workflow.seeds import advance
from app.workflow.slots import input_type, slot_named
from app.workflow.texts import choose
from app.workflow.tokens import Tokens, title_of
from app.workflow.tree import Builder, Definitions
from app.workflow.virtual import is_virtual
from app.workflow.widgets import Widget, input_entries, is_socket, sent_value

_MADE_IN_A_BROWSER = frozenset({"LOAD_3D", "LOAD_3D_ADVANCED", "WEBCAM", "AUDIO_RECORD"})
_BRANCHES = "autogrow."  # the input whose rows a branch selector chooses from


@dataclass(frozen=True, slots=True)
class Conversion:
    """`promoted` are the inputs of boxes on the canvas that stand for widgets inside them, by name."""

    prompt: dict[str, dict[str, Any]]
    report: Report
    promoted: frozenset[str] = frozenset()


def convert(
    document: Mapping[str, Any],
    definitions: Definitions,
    *,
    strict: bool = False,
    advance_seeds: bool = False,
    promoted: Mapping[str, Any] | None = None,
    rng: random.Random | None = None,
    now: datetime | None = None,
) -> Conversion:
    """`definitions` is an object_info mapping. `strict` keeps to ComfyUI's front end where ours does better.

    `advance_seeds` moves values on as their control_after_generate says; else they are sent as saved.
    Values of `promoted` replace those of the inputs with these names that boxes on the canvas promote.
    Raises `NotAWorkflow`, or `ValueError` for a subgraph that contains itself.
    """
    report, rng = Report(), rng or random.Random()
    workflow = read_workflow(with_groups_unpacked(document, definitions))
    report.id_map = workflow.renumbered
    root = Builder(workflow, definitions, strict, report).build()
    if advance_seeds:
        advance(root, rng)
    boxes = list(root.children.values())
    for box in boxes:
        box.promoted |= {name: value for name, value in (promoted or {}).items() if name in box.promoted}
    tokens = Tokens(root, definitions, now or datetime.now().astimezone())
    tokens.fill_primitives()
    prompt = _Emitter(root, definitions, strict, report, rng, tokens).prompt()
    return Conversion(prompt, report, frozenset(name for box in boxes for name in box.promoted))


@dataclass(frozen=True, slots=True)
class _Emitter:
    root: Instance
    definitions: Definitions
    strict: bool
    report: Report
    rng: random.Random
    tokens: Tokens

    def prompt(self) -> dict[str, dict[str, Any]]:
        prompt: dict[str, dict[str, Any]] = {}
        for instance in self.root.walk():
            if instance.hidden:
                continue
            for node in instance.scope.nodes.values():
                if self._is_emitted(instance, node):
                    prompt[instance.execution_id(node.id)] = self._node(instance, node)
        for entry in prompt.values():
            entry["inputs"] = {
                name: value for name, value in entry["inputs"].items() if not _dangles(value, prompt)
            }
        return prompt

    def _is_emitted(self, instance: Instance, node: Node) -> bool:
        virtual = is_virtual(node.type, self.definitions, self.strict) or node.id in instance.children
        return not virtual and node.mode not in (MUTED, BYPASSED)

    def _node(self, instance: Instance, node: Node) -> dict[str, Any]:
        execution_id = instance.execution_id(node.id)
        definition = self.definitions.get(node.type)
        links = self._links(instance, node)
        if definition is None:
            self.report.miss(node.type, execution_id)
            inputs = self._unknown_values(node)
        else:
            widgets = instance.widgets[node.id]
            sent = [widget for widget in widgets if widget.sent and widget.value is not NOTHING]
            inputs = {widget.name: self._value(instance, node, widget) for widget in sent}
            self._warn_of_browser(execution_id, [w for w in widgets if w.name not in links])
            self.report.missing_models += missing_models(execution_id, node, widgets)
        inputs |= links
        if node.type == "CustomCombo":
            inputs["index"] = _row_of_choice(inputs, instance.widget(node.id, "choice"))
        meta = _meta(node, title_of(node, self.definitions))
        entry: dict[str, Any] = {"inputs": inputs, "class_type": node.type, "_meta": meta}
        if definition is None and self.strict:
            del entry["class_type"]
        return entry

    def _value(self, instance: Instance, node: Node, widget: Widget) -> Any:
        value = widget.value
        if isinstance(value, str) and widget.options.get("dynamicPrompts"):
            return choose(value, self.rng)
        if isinstance(value, str) and widget.name == "filename_prefix" and "%" in value:
            return self.tokens.fill(value)
        if widget.type == "COMFY_BRANCH_INPUT_NAMES":
            linked = instance.incoming.get(node.id, {})
            return {"__value__": [_shown(slot) for slot in node.inputs if _is_branch(slot, linked)]}
        return sent_value(widget)

    def _links(self, instance: Instance, node: Node) -> dict[str, Any]:
        links: dict[str, Any] = {}
        resolver = Resolver(self.definitions, self.strict, self.report)
        definition = self.definitions.get(node.type, {})
        for name, link in instance.incoming.get(node.id, {}).items():
            if not self._accepts(instance, node, name):
                continue
            try:
                found = resolver.follow(instance, link, input_type(node, definition, name))
            except LinkLoop as loop:
                self.report.warn(instance.execution_id(node.id), name, "loop", str(loop))
                continue
            if isinstance(found, Source):
                links[name] = [found.node, found.slot]
            elif isinstance(found, Constant):
                links[name] = self._constant(instance, node, name, found)
        return links

    def _constant(self, instance: Instance, node: Node, name: str, found: Constant) -> Any:
        """Promoted texts keep their braces, as in ComfyUI's front end: many are JSON."""
        if self.strict:
            return _wrapped(found.value)
        widget = instance.widget(node.id, name) or Widget(name, None, "*")
        value = rounded(found.value, widget) if found.is_primitive else found.value
        if isinstance(value, str) and name == "filename_prefix":
            return self.tokens.fill(value)
        return sent_value(Widget(name, value, widget.type, widget.options))

    def _accepts(self, instance: Instance, node: Node, name: str) -> bool:
        """A slot that was a widget's keeps its link only while the widget exists.

        The choices of a dynamic input may have moved: by their name, they are still what was meant.
        """
        definition = self.definitions.get(node.type)
        slot = slot_named(node, name)
        if definition is None or slot is None or slot.widget is None:
            return True
        entries = input_entries(definition)
        if instance.widget(node.id, name) is not None or name in {e[0] for e in entries if is_socket(e)}:
            return True
        if not self.strict and name.partition(".")[0] in {e[0] for e in entries if e[0] != name}:
            return True
        self.report.warn(instance.execution_id(node.id), name, "slot", "the node has no such widget any more")
        return False

    def _unknown_values(self, node: Node) -> dict[str, Any]:
        """Without a definition only the names that a file may carry are known."""
        if node.named_values and not self.strict:
            return {name: _wrapped(value) for name, value in node.named_values.items()}
        values = list(node.values.values()) if isinstance(node.values, dict) else node.values or []
        names = ["UNKNOWN" if i == 0 else f"UNKNOWN_{i}" for i in range(len(values))]
        return {name: _wrapped(value) for name, value in zip(names, values, strict=True)}

    def _warn_of_browser(self, execution_id: str, widgets: list[Widget]) -> None:
        for widget in widgets:
            if widget.type in _MADE_IN_A_BROWSER and widget.sent:
                detail = "a browser makes this value when it queues; the saved one was taken"
                self.report.warn(execution_id, widget.name, "browser", detail)


def _is_branch(slot: InputSlot, linked: Mapping[str, Any]) -> bool:
    return slot.name.startswith(_BRANCHES) and slot.name in linked


def _shown(slot: InputSlot) -> str:
    return slot.label or slot.name.removeprefix(_BRANCHES)


def _row_of_choice(inputs: Mapping[str, Any], widget: Widget | None) -> int:
    """Which of the rows of a CustomCombo holds the choice; -1 for none. What is linked is not known yet."""
    rows = [value for name, value in inputs.items() if name.startswith("option")]
    choice = inputs.get("choice")
    if isinstance(choice, list) and widget is not None:
        choice = widget.value
    return rows.index(choice) if choice in rows else -1


def _wrapped(value: Any) -> Any:
    return {"__value__": value} if isinstance(value, list) else value


def _dangles(value: Any, prompt: Mapping[str, Any]) -> bool:
    is_link = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    return is_link and value[0] not in prompt


def _meta(node: Node, title: str) -> dict[str, Any]:
    pack = {key: node.properties[key] for key in ("cnr_id", "aux_id", "ver") if node.properties.get(key)}
    return {"title": title, **pack}
