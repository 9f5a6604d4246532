"""Small workflows for tests, drawn in a few words: nodes, links, subgraphs."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"
DEFINITIONS: dict[str, Any] = json.loads((GOLDEN / "object_info.json").read_text()) | json.loads(
    (GOLDEN / "object_info_synthetic.json").read_text()
)


def node(node_id: Any, kind: str, inputs: str = "", values: Any = None, **more: Any) -> dict[str, Any]:
    """`inputs` are "name:TYPE" or, for what a widget turned into, "name=TYPE"; links are added by `graph`."""
    slots = []
    for text in inputs.split():
        name, colon, slot_type = text.partition(":" if ":" in text else "=")
        slot: dict[str, Any] = {"name": name, "type": slot_type, "link": None}
        if colon == "=":
            slot["widget"] = {"name": name}
        slots.append(slot)
    given = {} if values is None else {"widgets_values": values}
    return {"id": node_id, "type": kind, "inputs": slots, "properties": {}, **given, **more}


def graph(nodes: list[dict[str, Any]], *links: tuple[Any, int, Any, str], **more: Any) -> dict[str, Any]:
    """`links` go from a node's output to an input by its name."""
    by_id = {entry["id"]: entry for entry in nodes}
    listed = []
    for number, (origin, slot, target, name) in enumerate(links, 1):
        index = -1
        for position, entry in enumerate(by_id[target]["inputs"]):
            if entry["name"] == name:
                entry["link"], index = number, position
        listed.append([number, origin, slot, target, index, "*"])
    return {"nodes": nodes, "links": listed, "version": 0.4, **more}


def subgraph(
    name: str,
    nodes: list[dict[str, Any]],
    *links: tuple[Any, int, Any, str],
    inputs: str = "",
    outputs: str = "",
) -> dict[str, Any]:
    """Links from "in" start at an input by its place; links to "out" end at an output named by its place."""
    by_id = {entry["id"]: entry for entry in nodes}
    listed = []
    ports: list[dict[str, Any]] = [{"name": port, "type": "*", "linkIds": []} for port in inputs.split()]
    for number, (origin, slot, target, end) in enumerate(links, 1):
        index = int(end) if target == "out" else -1
        for position, entry in enumerate(by_id[target]["inputs"] if target in by_id else ()):
            if entry["name"] == end:
                entry["link"], index = number, position
        if origin == "in":
            ports[slot]["linkIds"].append(number)
        listed.append(
            {
                "id": number,
                "origin_id": -10 if origin == "in" else origin,
                "origin_slot": slot,
                "target_id": -20 if target == "out" else target,
                "target_slot": index,
                "type": "*",
            }
        )
    ends = [{"name": port, "type": "*"} for port in outputs.split()]
    return {
        "id": name,
        "name": name,
        "version": 1,
        "nodes": nodes,
        "links": listed,
        "inputs": ports,
        "outputs": ends,
    }


def with_subgraphs(workflow: dict[str, Any], *subgraphs: dict[str, Any]) -> dict[str, Any]:
    return {**workflow, "definitions": {"subgraphs": list(subgraphs)}}
