"""Bodies of the OpenAI protocol as this server takes them. A field that it does not know is refused by name;
fields that are accounting for OpenAI's own service are taken and mean nothing here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool = False


class StructuredOutputs(Body):
    """What an answer must look like; exactly one of them."""

    json_: Annotated[dict[str, Any] | str | None, Field(alias="json")] = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None


class Sampling(Body):
    """What chats and completions share."""

    model: str
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    no_stop_trim: bool = False
    skip_special_tokens: bool = True
    min_tokens: int | None = None
    ignore_eos: bool = False
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    prompt_logprobs: int | None = None
    return_token_ids: bool = False
    structured_outputs: StructuredOutputs | None = None
    json_schema: dict[str, Any] | str | None = None
    regex: str | None = None
    ebnf: str | None = None
    guided_json: dict[str, Any] | str | None = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    lora_path: str | None = None
    user: str | None = None


class TextPart(Body):
    type: Literal["text"]
    text: str


class MediaUrl(Body):
    """`detail` is OpenAI's wish for a resolution; a model here has its own."""

    url: str
    detail: str | None = None


class ImageUrlPart(Body):
    type: Literal["image_url"]
    image_url: MediaUrl | str


class ImageDataPart(Body):
    type: Literal["image_data"]
    image_data: str


class VideoUrlPart(Body):
    type: Literal["video_url"]
    video_url: MediaUrl | str


class VideoPart(Body):
    """A video as its frames; each is what an image may be."""

    type: Literal["video"]
    video: Annotated[list[str], Field(min_length=1)]
    fps: Annotated[float, Field(gt=0)] = 2.0


class AudioData(Body):
    data: str
    format: str = "wav"


class AudioPart(Body):
    type: Literal["input_audio"]
    input_audio: AudioData


Part = Annotated[
    TextPart | ImageUrlPart | ImageDataPart | VideoUrlPart | VideoPart | AudioPart,
    Field(discriminator="type"),
]


class CalledFunction(Body):
    name: str
    arguments: str = "{}"


class Call(Body):
    id: str = ""
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(BaseModel):
    """Other fields of an answer, such as `refusal`, come back in the next question and say nothing."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Function(Body):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Body):
    type: Literal["function"]
    function: Function


class FunctionName(Body):
    name: str


class NamedTool(Body):
    type: Literal["function"]
    function: FunctionName


class JsonSchema(Body):
    name: str | None = None
    description: str | None = None
    schema_: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    strict: bool | None = None


class StructuralTag(Body):
    """From `begin` to `end` the answer is JSON that the schema allows."""

    begin: str
    schema_: Annotated[dict[str, Any], Field(alias="schema")] = {}
    end: str


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: JsonSchema | None = None
    structures: list[StructuralTag] | None = None
    triggers: list[str] | None = None


class ChatBody(Sampling):
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: ResponseFormat | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    enable_thinking: bool | None = None
    separate_reasoning: bool = True
    inputs: dict[str, str | int | float | bool] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None


Tokens = list[int]


class CompletionBody(Sampling):
    prompt: str | Tokens | list[str] | list[Tokens]
    max_tokens: int | None = None
    logprobs: int | None = None
    echo: bool | None = None
    suffix: None = None
    best_of: Literal[1] | None = None


class EmbeddingBody(Body):
    model: str
    input: str | Tokens | list[str] | list[Tokens]
    encoding_format: Literal["float", "base64"] = "float"
    lora_path: str | None = None
    dimensions: None = None
    user: str | None = None


class TokenizeBody(Body):
    model: str
    prompt: str | None = None
    messages: list[ChatMessage] | None = None
