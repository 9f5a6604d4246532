"""What a node's annotations may say: socket types, widgets and their options. Importing it imports no torch.

A socket is a type alias, so that bodies type-check: `def f(samples: Latent, vae: Vae) -> Image`. A widget is
a plain type with marks: `steps: Annotated[int, Int(1, 10_000)] = 20`. `X | None = None` makes an input
optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from nodes.spec import Library
from runtime.diffusion import api as diffusion
from runtime.llm import api as llm

if TYPE_CHECKING:
    import torch

    Tensor: TypeAlias = torch.Tensor
else:
    Tensor = Any


@dataclass(frozen=True, slots=True)
class Socket:
    """The wire name of a type; only equal names connect, and "*" connects to all."""

    name: str


@dataclass(frozen=True, slots=True)
class Int:
    """Range of an INT widget. `control` adds the "after generate" choice of a seed."""

    min: int
    max: int
    step: int | None = None
    control: bool = False


@dataclass(frozen=True, slots=True)
class Float:
    min: float
    max: float
    step: float | None = None
    round: float | None = None


@dataclass(frozen=True, slots=True)
class Multiline:
    """A text area; `dynamic` lets the editor expand {a|b} before it posts the prompt."""

    dynamic: bool = False
    placeholder: str | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """A combo of the files in a model folder. The chosen file's stamp joins the cache key."""

    folder: str


@dataclass(frozen=True, slots=True)
class InputFiles:
    """A combo of uploaded files. A name in a subfolder or with ` [output]` is valid when the file exists."""

    kind: Literal["image", "video", "audio", "any"]
    upload: bool = True


@dataclass(frozen=True, slots=True)
class Choices:
    """A combo of values known at run time only; a callable is asked with the library each time."""

    values: Sequence[Any] | Callable[[Library], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Grows:
    """A `dict[str, X]` of inputs that grows as they are connected: `prefix` and a number, or one of `names`.

    `Annotated[dict[str, Tensor], Grows(Image, "image", min=1, max=50)]` takes image0, image1 ...
    """

    of: Any
    prefix: str
    names: tuple[str, ...] = ()
    min: int = 1
    max: int = 100


@dataclass(frozen=True, slots=True)
class Cases:
    """A combo whose choice brings inputs of its own: choice to their names and annotations.

    The node receives a dict with the choice under the input's own name, and these inputs beside it.
    """

    inputs: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Filled in by the server: PROMPT, EXTRA_PNGINFO, UNIQUE_ID or DYNPROMPT."""

    name: Literal["PROMPT", "EXTRA_PNGINFO", "UNIQUE_ID", "DYNPROMPT"]


@dataclass(frozen=True, slots=True)
class Lazy:
    """The input is computed only when the node's `lazy_needs` names it."""


@dataclass(frozen=True, slots=True)
class InOptional:
    """Puts a widget with a default among the optional inputs, so that a prompt may leave it out."""


@dataclass(frozen=True, slots=True)
class Tooltip:
    text: str


@dataclass(frozen=True, slots=True)
class Options:
    """Any other option of the object_info entry, such as `Options({"advanced": True})`."""

    values: dict[str, Any] = field(default_factory=dict)


Model = Annotated[diffusion.ModelRef, Socket("MODEL")]
Clip = Annotated[diffusion.TextEncoderRef, Socket("CLIP")]
Vae = Annotated[diffusion.VaeRef, Socket("VAE")]
ControlNet = Annotated[diffusion.ControlRef, Socket("CONTROL_NET")]
Conditioning = Annotated[list[list[Any]], Socket("CONDITIONING")]
Latent = Annotated[dict[str, Any], Socket("LATENT")]
Image = Annotated[Tensor, Socket("IMAGE")]
Mask = Annotated[Tensor, Socket("MASK")]
Sigmas = Annotated[Tensor, Socket("SIGMAS")]
Sampler = Annotated[Any, Socket("SAMPLER")]
Noise = Annotated[Any, Socket("NOISE")]
Guider = Annotated[Any, Socket("GUIDER")]
UpscaleModel = Annotated[Any, Socket("UPSCALE_MODEL")]
Llm = Annotated[str, Socket("LLM")]
Vlm = Annotated[str, Socket("VLM")]
AnyLlm = Annotated[str, Socket("LLM,VLM")]
Chat = Annotated[tuple[llm.Message, ...], Socket("CHAT")]
Json = Annotated[Any, Socket("JSON")]
Anything = Annotated[Any, Socket("*")]

Seed = Annotated[int, Int(0, 2**64 - 1, control=True)]
Text = Annotated[str, Multiline()]
PromptText = Annotated[str, Multiline(dynamic=True)]
