"""Calls of tools in a model's answer: how each style of models writes them, found piece by piece.

It knows text only: no tokens, no templates' code, and it never calls a tool.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.llm.api import Grammar, Tool, ToolCall
from runtime.platform.errors import Unsupported
from runtime.platform.registry import Registry


@dataclass(frozen=True, slots=True)
class ToolStyle:
    """A call begins with one of `opens` and ends with `close`, or with the answer where that is empty.

    Between them stands a JSON object, or an array of them, with `name` and `arguments`. A style that
    `begins_the_answer` looks nowhere else. `arguments` is the key that its models write.
    """

    opens: tuple[str, ...]
    close: str = ""
    begins_the_answer: bool = False
    keeps_open: bool = False
    arguments: str = "arguments"


styles: Registry[ToolStyle] = Registry("style of tool calls")
styles.register("hermes")(ToolStyle(("<tool_call>",), "</tool_call>"))
styles.register("mistral")(ToolStyle(("[TOOL_CALLS]",)))
styles.register("llama")(
    ToolStyle(("<|python_tag|>{", "{"), begins_the_answer=True, keeps_open=True, arguments="parameters")
)


def style_of(template: str) -> ToolStyle:
    """What a chat template teaches; Hermes' form, which Qwen and SmolLM share, where it teaches none."""
    if "[TOOL_CALLS]" in template:
        return styles["mistral"]
    if "<tool_call>" not in template and "ipython" in template:
        return styles["llama"]
    return styles["hermes"]


def instructions(tools: Sequence[Tool]) -> str:
    """What a system message says to a model whose template knows nothing of tools; Hermes' form."""
    lines = [json.dumps(as_json(tool), ensure_ascii=False) for tool in tools]
    return (
        "These tools can be called, each described as JSON on a line of its own:\n"
        + "\n".join(lines)
        + "\nTo call one, write nothing but\n"
        + '<tool_call>\n{"name": "its name", "arguments": {its arguments as JSON}}\n</tool_call>'
    )


def as_json(tool: Tool) -> dict[str, Any]:
    """The form that chat templates take."""
    function = {"name": tool.name, "description": tool.description, "parameters": _schema(tool)}
    return {"type": "function", "function": function}


def written(calls: Sequence[ToolCall]) -> str:
    """Calls of an earlier answer, as Hermes' form writes them."""
    return "\n".join(
        f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n</tool_call>'
        for call in calls
    )


def demand(style: ToolStyle, tools: Sequence[Tool]) -> Grammar:
    """An answer that is one call of one of the tools, with arguments that its schema allows."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, style.arguments: _schema(tool)},
            "required": ["name", style.arguments],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    call: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    options = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    shape = json.dumps({"x-guidance": options, **call})
    before = "" if style.keeps_open else json.dumps(style.opens[0] + ("[" if not style.close else ""))
    after = json.dumps(style.close) if style.close else "" if style.keeps_open else '"]"'
    return Grammar("lark", f"start: {before} call {after}\ncall: %json {shape}")


def _schema(tool: Tool) -> dict[str, Any]:
    try:
        schema = json.loads(tool.parameters)
    except ValueError as error:
        raise Unsupported(f"the parameters of tool {tool.name} are no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise Unsupported(f"the parameters of tool {tool.name} must be a JSON schema object")
    return schema or {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Found:
    """What may be shown by now, and the calls that are complete."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class ToolStream:
    """Parts an answer into text and calls. A beginning of a marker is held back until it is known for one.

    What looks like a call and is none, or calls what is not offered, is text.
    """

    def __init__(self, style: ToolStyle, tools: Sequence[Tool]) -> None:
        self._style = style
        self._names = {tool.name for tool in tools}
        self._held = ""
        self._open: str | None = None
        self._is_fresh = True
        self._skips_blanks = False

    def push(self, text: str) -> Found:
        self._held += text
        found = Found("")
        while (more := self._take()) is not None:
            found = Found(found.text + more.text, found.calls + more.calls)
        return found

    def finish(self) -> Found:
        """The answer has ended: what is held is a call without its end, or text."""
        rest, self._held = self._held, ""
        if self._open is None:
            return Found(self._shown(rest))
        calls = self._read(self._open, rest)
        return Found("", calls) if calls else Found(self._shown(self._open + rest))

    def _take(self) -> Found | None:
        """One step, or None when more text is needed."""
        if self._open is not None:
            return self._close()
        if self._style.begins_the_answer:
            return self._take_at_the_beginning()
        places = [(at, mark) for mark in self._style.opens if (at := self._held.find(mark)) >= 0]
        if places:
            at, self._open = min(places)
            before, self._held = self._held[:at], self._held[at + len(self._open) :]
            return Found(self._shown(before))
        return self._release(len(self._held) - self._possible_mark())

    def _take_at_the_beginning(self) -> Found | None:
        if not self._is_fresh:
            return self._release(len(self._held))
        start = self._held.lstrip()
        for mark in self._style.opens:
            if start.startswith(mark):
                self._open, self._held = mark, start[len(mark) :]
                return Found("")
        if any(mark.startswith(start) for mark in self._style.opens):
            return None
        self._is_fresh = False
        return Found("")

    def _close(self) -> Found | None:
        at = self._held.find(self._style.close) if self._style.close else -1
        if at < 0:
            return None
        assert self._open is not None
        inner, self._held = self._held[:at], self._held[at + len(self._style.close) :]
        mark, self._open = self._open, None
        calls = self._read(mark, inner)
        return Found("", calls) if calls else Found(self._shown(mark + inner + self._style.close))

    def _release(self, count: int) -> Found | None:
        if count <= 0:
            return None
        piece, self._held = self._held[:count], self._held[count:]
        return Found(self._shown(piece))

    def _shown(self, text: str) -> str:
        """Blanks between calls belong to them."""
        if self._skips_blanks:
            text = text.lstrip()
            self._skips_blanks = not text
        return text

    def _possible_mark(self) -> int:
        longest = min(max(len(mark) for mark in self._style.opens) - 1, len(self._held))
        for count in range(longest, 0, -1):
            if any(mark.startswith(self._held[-count:]) for mark in self._style.opens):
                return count
        return 0

    def _read(self, mark: str, inner: str) -> tuple[ToolCall, ...]:
        try:
            value = json.loads("{" + inner if self._style.keeps_open and mark.endswith("{") else inner)
        except (ValueError, RecursionError):
            return ()
        entries = value if isinstance(value, list) else [value]
        calls = [call for entry in entries if (call := self._call(entry)) is not None]
        if len(calls) < len(entries):
            return ()
        self._skips_blanks = True
        return tuple(calls)

    def _call(self, entry: object) -> ToolCall | None:
        if not isinstance(entry, dict) or entry.get("name") not in self._names:
            return None
        arguments = entry.get("arguments", entry.get("parameters", {}))
        if not isinstance(arguments, dict):
            return None
        text = json.dumps(arguments, ensure_ascii=False)
        return ToolCall(f"call_{secrets.token_hex(12)}", entry["name"], text)
