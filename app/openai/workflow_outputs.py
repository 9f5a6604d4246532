"""What a running workflow says and shows, as one growing text and its files. Pure.

Texts of its output nodes follow one another in the order of the prompt. Where nodes are titled `Output`, or
`Output: ...`, only these speak.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.events import Event, NodeFinished, NodeText
from app.openai.workflow_inputs import Definitions, Prompt, is_link

_BETWEEN = "\n\n"


@dataclass(slots=True)
class Speaker:
    """An output node; `source` is the node whose text it shows, where it shows one."""

    id: str
    source: str | None
    is_done: bool = False
    text: str = ""
    files: tuple[Mapping[str, str], ...] = ()


@dataclass(slots=True)
class Said:
    """`text` is what was told so far, and never taken back."""

    speakers: list[Speaker]
    text: str = ""
    _live: dict[str, str] = field(default_factory=dict)
    _begun: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, prompt: Prompt, definitions: Definitions) -> Said:
        nodes = {id: node for id, node in prompt.items() if _is_output(node, definitions)}
        named = {id: node for id, node in nodes.items() if _is_named(node)}
        return cls([Speaker(id, _source(node, definitions)) for id, node in (named or nodes).items()])

    @property
    def files(self) -> list[Mapping[str, str]]:
        """Those that stay, or else those that were only shown."""
        found = [file for speaker in self.speakers for file in speaker.files]
        return [file for file in found if file.get("type") == "output"] or found

    def hear(self, event: Event) -> str:
        """What may be told on account of an event."""
        match event:
            case NodeText(node=node, text=text):
                self._live[node.node_id] = text
            case NodeFinished(node=node, ui=ui) if ui:
                for speaker in self.speakers:
                    if speaker.id == node.node_id:
                        speaker.text, speaker.files = _text(ui), tuple(_files(ui))
                        speaker.is_done = True
            case NodeFinished(node=node):
                for speaker in self.speakers:
                    speaker.is_done |= speaker.id == node.node_id
        return "".join(self._advance())

    def _advance(self) -> Iterator[str]:
        """One speaks at a time; those that come later wait until it has ended."""
        for speaker in self.speakers:
            if speaker.source is None and not speaker.is_done:
                continue
            yield self._more(speaker)
            if not speaker.is_done:
                return

    def _more(self, speaker: Speaker) -> str:
        whole = speaker.text if speaker.is_done else self._live.get(speaker.source or "", "")
        told = self._begun.get(speaker.id, 0)
        if len(whole) <= told:
            return ""
        between = _BETWEEN if not told and self.text else ""
        self._begun[speaker.id] = len(whole)
        more = between + whole[told:]
        self.text += more
        return more


def _is_output(node: Mapping[str, Any], definitions: Definitions) -> bool:
    return bool(definitions.get(node.get("class_type", ""), {}).get("output_node"))


def _is_named(node: Mapping[str, Any]) -> bool:
    title = str((node.get("_meta") or {}).get("title", "")).lower().strip()
    return title == "output" or title.startswith("output:")


def _source(node: Mapping[str, Any], definitions: Definitions) -> str | None:
    given = definitions.get(node["class_type"], {}).get("input", {})
    for key, entry in given.get("required", {}).items():
        if entry and entry[0] in ("STRING", "*") and is_link(node["inputs"].get(key)):
            source: str = node["inputs"][key][0]
            return source
    return None


def _text(ui: Mapping[str, Any]) -> str:
    texts = ui.get("text")
    if isinstance(texts, str):
        return texts
    return "\n".join(str(each) for each in texts) if isinstance(texts, list | tuple) else ""


def _files(ui: Mapping[str, Any]) -> Iterator[Mapping[str, str]]:
    for shown in ui.values():
        for each in shown if isinstance(shown, list | tuple) else ():
            if isinstance(each, dict) and isinstance(each.get("filename"), str):
                yield each
