"""The types that links carry, each with its Input and its Output."""

from __future__ import annotations

from typing import Any, ClassVar

from app.compat.v3.inputs import Input as PlainInput
from app.compat.v3.inputs import Output as PlainOutput


class ComfyTypeI:
    """Something that can be an input."""

    io_type: ClassVar[str] = "*"
    Type: Any = Any


class ComfyTypeIO(ComfyTypeI):
    """A subclass names its `io_type`, or `comfytype` does; its Input and Output then carry it."""

    Input: Any = PlainInput
    Output: Any = PlainOutput

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "io_type" in vars(cls):
            name_parts(cls, cls.io_type)


def name_parts(kind: Any, io_type: str) -> None:
    kind.io_type = io_type
    for part in ("Input", "Output"):
        base = getattr(kind, part, None)
        if base is not None:
            setattr(kind, part, type(part, (base,), {"io_type": io_type, "Parent": kind}))


def comfytype(io_type: str, **_kwargs: Any) -> Any:
    """Class decorator: `@comfytype(io_type="THING")` over a class with an Input or an Output."""

    def name(kind: type) -> type:
        for part, base in (("Input", PlainInput), ("Output", PlainOutput)):
            if not hasattr(kind, part) and issubclass(kind, ComfyTypeIO):
                setattr(kind, part, base)
        name_parts(kind, io_type)
        return kind

    return name


def Custom(io_type: str) -> type[ComfyTypeIO]:
    """A type of the pack's own."""
    return type("Custom", (ComfyTypeIO,), {"io_type": io_type})


PLAIN = {
    "Image": "IMAGE", "Mask": "MASK", "Latent": "LATENT", "Conditioning": "CONDITIONING", "Model": "MODEL",
    "Clip": "CLIP", "Vae": "VAE", "ControlNet": "CONTROL_NET", "ClipVision": "CLIP_VISION",
    "ClipVisionOutput": "CLIP_VISION_OUTPUT", "StyleModel": "STYLE_MODEL", "Gligen": "GLIGEN",
    "UpscaleModel": "UPSCALE_MODEL", "LatentUpscaleModel": "LATENT_UPSCALE_MODEL", "Audio": "AUDIO",
    "Video": "VIDEO", "SVG": "SVG", "LoraModel": "LORA_MODEL", "LossMap": "LOSS_MAP", "Voxel": "VOXEL",
    "Mesh": "MESH", "Hooks": "HOOKS", "HookKeyframes": "HOOK_KEYFRAMES", "TimestepsRange": "TIMESTEPS_RANGE",
    "LatentOperation": "LATENT_OPERATION", "FlowControl": "FLOW_CONTROL", "Accumulation": "ACCUMULATION",
    "Load3D": "LOAD_3D", "Load3DCamera": "LOAD3D_CAMERA", "Load3DAnimation": "LOAD_3D_ANIMATION",
    "Photomaker": "PHOTOMAKER", "Point": "POINT", "FaceAnalysis": "FACE_ANALYSIS", "BBOX": "BBOX",
    "SEGS": "SEGS", "AnyType": "*", "ModelPatch": "MODEL_PATCH", "AudioEncoder": "AUDIO_ENCODER",
    "AudioEncoderOutput": "AUDIO_ENCODER_OUTPUT", "Tracks": "TRACKS", "Dict": "DICT", "Array": "ARRAY",
    "Sampler": "SAMPLER", "Sigmas": "SIGMAS", "Noise": "NOISE", "Guider": "GUIDER",
    "WanCameraEmbedding": "WAN_CAMERA_EMBEDDING", "Webcam": "WEBCAM", "BoundingBox": "BOUNDING_BOX",
}  # fmt: skip

# one class each, made here because they differ in nothing but the name
for _name, _io_type in PLAIN.items():
    globals()[_name] = type(_name, (ComfyTypeIO,), {"io_type": _io_type})
