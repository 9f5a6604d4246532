"""ComfyUI's text generation from a CLIP, and prompts made richer by a language model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.language import CATEGORY, MaxTokens, Temperature, answer, system_message
from nodes.pictures import as_media
from nodes.types import AnyLlm, Cases, Clip, Float, Image, Int, Multiline, Options, PromptText, Seed, Socket
from runtime.llm.api import ChatRequest, CompleteRequest, Message, SamplingParams

Sampling = Annotated[
    dict[str, Any],
    Cases(
        {
            "on": {
                "temperature": Annotated[float, Float(0.01, 2.0, 1e-6), Options({"default": 0.7})],
                "top_k": Annotated[int, Int(0, 1000), Options({"default": 64})],
                "top_p": Annotated[float, Float(0.0, 1.0, 0.01), Options({"default": 0.95})],
                "min_p": Annotated[float, Float(0.0, 1.0, 0.01), Options({"default": 0.05})],
                "repetition_penalty": Annotated[float, Float(0.0, 5.0, 0.01), Options({"default": 1.05})],
                "presence_penalty": Annotated[float, Float(0.0, 5.0, 0.01), Options({"default": 0.0})],
                "seed": Annotated[int, Int(0, 2**64 - 1), Options({"default": 0})],
            },
            "off": {},
        }
    ),
    Options({"display_name": "Sampling Mode"}),
]
MaxLength = Annotated[int, Int(1, 32768)]
Sound = Annotated[Any, Socket("AUDIO")]
Advanced = Options({"advanced": True})

_STYLES = {
    "picture": "You write prompts for a picture generator. Rewrite what the user says as one sentence that "
    "names the subject, its colours, the light and the mood. Answer with that sentence only.",
    "photo": "You write prompts for a photo generator. Rewrite what the user says as one sentence that names "
    "the subject, the place, the lens and the light. Answer with that sentence only.",
    "tags": "You write prompts for a picture generator. Answer with ten short keywords that describe what "
    "the user says, separated by commas, and nothing else.",
}


@node("TextGenerate", display="Generate Text", category="text", outputs=("generated_text",))
async def generate(
    ctx: NodeContext,
    *,
    clip: Clip,
    prompt: PromptText = "",
    max_length: MaxLength = 512,
    sampling_mode: Sampling = None,  # type: ignore[assignment]
    image: Image | None = None,
    video: Image | None = None,
    audio: Sound | None = None,
    thinking: bool = False,
    use_default_template: Annotated[bool, Advanced] = True,
) -> str:
    """Text by the language model in a CLIP. Without the default template the prompt is continued as it is."""
    model = ctx.files.language_model_of(clip.weights)
    if model is None:
        known = ", ".join(ctx.llm.models()) or "none"
        raise NodeInputError(f"This CLIP holds no language model that can write; there are: {known}")
    if audio is not None or thinking:
        raise NodeInputError("Sound and thinking are not supported here; leave them out")
    params = _params(max_length, sampling_mode or {"sampling_mode": "off"})
    shown = [*(as_media(image) if image is not None else ()), *(as_media(video) if video is not None else ())]
    if use_default_template:
        messages = (Message("user", (*shown, prompt) if shown else prompt),)
        return await answer(ctx, ChatRequest(ctx.request_id(), model, messages, params))
    request = CompleteRequest(ctx.request_id(), model, prompt, params, media=tuple(shown))
    return await answer(ctx, request)


@node(
    "PromptEnhance",
    display="Enhance Prompt",
    category=CATEGORY,
    outputs=("prompt",),
    search_aliases=("magic", "rewrite", "expand"),
)
async def enhance(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    prompt: PromptText,
    style: Literal["picture", "photo", "tags", "custom"] = "picture",
    instruction: Annotated[str, Multiline(placeholder="How to rewrite, for the style custom")] = "",
    max_tokens: MaxTokens = 96,
    temperature: Temperature = 0.7,
    seed: Seed = 0,
) -> str:
    """A few words as a whole prompt for a picture model."""
    if style == "custom" and not instruction.strip():
        raise NodeInputError("The style custom needs an instruction")
    system = instruction if style == "custom" else _STYLES[style]
    messages = (*system_message(system), Message("user", prompt))
    params = SamplingParams(max_tokens=max_tokens, temperature=temperature, seed=seed)
    text = await answer(ctx, ChatRequest(ctx.request_id(), model, messages, params))
    return " ".join(text.split())


def _params(max_tokens: int, mode: dict[str, Any]) -> SamplingParams:
    if mode["sampling_mode"] == "off":
        return SamplingParams(max_tokens=max_tokens, temperature=0.0)
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=mode.get("temperature", 0.7),
        top_k=mode.get("top_k", 64),
        top_p=mode.get("top_p", 0.95),
        min_p=mode.get("min_p", 0.05),
        repetition_penalty=mode.get("repetition_penalty", 1.05),
        presence_penalty=mode.get("presence_penalty", 0.0),
        seed=mode.get("seed", 0),
    )
