"""Pictures from the input and output folders."""

from __future__ import annotations

from typing import Annotated, Literal

from nodes.context import NodeContext
from nodes.declare import node
from nodes.pictures import read_channel, read_image
from nodes.types import Choices, Image, InputFiles, Mask, Options

UploadedImage = Annotated[str, InputFiles("image")]
SavedImage = Annotated[
    str,
    Choices(()),
    Options(
        {
            "image_upload": True,
            "image_folder": "output",
            "remote": {
                "route": "/internal/files/output",
                "refresh_button": True,
                "control_after_refresh": "first",
            },
        }
    ),
]


@node("LoadImage", display="Load Image", category="image")
def load_image(ctx: NodeContext, *, image: UploadedImage) -> tuple[Image, Mask]:
    """A picture, and a mask that is white where it is transparent. An animation gives all its frames."""
    return read_image(ctx.files.input(image))


@node("LoadImageMask", display="Load Image (as Mask)", category="image")
def load_image_mask(
    ctx: NodeContext,
    *,
    image: UploadedImage,
    channel: Literal["alpha", "red", "green", "blue"] = "alpha",
) -> Mask:
    """One channel of a picture as a mask; alpha is inverted, so that white is the transparent part."""
    return read_channel(ctx.files.input(image), channel)


def _any_name(image: str) -> bool:  # noqa: ARG001
    """The list of outputs lives behind a route, so that the choices of the declaration say nothing."""
    return True


@node(
    "LoadImageOutput",
    display="Load Image (from Outputs)",
    category="image",
    experimental=True,
    check=_any_name,
)
def load_image_output(ctx: NodeContext, *, image: SavedImage) -> tuple[Image, Mask]:
    """As Load Image, from the output folder."""
    return read_image(ctx.files.input(image if image.endswith("]") else f"{image} [output]"))
