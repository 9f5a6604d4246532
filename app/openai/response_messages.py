"""Items of the Responses API into a chat's body, and an answer back into the items that it gives. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.openai.response_types import (
    FunctionCall,
    FunctionOutput,
    InputImage,
    InputItem,
    InputMessage,
    InputPart,
    InputText,
    NamedFunction,
    ResponseBody,
)
from app.openai.shapes import Json
from app.openai.types import ChatBody, ChatMessage
from runtime.llm.api import Completion, ToolCall


def chat_body(body: ResponseBody, earlier: Sequence[ChatMessage]) -> ChatBody:
    """`earlier` is the conversation that the body goes on with; its instructions belonged to its time."""
    instructions = [_message("system", body.instructions)] if body.instructions else []
    chat: Json = {
        "model": body.model,
        "messages": [*instructions, *earlier, *messages(body.input)],
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": body.top_k,
        "seed": body.seed,
        "max_completion_tokens": body.max_output_tokens,
        "response_format": _format(body),
        "tools": [_tool(each.model_dump(exclude={"type"})) for each in body.tools or []] or None,
        "tool_choice": _choice(body),
        "reasoning_effort": body.reasoning.effort if body.reasoning else None,
        "chat_template_kwargs": body.chat_template_kwargs,
        "inputs": body.inputs,
    }
    return ChatBody.model_validate(chat)


def messages(given: str | Sequence[InputItem]) -> list[ChatMessage]:
    """Calls that follow one another were one answer, which may have begun with a text."""
    if isinstance(given, str):
        return [_message("user", given)]
    found: list[ChatMessage] = []
    for item in given:
        match item:
            case InputMessage(role=role, content=content):
                found.append(_message(role, _content(content)))
            case FunctionOutput(call_id=call_id, output=output):
                found.append(_message("tool", _content(output), tool_call_id=call_id))
            case FunctionCall():
                if not (found and found[-1].role == "assistant"):
                    found.append(_message("assistant", None))
                calls = [call.model_dump() for call in found[-1].tool_calls or []]
                calls.append(_call(item.call_id, item.name, item.arguments))
                found[-1] = ChatMessage.model_validate({**found[-1].model_dump(), "tool_calls": calls})
    return found


def said(answer: Completion) -> ChatMessage:
    """An answer as a later question's conversation holds it."""
    calls = [_call(call.id, call.name, call.arguments) for call in answer.tool_calls]
    return _message("assistant", answer.text, tool_calls=calls or None)


def _message(role: str, content: Any, **more: Any) -> ChatMessage:
    return ChatMessage.model_validate({"role": role, "content": content, **more})


def _content(given: str | Sequence[InputPart]) -> str | list[Json]:
    return given if isinstance(given, str) else [_part(part) for part in given]


def _part(part: InputPart) -> Json:
    match part:
        case InputText(text=text):
            return {"type": "text", "text": text}
        case InputImage(image_url=url):
            return {"type": "image_url", "image_url": url}
    return part.model_dump()


def _call(id: str, name: str, arguments: str) -> Json:
    return {"id": id, "function": {"name": name, "arguments": arguments}}


def _tool(function: Json) -> Json:
    return {"type": "function", "function": function}


def _choice(body: ResponseBody) -> Any:
    choice = body.tool_choice
    return _tool({"name": choice.name}) if isinstance(choice, NamedFunction) else choice


def _format(body: ResponseBody) -> Json | None:
    given = body.text.format if body.text else None
    if given is None:
        return None
    if given.type != "json_schema":
        return {"type": given.type}
    return {"type": "json_schema", "json_schema": given.model_dump(by_alias=True, exclude={"type"})}


# -- answers -------------------------------------------------------------------------------------------------


def reasoning_item(key: str, text: str, status: str = "completed") -> Json:
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {
        "id": f"rs_{key}",
        "type": "reasoning",
        "summary": [],
        "content": content,
        "status": status,
    }


def text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(key: str, content: list[Json], status: str = "completed", **more: Any) -> Json:
    head = {"id": f"msg_{key}", "type": "message", "role": "assistant"}
    return {**head, "status": status, "content": content, **more}


def call_item(call: ToolCall, arguments: str, status: str = "completed") -> Json:
    head = {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": call.name}
    return {**head, "arguments": arguments, "status": status}


def image_items(answer_id: str, answer: Completion) -> list[Json]:
    """Pictures that a workflow made."""
    uris = (answer.extended or {}).get("images", ())
    return [
        {
            "id": f"ig_{answer_id}_{number}",
            "type": "image_generation_call",
            "status": "completed",
            "result": uri.partition(",")[2],
        }
        for number, uri in enumerate(uris)
    ]
