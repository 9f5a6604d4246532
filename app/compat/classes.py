"""This program's nodes as classes of ComfyUI's first style, for packs that call or subclass them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from app.compat.asking import running_node, waited
from app.compat.host import host
from app.compat.models import ModelFaces
from nodes.spec import NodeResult, NodeSpec


class Method(NamedTuple):
    """How ComfyUI's class calls its function, and the order of its arguments where it is not the inputs'."""

    name: str
    order: tuple[str, ...] = ()


METHODS = {
    "CLIPTextEncode": Method("encode", ("clip", "text")),
    "CLIPSetLastLayer": Method("set_last_layer"),
    "CLIPLoader": Method("load_clip"),
    "DualCLIPLoader": Method("load_clip"),
    "CheckpointLoaderSimple": Method("load_checkpoint"),
    "ConditioningAverage": Method("addWeighted"),
    "ConditioningCombine": Method("combine"),
    "ConditioningConcat": Method("concat"),
    "ConditioningSetArea": Method("append"),
    "ConditioningSetMask": Method("append"),
    "ConditioningSetTimestepRange": Method("set_range"),
    "ConditioningZeroOut": Method("zero_out"),
    "ControlNetApply": Method("apply_controlnet"),
    "ControlNetApplyAdvanced": Method("apply_controlnet"),
    "ControlNetLoader": Method("load_controlnet"),
    "EmptyImage": Method("generate"),
    "EmptyLatentImage": Method("generate"),
    "ImageBatch": Method("batch"),
    "ImageInvert": Method("invert"),
    "ImagePadForOutpaint": Method("expand_image"),
    "ImageScale": Method("upscale"),
    "ImageScaleBy": Method("upscale"),
    "InpaintModelConditioning": Method(
        "encode", ("positive", "negative", "pixels", "vae", "mask", "noise_mask")
    ),
    "KSampler": Method(
        "sample",
        (
            "model", "seed", "steps", "cfg", "sampler_name", "scheduler", "positive", "negative",
            "latent_image", "denoise",
        ),
    ),
    "KSamplerAdvanced": Method(
        "sample",
        (
            "model", "add_noise", "noise_seed", "steps", "cfg", "sampler_name", "scheduler", "positive",
            "negative", "latent_image", "start_at_step", "end_at_step", "return_with_leftover_noise",
        ),
    ),
    "LatentFromBatch": Method("frombatch"),
    "LatentUpscale": Method("upscale"),
    "LatentUpscaleBy": Method("upscale"),
    "LoadImage": Method("load_image"),
    "LoadImageMask": Method("load_image"),
    "LoraLoader": Method("load_lora", ("model", "clip", "lora_name", "strength_model", "strength_clip")),
    "LoraLoaderModelOnly": Method("load_lora_model_only"),
    "PreviewImage": Method("save_images"),
    "RepeatLatentBatch": Method("repeat"),
    "SaveImage": Method("save_images"),
    "SetLatentNoiseMask": Method("set_mask"),
    "UNETLoader": Method("load_unet"),
    "VAEDecode": Method("decode", ("vae", "samples")),
    "VAEDecodeTiled": Method("decode", ("vae", "samples", "tile_size", "overlap")),
    "VAEEncode": Method("encode", ("vae", "pixels")),
    "VAEEncodeForInpaint": Method("encode", ("vae", "pixels", "mask", "grow_mask_by")),
    "VAEEncodeTiled": Method("encode", ("vae", "pixels", "tile_size", "overlap")),
    "VAELoader": Method("load_vae"),
}  # fmt: skip


class Values(tuple[Any, ...]):
    """A node's values, under the names of both styles."""

    @property
    def result(self) -> tuple[Any, ...]:
        return tuple(self)

    @property
    def args(self) -> tuple[Any, ...]:
        return tuple(self)


class _Call:
    """A method and a class method in one: ComfyUI's newer classes are never made objects of."""

    def __init__(self, id: str, order: tuple[str, ...]) -> None:
        self._id, self._order = id, order

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        spec = host().registry[self._id]
        order = self._order or tuple(slot.name for slot in spec.inputs(host().files))
        given = {**dict(zip(order, args)), **kwargs}
        return called(spec, given)


def called(spec: NodeSpec, inputs: Mapping[str, Any]) -> Any:
    """Runs the node's function as a part of the node that runs here."""
    faces = ModelFaces()
    given = {name: faces.unwrapped(value) for name, value in inputs.items()}
    result = spec.call(running_node(), **given)
    if inspect.isawaitable(result):
        result = waited(result)
    assert isinstance(result, NodeResult), result
    values = Values(faces.wrapped(value) for value in result.values)
    return {"ui": dict(result.ui), "result": values} if result.ui else values


def class_of(id: str) -> type:
    """Raises KeyError for a node that this program does not have."""
    spec = host().registry[id]
    method = METHODS.get(id, Method("execute"))
    call = _Call(id, method.order)
    outputs = spec.outputs
    members: dict[str, Any] = {
        "INPUT_TYPES": classmethod(lambda _cls: _input_types(host().registry[id])),
        "RETURN_TYPES": tuple(list(o.choices) if o.choices is not None else o.type for o in outputs),
        "RETURN_NAMES": tuple(output.name for output in outputs),
        "OUTPUT_IS_LIST": tuple(output.is_list for output in outputs),
        "FUNCTION": method.name,
        "CATEGORY": spec.category,
        "DESCRIPTION": spec.description,
        "OUTPUT_NODE": spec.is_output,
        "INPUT_IS_LIST": spec.input_is_list,
        method.name: staticmethod(call),
        "execute": staticmethod(call),
        **_choices(spec),
    }
    return type(id, (), members)


def _choices(spec: NodeSpec) -> dict[str, list[Any]]:
    """Class attributes with the choices of inputs, as some of ComfyUI's classes have."""
    named = {"upscale_method": "upscale_methods", "crop": "crop_methods"}
    slots = [slot for slot in spec.inputs(host().files) if slot.name in named and slot.choices]
    return {named[slot.name]: list(slot.choices or ()) for slot in slots}


def _input_types(spec: NodeSpec) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {"required": {}}
    for slot in spec.inputs(host().files):
        entry = slot.type if slot.group == "hidden" else tuple(slot.config())
        groups.setdefault(slot.group, {})[slot.name] = entry
    return groups


class CoreClasses(dict[str, Any]):
    """Every node's class by id, made when asked for. What packs put in is theirs, and stays in here."""

    def __missing__(self, id: str) -> type:
        if host().registry.find(id) is None:
            raise KeyError(id)
        self[id] = class_of(id)
        made: type = self[id]
        return made

    def __contains__(self, id: object) -> bool:
        return super().__contains__(id) or (isinstance(id, str) and host().registry.find(id) is not None)

    def get(self, id: str, default: Any = None) -> Any:
        return self[id] if id in self else default  # noqa: SIM401

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*host().registry, *super().keys()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def keys(self) -> Any:
        return list(iter(self))

    def values(self) -> Any:
        return [self[id] for id in self]

    def items(self) -> Any:
        return [(id, self[id]) for id in self]


def core_class_getter(module: str, *names: str, **others: str) -> Callable[[str], type]:
    """A module's `__getattr__` that serves nodes as classes; `others` maps names to ids that differ."""
    ids = {**{name: name for name in names}, **others}

    def get(name: str) -> type:
        if name not in ids:
            raise AttributeError(
                f"Treadle does not serve {module}.{name}; docs/compat.md lists what it serves"
            )
        return class_of(ids[name])

    return get
