"""The progress of one job as a bar on standard error. Nodes report from several threads."""

from __future__ import annotations

import threading
from types import TracebackType

from tqdm import tqdm

from app import events
from app.events import Event
from app.graph.parse import Graph


class ProgressBar:
    """Use it as a context; `publish` takes the job's events."""

    def __init__(self, graph: Graph, total: int, hidden: bool) -> None:
        self._graph = graph
        self._lock = threading.Lock()
        self._done: set[str] = set()
        self._bar = tqdm(total=total, unit="node", disable=hidden, leave=False, dynamic_ncols=True)

    def publish(self, event: Event) -> None:
        with self._lock:
            match event:
                case events.NodeStarted(node=node):
                    self._bar.set_description(self._title(node.display_id))
                case events.NodeProgress(node=node, value=value, maximum=maximum):
                    self._bar.set_description(f"{self._title(node.display_id)} {value:g}/{maximum:g}")
                case events.NodeFinished(node=node):
                    self._finish((node.node_id,))
                case events.ExecutionCached(nodes=nodes):
                    self._finish(nodes)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def _finish(self, node_ids: tuple[str, ...]) -> None:
        fresh = [
            node_id for node_id in node_ids if node_id not in self._done and node_id in self._graph.nodes
        ]
        self._done.update(fresh)
        self._bar.update(len(fresh))

    def _title(self, node_id: str) -> str:
        node = self._graph.nodes.get(node_id)
        return node_id if node is None else f"{node.spec.display_name} ({node_id})"
