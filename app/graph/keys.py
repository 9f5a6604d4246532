"""The cache key of each node: a Merkle hash of its class, constants, fingerprint and the keys of its inputs.

Nodes with equal keys give equal results, whatever their ids. No key (None) means that a result is used by its
own job only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.graph.parse import Link, Node

Key = str | None


def cache_keys(nodes: Mapping[str, Node], stamps: Mapping[str, Key]) -> dict[str, Key]:
    """`stamps` has the outside state of those nodes that declare one; None there means "always changed"."""
    keys: dict[str, Key] = {}
    for node in in_order(nodes):
        keys[node.id] = _key(node, keys, stamps)
    return keys


def expansion_keys(
    added: Sequence[Node], parent_key: Key, keys: Mapping[str, Key], stamps: Mapping[str, Key]
) -> dict[str, Key]:
    """Constants of an expansion may be any object; then the parent's key and the node's id stand for them."""
    known = dict(keys)
    for node in in_order({node.id: node for node in added}):
        known[node.id] = _key(node, known, stamps, fallback=parent_key)
    return {node.id: known[node.id] for node in added}


def in_order(nodes: Mapping[str, Node]) -> Iterable[Node]:
    """Inputs before consumers; nodes of a cycle, and links out of `nodes`, are passed over."""
    waiting = {
        id: {link.node_id for link in node.links.values() if link.node_id in nodes}
        for id, node in nodes.items()
    }
    consumers: dict[str, list[str]] = {}
    for id, sources in waiting.items():
        for source in sources:
            consumers.setdefault(source, []).append(id)
    ready = [id for id, sources in waiting.items() if not sources]
    while ready:
        id = ready.pop()
        yield nodes[id]
        for consumer in consumers.get(id, ()):
            waiting[consumer].discard(id)
            if not waiting[consumer]:
                ready.append(consumer)


def _key(node: Node, keys: Mapping[str, Key], stamps: Mapping[str, Key], fallback: Key = None) -> Key:
    if node.id in stamps and stamps[node.id] is None:
        return None
    inputs: dict[str, Any] = {}
    for slot in node.slots:
        if slot.name in node.links:
            text = _link_text(node.links[slot.name], keys, slot.wants_link)
        elif slot.name in node.constants:
            text = _constant_text(node.constants[slot.name])
            if text is None and fallback is not None:
                text = f"of {fallback} {node.id}"
        else:
            continue
        if text is None:
            return None
        inputs[slot.name] = text
    keeps_apart = node.spec.uses_node_id or node.spec.not_idempotent
    facts = [
        node.spec.id,
        node.spec.pack,
        node.spec.version,
        stamps.get(node.id, ""),
        node.id if keeps_apart else "",
        sorted(inputs.items()),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _link_text(link: Link, keys: Mapping[str, Key], is_raw: bool) -> str | None:
    """Who takes the link itself may look at what stands behind it, by its id."""
    source = keys.get(link.node_id)
    if source is None:
        return None
    return f"link {link.node_id} {source} {link.slot}" if is_raw else f"from {source} {link.slot}"


def _constant_text(value: Any) -> str | None:
    try:
        return "is " + json.dumps(value, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        return None
