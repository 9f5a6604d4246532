"""Where a workflow takes what a chat gives it, by the titles of its nodes. Pure.

`Input: NAME` as a node's title, in any case, makes the node the place of NAME; without one, a node that is
called NAME is. A prompt may go to a workflow's only primitive text, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Value = str | int | float | bool
Prompt = dict[str, dict[str, Any]]
Definitions = Mapping[str, Mapping[str, Any]]

PROMPT = "prompt"
_PRIMITIVE_TEXTS = ("PrimitiveString", "PrimitiveStringMultiline")


def filled(prompt: Prompt, given: Mapping[str, Value], definitions: Definitions) -> tuple[Prompt, set[str]]:
    """The prompt with all values that have a place in it, and the names of these."""
    result = {id: {**node, "inputs": dict(node.get("inputs", {}))} for id, node in prompt.items()}
    placed = set()
    for name, value in given.items():
        for nodes in _candidates(result, name):
            keys = [(node, _input(node, name, value, definitions)) for node in nodes]
            free = [(node, key) for node, key in keys if key is not None]
            for node, key in free:
                node["inputs"][key] = value
            if free:
                placed.add(name)
                break
    return result, placed


def _candidates(prompt: Prompt, name: str) -> Iterator[list[dict[str, Any]]]:
    """The nodes that are meant, or else those that may be."""
    titles = [(_title(node), node) for node in prompt.values()]
    for wanted in (f"input: {name}", name):
        yield [node for title, node in titles if title == wanted.lower()]
    texts = [node for node in prompt.values() if node.get("class_type") in _PRIMITIVE_TEXTS]
    if name == PROMPT and len(texts) == 1:
        yield texts


def _title(node: Mapping[str, Any]) -> str:
    meta = node.get("_meta")
    title = meta.get("title") if isinstance(meta, dict) else None
    return " ".join(title.lower().split()) if isinstance(title, str) else ""


def _input(node: Mapping[str, Any], name: str, value: Value, definitions: Definitions) -> str | None:
    """The input of that name, or else the first that is not linked and takes such a value."""
    given = definitions.get(node.get("class_type", ""), {}).get("input", {})
    entries = {key: entry for part in ("required", "optional") for key, entry in given.get(part, {}).items()}
    free = [key for key in entries if key in node["inputs"] and not is_link(node["inputs"][key])]
    if name in free:
        return name
    return next((key for key in free if _takes(entries[key], name, value)), None)


def _takes(entry: Any, name: str, value: Value) -> bool:
    kind = entry[0] if isinstance(entry, list | tuple) and entry else None
    options = entry[1] if len(entry) > 1 and isinstance(entry[1], dict) else {}
    if name.split()[0] == "image":
        return bool(options.get("image_upload"))
    match value:
        case bool():
            return kind == "BOOLEAN"
        case int():
            return kind in ("INT", "FLOAT")
        case float():
            return kind == "FLOAT"
    return kind == "STRING"


def is_link(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
