"""Language model nodes whose answers have a form, JSON by a schema or one of several texts; parts of JSON."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, cast

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.language import CATEGORY, MaxTokens, System, Temperature, TopP, system_message, user_message
from nodes.spec import NodeResult
from nodes.types import AnyLlm, Anything, Image, Json, Multiline, PromptText, Seed, Socket
from nodes.types import Options as WidgetOptions
from runtime.llm.api import ChatRequest, Completion, Grammar, SamplingParams
from runtime.platform.handle import Handle

SCHEMA = """{
  "type": "object",
  "properties": {
    "title": {"type": "string", "maxLength": 60},
    "colours": {"type": "array", "items": {"type": "string", "maxLength": 20}, "maxItems": 3}
  },
  "required": ["title", "colours"],
  "additionalProperties": false
}"""

# Sockets for the properties that a schema names.
MAX_PROPERTIES = 8

Schema = Annotated[str, Multiline(placeholder="A JSON schema"), WidgetOptions({"names_outputs_from": 2})]
JsonOrText = Annotated[Any, Socket("JSON,STRING")]
Options = Annotated[str, Multiline(placeholder="The texts to choose from, one a line")]

# One step of a path: a name, or a number in brackets.
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


@node(
    "LLMStructured",
    display="Structured Answer of Language Model",
    category=CATEGORY,
    returns=(Json, str, *[Anything] * MAX_PROPERTIES),
    outputs=("json", "text", *(f"property_{number}" for number in range(1, MAX_PROPERTIES + 1))),
    search_aliases=("json", "schema"),
)
async def structured(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    prompt: PromptText,
    schema: Schema = SCHEMA,
    system: System = "",
    max_tokens: MaxTokens = 512,
    temperature: Temperature = 0.7,
    top_p: TopP = 1.0,
    seed: Seed = 0,
    image: Image | None = None,
) -> NodeResult:
    """An answer that is JSON of the given schema, as a value and as text, and its properties one by one.

    The model can write nothing else, so only the length can fail: give texts a maxLength, arrays a maxItems,
    and enough max_tokens. The n-th of the further outputs is the n-th property that the schema names; the
    editor shows it by that name and type.
    """
    grammar = Grammar("json_schema", schema)
    params = SamplingParams(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, seed=seed, grammar=grammar
    )
    answer = await _ask(ctx, model, system, prompt, params, image)
    if answer.finish_reason == "length":
        raise NodeInputError(
            f"The answer was not complete after {max_tokens} tokens; allow more, or limit the schema's texts"
            " and arrays"
        )
    value = json.loads(answer.text)
    return NodeResult((value, answer.text, *_properties(schema, value)))


@node("LLMChoice", display="Choice of Language Model", category=CATEGORY, outputs=("choice", "index"))
async def choose(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    prompt: PromptText,
    choices: Options = "yes\nno",
    system: System = "",
    temperature: Temperature = 0.0,
    seed: Seed = 0,
) -> tuple[str, int]:
    """One of the given lines, whichever the model would rather say, and its number from 0."""
    texts = list(dict.fromkeys(line.strip() for line in choices.split("\n") if line.strip()))
    if not texts:
        raise NodeInputError("There is nothing to choose from; write one text a line")
    # no text has more tokens than bytes
    limit = max(len(text.encode()) for text in texts) + 1
    params = SamplingParams(
        max_tokens=limit, temperature=temperature, seed=seed, grammar=Grammar("choice", json.dumps(texts))
    )
    text = (await _ask(ctx, model, system, prompt, params)).text
    return text, texts.index(text)


@node("JSONExtract", display="Part of JSON", category="text", outputs=("text", "value"))
def extract(*, json: JsonOrText, path: str = "") -> tuple[str, Anything]:
    """What stands at a path such as `scenes[0].title`, as text and as a value. An empty path means all of it.

    Numbers in brackets count from 0, negative ones from the end.
    """
    value = _parsed(json)
    for step in _steps(path):
        value = _follow(value, step, path)
    return _as_text(value), value


async def _ask(
    ctx: NodeContext,
    model: str,
    system: str,
    prompt: str,
    params: SamplingParams,
    image: Image | None = None,
) -> Completion:
    messages = (*system_message(system), user_message(prompt, image))
    request = ChatRequest(ctx.request_id(), model, messages, params)
    return await ctx.run(cast("Handle[Completion]", ctx.llm.submit(request)))


def _properties(schema: str, value: Any) -> list[Any]:
    """What an answer holds of the properties that a schema names, in its order, or None."""
    named = json.loads(schema).get("properties") or {}
    held = [value.get(name) for name in named] if isinstance(value, dict) else []
    return [*held, *[None] * MAX_PROPERTIES][:MAX_PROPERTIES]


def _parsed(value: Any) -> Any:
    """A text is read as JSON, so that texts of models can be connected too."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise NodeInputError(f"The text is no JSON: {error}") from None


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise NodeInputError(f"'{path}' is no path; one looks like scenes[0].title")
        steps.append(found[1] if found[2] is None else int(found[2]))
        at = found.end()
    return steps


def _follow(value: Any, step: str | int, path: str) -> Any:
    if isinstance(step, str) and isinstance(value, dict):
        if step in value:
            return value[step]
        there = ", ".join(value) or "nothing"
        raise NodeInputError(f"'{path}': there is no '{step}'; there is {there}")
    if isinstance(step, int) and isinstance(value, list):
        if -len(value) <= step < len(value):
            return value[step]
        raise NodeInputError(f"'{path}': there is no entry {step}; there are {len(value)}")
    wanted = "an object" if isinstance(step, str) else "an array"
    raise NodeInputError(f"'{path}': '{step}' needs {wanted}, not {_as_text(value)[:40]}")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
