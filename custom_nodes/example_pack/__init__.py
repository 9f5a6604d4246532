"""An example of a custom node pack: four nodes in the typed-function style.

docs/writing_nodes.md explains them line by line.
"""

from typing import Annotated, Literal

import torch

from nodes.context import NodeContext, NodeInputError
from nodes.declare import node
from nodes.types import Float, Image, InputFiles, Int, Llm, PromptText
from runtime.llm.api import ChatRequest, Message, SamplingParams

CATEGORY = "examples"


@node("ExampleTint", display="Tint", category=CATEGORY)
def tint(
    *,
    image: Image,
    color: Literal["sepia", "red", "green", "blue"] = "sepia",
    amount: Annotated[float, Float(0.0, 1.0, 0.05)] = 0.5,
) -> Image:
    """Mixes a picture with one colour of the same brightness."""
    tones = {"sepia": (1.0, 0.8, 0.6), "red": (1.0, 0.2, 0.2), "green": (0.2, 1.0, 0.2), "blue": (0.2, 0.2, 1.0)}
    brightness = image.mean(dim=-1, keepdim=True)
    return torch.lerp(image, brightness * torch.tensor(tones[color]), amount)


@node("ExampleContactSheet", display="Contact Sheet", category=CATEGORY)
def contact_sheet(
    ctx: NodeContext,
    *,
    images: Image,
    columns: Annotated[int, Int(1, 64)] = 4,
    gap: Annotated[int, Int(0, 256)] = 4,
) -> Image:
    """All pictures of a batch on one white sheet."""
    count, height, width, channels = images.shape
    rows = -(-count // columns)
    sheet = torch.ones(1, rows * (height + gap) + gap, columns * (width + gap) + gap, channels)
    for number, image in enumerate(images):
        ctx.progress(number, count)
        row, column = divmod(number, columns)
        top, left = gap + row * (height + gap), gap + column * (width + gap)
        sheet[0, top : top + height, left : left + width] = image
    return sheet


@node("ExampleFileSize", display="File Size", category=CATEGORY, outputs=("bytes", "name"))
def file_size(ctx: NodeContext, *, file: Annotated[str, InputFiles("any")]) -> tuple[int, str]:
    """How large an uploaded file is. It runs again when the file changes."""
    path = ctx.files.input(file)
    return path.stat().st_size, path.name


@node("ExampleYesOrNo", display="Ask Yes or No", category=CATEGORY)
async def yes_or_no(ctx: NodeContext, *, model: Llm, question: PromptText) -> bool:
    """Asks a language model a question that it can only answer with yes or no."""
    if not question.strip():
        raise NodeInputError("There is no question")
    messages = (Message("system", "Answer with yes or no."), Message("user", question))
    request = ChatRequest(ctx.request_id(), model, messages, SamplingParams(max_tokens=4, temperature=0.0))
    answer = await ctx.run(ctx.llm.submit(request))
    return answer.text.strip().lower().startswith("yes")
