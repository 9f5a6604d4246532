"""Nodes for language models that call tools: ask for a call, give back what came of it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, cast

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.language import CATEGORY, MaxTokens, System, Temperature, system_message, user_message
from nodes.types import AnyLlm, Chat, Image, Json, Multiline, PromptText, Seed, Socket
from runtime.llm.api import ChatRequest, Completion, Message, SamplingParams, Tool
from runtime.platform.handle import Handle

TOOLS = """[
  {
    "name": "multiply",
    "description": "Multiply two numbers.",
    "parameters": {
      "type": "object",
      "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
      "required": ["a", "b"]
    }
  }
]"""

Tools = Annotated[str, Multiline(placeholder="A JSON array of tools: name, description, parameters")]
Result = Annotated[Any, Socket("*")]


@node(
    "LLMToolCall",
    display="Tool Call of Language Model",
    category=CATEGORY,
    outputs=("tool", "arguments", "text", "chat"),
    search_aliases=("function", "agent"),
)
async def call(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    prompt: PromptText,
    tools: Tools = TOOLS,
    choice: Literal["auto", "required"] = "required",
    system: System = "",
    max_tokens: MaxTokens = 256,
    temperature: Temperature = 0.0,
    seed: Seed = 0,
    chat: Chat | None = None,
    image: Image | None = None,
) -> tuple[str, Json, str, Chat]:
    """The tool that the model wants to call and with what, or its text where it calls none.

    With "required" it must call one, and can write nothing else. Give what the tool answers to Tool Result.
    """
    offered = _tools(tools)
    asked = (*system_message(system), *(chat or ()), user_message(prompt, image))
    request = ChatRequest(
        ctx.request_id(),
        model,
        asked,
        SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed),
        tools=offered,
        must_call=tuple(tool.name for tool in offered) if choice == "required" else (),
    )
    answer = await ctx.run(cast("Handle[Completion]", ctx.llm.submit(request)))
    said = Message("assistant", answer.text, answer.tool_calls)
    if not answer.tool_calls:
        return "", {}, answer.text.strip(), (*asked, said)
    first = answer.tool_calls[0]
    return first.name, json.loads(first.arguments), answer.text.strip(), (*asked, said)


@node("LLMToolResult", display="Tool Result", category=CATEGORY, outputs=("chat",))
def result(*, chat: Chat, result: Result) -> Chat:
    """The conversation with what the tool answered, to go on from with Chat with Language Model.

    It answers the first call of the model's last turn.
    """
    calls = chat[-1].tool_calls if chat else ()
    if not calls:
        raise NodeInputError("The model's last turn calls no tool, so there is nothing to answer")
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    return (*chat, Message("tool", text, tool_call_id=calls[0].id))


def _tools(text: str) -> tuple[Tool, ...]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NodeInputError(f"The tools are no JSON: {error}") from None
    # OpenAI's form wraps each in {"type": "function", "function": ...}.
    plain = [each.get("function", each) if isinstance(each, dict) else each for each in _list(given)]
    if not plain or not all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in plain):
        raise NodeInputError("The tools should be a JSON array of objects that have a name")
    return tuple(
        Tool(each["name"], str(each.get("description", "")), json.dumps(each.get("parameters") or {}))
        for each in plain
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
