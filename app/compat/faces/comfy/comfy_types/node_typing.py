"""`comfy.comfy_types.node_typing`: names of socket types, and the shape of INPUT_TYPES."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypedDict


class IO(StrEnum):
    """Comparing does not say "different" where either is a union that shares a member, or the wildcard."""

    STRING = "STRING"
    IMAGE = "IMAGE"
    MASK = "MASK"
    LATENT = "LATENT"
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    FLOAT = "FLOAT"
    CONDITIONING = "CONDITIONING"
    SAMPLER = "SAMPLER"
    SIGMAS = "SIGMAS"
    GUIDER = "GUIDER"
    NOISE = "NOISE"
    CLIP = "CLIP"
    CONTROL_NET = "CONTROL_NET"
    VAE = "VAE"
    MODEL = "MODEL"
    LORA_MODEL = "LORA_MODEL"
    LOSS_MAP = "LOSS_MAP"
    CLIP_VISION = "CLIP_VISION"
    CLIP_VISION_OUTPUT = "CLIP_VISION_OUTPUT"
    STYLE_MODEL = "STYLE_MODEL"
    GLIGEN = "GLIGEN"
    UPSCALE_MODEL = "UPSCALE_MODEL"
    AUDIO = "AUDIO"
    VIDEO = "VIDEO"
    SVG = "SVG"
    WEBCAM = "WEBCAM"
    POINT = "POINT"
    FACE_ANALYSIS = "FACE_ANALYSIS"
    BBOX = "BBOX"
    SEGS = "SEGS"
    COMBO = "COMBO"
    ANY = "*"
    NUMBER = "FLOAT,INT"
    PRIMITIVE = "STRING,FLOAT,INT,BOOLEAN"

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, str):
            return True
        mine, theirs = set(self.value.split(",")), {part.strip() for part in other.split(",")}
        return not ("*" in mine | theirs or mine & theirs)


class InputTypeOptions(TypedDict, total=False):
    default: Any
    defaultInput: bool
    forceInput: bool
    lazy: bool
    rawLink: bool
    tooltip: str
    socketless: bool
    widgetType: str
    label_on: str
    label_off: str
    min: float
    max: float
    step: float
    round: float
    display: str
    multiline: bool
    placeholder: str
    dynamicPrompts: bool
    image_upload: bool
    image_folder: Literal["input", "output", "temp"]
    remote: dict[str, Any]
    control_after_generate: bool
    options: list[Any]
    multi_select: dict[str, Any]


class HiddenInputTypeDict(TypedDict, total=False):
    node_id: Literal["UNIQUE_ID"]
    unique_id: Literal["UNIQUE_ID"]
    prompt: Literal["PROMPT"]
    extra_pnginfo: Literal["EXTRA_PNGINFO"]
    dynprompt: Literal["DYNPROMPT"]


class InputTypeDict(TypedDict, total=False):
    required: dict[str, Any]
    optional: dict[str, Any]
    hidden: HiddenInputTypeDict


class ComfyNodeABC(ABC):
    DESCRIPTION: ClassVar[str]
    CATEGORY: ClassVar[str]
    EXPERIMENTAL: ClassVar[bool]
    DEPRECATED: ClassVar[bool]
    API_NODE: ClassVar[bool | None]
    OUTPUT_NODE: ClassVar[bool]
    INPUT_IS_LIST: ClassVar[bool]
    OUTPUT_IS_LIST: ClassVar[tuple[bool, ...]]
    RETURN_TYPES: ClassVar[tuple[Any, ...]]
    RETURN_NAMES: ClassVar[tuple[str, ...]]
    OUTPUT_TOOLTIPS: ClassVar[tuple[str, ...]]
    FUNCTION: ClassVar[str]

    @classmethod
    @abstractmethod
    def INPUT_TYPES(cls) -> InputTypeDict: ...


class CheckLazyMixin:
    def check_lazy_status(self, **kwargs: Any) -> list[str]:
        """Everything that is not there yet."""
        return [name for name, value in kwargs.items() if value is None]


class FileLocator(TypedDict):
    filename: str
    subfolder: str
    type: Literal["input", "output", "temp"]
