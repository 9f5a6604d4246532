"""The language model nodes: load, generate, chat, and the vector that stands for a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, cast

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.pictures import as_media
from nodes.spec import Library
from nodes.types import (
    AnyLlm,
    Chat,
    Choices,
    Files,
    Float,
    Image,
    InOptional,
    Int,
    Json,
    Llm,
    Multiline,
    Options,
    PromptText,
    Seed,
    Vlm,
)
from runtime.llm.api import (
    ChatRequest,
    CompleteRequest,
    Completion,
    Embedding,
    EmbedRequest,
    Message,
    SamplingParams,
)

if TYPE_CHECKING:
    from runtime.platform.handle import Handle

CATEGORY = "language"
ADVANCED = Options({"advanced": True})

MaxTokens = Annotated[int, Int(1, 32768)]
Temperature = Annotated[float, Float(0.0, 2.0, 0.05, round=0.01)]
TopP = Annotated[float, Float(0.01, 1.0, 0.01), ADVANCED]
TopK = Annotated[int, Int(0, 1000), ADVANCED]
System = Annotated[str, Multiline(placeholder="Who the model should be")]
Stop = Annotated[str, Multiline(placeholder="Texts that end the answer, one a line"), ADVANCED, InOptional()]


def _language_models(library: Library) -> list[str]:
    return library.language_models()


@node("LLMLoader", display="Load Language Model", category=CATEGORY, search_aliases=("llm", "gguf"))
def load_language_model(*, model: Annotated[str, Choices(_language_models)]) -> Llm:
    """A language model by name. Its weights are read when it is first asked something."""
    return model


@node(
    "LLMLoraLoader",
    display="Load LoRA of Language Model",
    category=CATEGORY,
    outputs=("llm", "vlm"),
    search_aliases=("lora", "peft", "adapter"),
)
def load_adapter(*, model: AnyLlm, adapter: Annotated[str, Files("llm_loras")]) -> tuple[Llm, Vlm]:
    """The model with a LoRA. Requests with other adapters of it, or with none, still share its forwards."""
    named = f"{model}:{adapter}"
    return named, named


@node(
    "LLMGenerate", display="Generate with Language Model", category=CATEGORY, search_aliases=("llm", "prompt")
)
async def generate(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    prompt: PromptText,
    system: System = "",
    mode: Literal["chat", "continue"] = "chat",
    max_tokens: MaxTokens = 256,
    temperature: Temperature = 0.7,
    top_p: TopP = 1.0,
    top_k: TopK = 0,
    seed: Seed = 0,
    stop: Stop = "",
    image: Image | None = None,
) -> str:
    """The model's answer, without blanks around it. It appears on the node while it is written.

    "chat" asks by the model's own chat template; "continue" goes on from where the prompt ends. Temperature 0
    always takes the likeliest token. `stop` lists texts, one a line, before which the answer ends; \\n stands
    for a line break. A model that sees is shown the image, all pictures of a batch, before the prompt.
    """
    params = sampling(max_tokens, temperature, top_p, top_k, seed, stop)
    if mode == "continue" and system:
        raise NodeInputError('"continue" takes no system text; put it at the start of the prompt')
    if mode == "continue" and image is not None:
        raise NodeInputError('"continue" takes no image; ask in the mode "chat"')
    if mode == "continue":
        return await answer(ctx, CompleteRequest(ctx.request_id(), model, prompt, params))
    messages = (*system_message(system), user_message(prompt, image))
    return await answer(ctx, ChatRequest(ctx.request_id(), model, messages, params))


@node("LLMChat", display="Chat with Language Model", category=CATEGORY, outputs=("reply", "chat"))
async def chat(
    ctx: NodeContext,
    *,
    model: AnyLlm,
    message: PromptText,
    system: System = "",
    max_tokens: MaxTokens = 256,
    temperature: Temperature = 0.7,
    top_p: TopP = 1.0,
    top_k: TopK = 0,
    seed: Seed = 0,
    stop: Stop = "",
    chat: Chat | None = None,
    image: Image | None = None,
) -> tuple[str, Chat]:
    """One turn of a conversation. The chat that comes out holds it, for the next turn to go on from.

    A system text replaces the one that came with the chat.
    """
    history = tuple(chat or ())
    if system:
        history = (*system_message(system), *(old for old in history if old.role != "system"))
    asked = (*history, user_message(message, image))
    params = sampling(max_tokens, temperature, top_p, top_k, seed, stop)
    reply = await answer(ctx, ChatRequest(ctx.request_id(), model, asked, params))
    return reply, (*asked, Message("assistant", reply))


@node("TextEmbed", display="Embed Text", category=CATEGORY, outputs=("vector",))
async def embed(ctx: NodeContext, *, model: AnyLlm, text: PromptText) -> Json:
    """A vector of length one that stands for the text: the mean of the model's last hidden states.

    Texts of similar meaning tend to have vectors of similar direction; models that are trained for it do
    better than those that chat.
    """
    request = EmbedRequest(ctx.request_id(), model, text)
    hidden = (await ctx.run(cast("Handle[Embedding]", ctx.llm.submit(request)))).hidden
    mean = hidden.mean(0)
    return (mean / mean.norm().clamp(min=1e-12)).tolist()


async def answer(ctx: NodeContext, request: ChatRequest | CompleteRequest) -> str:
    """What the model says, without blanks around it."""
    handle = cast("Handle[Completion]", ctx.llm.submit(request))
    return (await ctx.run(handle)).text.strip()


def user_message(text: str, image: Image | None) -> Message:
    return Message("user", text if image is None else (*as_media(image), text))


def system_message(system: str) -> tuple[Message, ...]:
    return (Message("system", system),) if system.strip() else ()


def sampling(
    max_tokens: int, temperature: float, top_p: float, top_k: int, seed: int, stop: str
) -> SamplingParams:
    """From a node's widgets; `stop` has one text a line."""
    texts = tuple(line.replace("\\n", "\n") for line in stop.split("\n") if line)
    return SamplingParams(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k, seed=seed, stop=texts
    )
