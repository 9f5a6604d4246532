"""Bodies into requests for the language runtime: one for each answer that is wanted."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.errors import BadRequest
from app.openai.content import Contents
from app.openai.structures import grammar_of
from app.openai.types import (
    ChatBody,
    ChatMessage,
    CompletionBody,
    FunctionTool,
    NamedTool,
    Sampling,
    TokenizeBody,
)
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    Media,
    Message,
    SamplingParams,
    TokenizeRequest,
    Tool,
    ToolCall,
)

# Without a limit an answer may fill the model's context.
_NO_LIMIT = 1 << 30
_COMPLETION_TOKENS = 16

Prompt = str | tuple[int, ...]


def new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex}"


def chat(body: ChatBody, answer_id: str, contents: Contents) -> list[ChatRequest]:
    logprobs = body.top_logprobs or 0 if body.logprobs else None
    if body.top_logprobs is not None and not body.logprobs:
        raise BadRequest("top_logprobs needs logprobs to be true")
    limit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    if body.add_generation_prompt and body.continue_final_message:
        raise BadRequest("add_generation_prompt and continue_final_message exclude each other")
    params = _params(body, limit if limit is not None else _NO_LIMIT, logprobs)
    offered = body.tools or []
    must_call = _must_call(body)
    request = ChatRequest(
        answer_id,
        body.model,
        messages(body.messages, contents),
        params,
        tools=() if body.tool_choice == "none" else tuple(_tool(each) for each in offered),
        must_call=must_call,
        template_arguments=_template_arguments(body),
        continues_last=body.continue_final_message,
        opens_answer=body.add_generation_prompt is not False,
        separates_reasoning=body.separate_reasoning,
        adapter=body.lora_path,
    )
    return [
        replace(request, id=f"{answer_id}.{index}", params=_nth(params, index))
        for index in range(body.n or 1)
    ]


def complete(body: CompletionBody, answer_id: str) -> list[list[CompleteRequest]]:
    """One list for each prompt."""
    limit = _COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
    if limit == 0 and body.echo:
        # the runtime writes at least one token, which `completions` does not show
        limit = 1
    params = _params(body, limit, body.logprobs)
    if body.echo and body.logprobs is not None and params.prompt_logprobs is None:
        params = replace(params, prompt_logprobs=body.logprobs)
    return [
        [
            CompleteRequest(
                f"{answer_id}.{at}.{index}",
                body.model,
                prompt,
                _nth(params, index),
                adapter=body.lora_path,
            )
            for index in range(body.n or 1)
        ]
        for at, prompt in enumerate(prompts(body.prompt))
    ]


def tokenize(body: TokenizeBody, contents: Contents) -> TokenizeRequest:
    if (body.prompt is None) == (body.messages is None):
        raise BadRequest("Either prompt or messages is needed")
    prompt = body.prompt if body.prompt is not None else messages(body.messages or [], contents)
    return TokenizeRequest(new_id("tokens"), body.model, prompt)


def prompts(value: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> list[Prompt]:
    """A text, token ids, or several of either."""
    if isinstance(value, str):
        return [value]
    if not value:
        raise BadRequest("There is no prompt")
    ids = [each for each in value if isinstance(each, int)]
    if ids:
        return [tuple(ids)]
    return [each if isinstance(each, str) else tuple(each) for each in value if not isinstance(each, int)]


def messages(given: Sequence[ChatMessage], contents: Contents) -> tuple[Message, ...]:
    """`contents` are those of the messages, as the runtime takes them."""
    return tuple(_message(each, content) for each, content in zip(given, contents, strict=True))


def _message(given: ChatMessage, content: str | tuple[str | Media, ...]) -> Message:
    calls = tuple(
        _call(each.id, each.function.name, each.function.arguments) for each in given.tool_calls or []
    )
    role = "system" if given.role == "developer" else given.role
    return Message(role, content, calls, given.tool_call_id or "")


def _call(id: str, name: str, arguments: str) -> ToolCall:
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    if not is_object:
        raise BadRequest(f"The arguments of the call of {name} are no JSON object")
    return ToolCall(id, name, arguments)


def _tool(given: FunctionTool) -> Tool:
    function = given.function
    return Tool(function.name, function.description or "", json.dumps(function.parameters or {}))


def _must_call(body: ChatBody) -> tuple[str, ...]:
    names = [tool.function.name for tool in body.tools or []]
    match body.tool_choice:
        case NamedTool(function=function):
            if function.name not in names:
                raise BadRequest(f"tool_choice names {function.name}, which is not among the tools")
            return (function.name,)
        case "required":
            if not names:
                raise BadRequest("tool_choice is 'required', but there are no tools")
            return tuple(names)
    return ()


def _template_arguments(body: ChatBody) -> dict[str, Any]:
    """Effort "none" is how OpenAI's field says that a model shall not think."""
    found: dict[str, Any] = {}
    if body.reasoning_effort is not None:
        found["reasoning_effort"] = body.reasoning_effort
        found["enable_thinking"] = body.reasoning_effort != "none"
    if body.enable_thinking is not None:
        found["enable_thinking"] = body.enable_thinking
    return found | (body.chat_template_kwargs or {})


def _params(body: Sampling, max_tokens: int, logprobs: int | None) -> SamplingParams:
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=_given(body.temperature, 1.0),
        top_p=_given(body.top_p, 1.0),
        top_k=max(0, body.top_k or 0),
        min_p=_given(body.min_p, 0.0),
        repetition_penalty=_given(body.repetition_penalty, 1.0),
        presence_penalty=_given(body.presence_penalty, 0.0),
        frequency_penalty=_given(body.frequency_penalty, 0.0),
        seed=body.seed,
        stop=tuple(stop),
        stop_token_ids=tuple(body.stop_token_ids or ()),
        ignore_eos=body.ignore_eos,
        min_tokens=body.min_tokens or 0,
        logit_bias=tuple((body.logit_bias or {}).items()),
        logprobs=logprobs,
        prompt_logprobs=body.prompt_logprobs,
        keeps_stop=body.include_stop_str_in_output or body.no_stop_trim,
        shows_control_tokens=not body.skip_special_tokens,
        grammar=grammar_of(body),
    )


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _nth(params: SamplingParams, index: int) -> SamplingParams:
    """Answers to one question differ, and yet a seed says what all of them are."""
    return params if params.seed is None else replace(params, seed=params.seed + index)
