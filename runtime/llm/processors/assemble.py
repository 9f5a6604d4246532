"""transformers' processor of a checkpoint from its parts, without those that need torchvision."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoFeatureExtractor, AutoImageProcessor, AutoTokenizer, FuyuImageProcessorPil
from transformers.image_processing_base import ImageProcessingMixin
from transformers.models.auto.processing_auto import PROCESSOR_MAPPING_NAMES, processor_class_from_name
from transformers.processing_utils import ProcessorMixin
from transformers.utils import is_torchvision_available

from runtime.llm.processors.crops import Phi4MultimodalImageProcessor
from runtime.llm.processors.patches import Kimi_K25ImageProcessor
from runtime.llm.processors.tiles import Llama4ImageProcessor
from runtime.platform.errors import Unsupported

# SmolVLM's asks for num2words, which it needs for videos; what it makes of images is Idefics3's.
_INSTEAD = {"SmolVLMProcessor": "Idefics3Processor"}
_PIXTRAL = "transformers.models.pixtral"
# Those that transformers has for torchvision only.
_OWN: dict[str, type[ImageProcessingMixin]] = {
    "kimi_k25": Kimi_K25ImageProcessor,
    "llama4": Llama4ImageProcessor,
    "phi4_multimodal": Phi4MultimodalImageProcessor,
}
_READ_VIDEO_SETTINGS = ("minicpmv4_6", "minicpmv4_7")
_FILES = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")


def load(folder: Path, model_type: str, tokenizer: Any = None, video_processor: Any = None) -> Any:
    """With `tokenizer` another one than the folder's own."""
    if model_type in _READ_VIDEO_SETTINGS:
        video_processor = video_processor or no_videos()
    kind = unchecked(_kind(folder, model_type))
    make: dict[str, Callable[[], Any]] = {
        "tokenizer": lambda: tokenizer or AutoTokenizer.from_pretrained(folder, local_files_only=True),
        "image_processor": lambda: _image_processor(folder, model_type),
        "feature_extractor": lambda: AutoFeatureExtractor.from_pretrained(folder, local_files_only=True),
        "audio_processor": lambda: AutoFeatureExtractor.from_pretrained(folder, local_files_only=True),
        "video_processor": lambda: video_processor,
    }
    settings, _ = kind.get_processor_dict(folder, local_files_only=True)
    parts = [make[name]() for name in kind.get_attributes()]
    made = kind.from_args_and_dict(parts, settings)
    made.chat_template = made.chat_template or made.tokenizer.chat_template
    return made


def no_videos() -> Any:
    """Stands where a video processor would be, for classes that read its settings without having a video."""
    return ImageProcessingMixin(slice_mode=False, downsample_mode="16x")


def _image_processor(folder: Path, model_type: str) -> Any:
    if model_type in _OWN:
        settings, _ = ImageProcessingMixin.get_image_processor_dict(folder, local_files_only=True)
        return _OWN[model_type].from_dict(settings)
    made = AutoImageProcessor.from_pretrained(folder, local_files_only=True, backend="pil")
    if isinstance(made, FuyuImageProcessorPil):
        made.__class__ = _FuyuImages
    return made


class _FuyuImages(FuyuImageProcessorPil):
    """Cuts tensors too, as Fuyu's processor expects."""

    def patchify_image(self, image: Any, patch_size: Any = None) -> torch.Tensor:
        # [C, H, W] -> [1, n, patch]
        return torch.from_numpy(super().patchify_image(np.asarray(image), patch_size))[None]


def unchecked(kind: Any) -> Any:
    """The class without the check of its parts, which imports what is not installed."""
    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": lambda *_: None})


def class_named(name: str) -> Any:
    """transformers' processor class, also where that asks for what it does not need for images."""
    if name != "PixtralProcessor" or is_torchvision_available():
        return processor_class_from_name(_INSTEAD.get(name, name))
    # Its module takes one function from the image processor for torchvision; the one for PIL has it too.
    wanted = f"{_PIXTRAL}.image_processing_pixtral"
    sys.modules[wanted] = import_module(f"{_PIXTRAL}.image_processing_pil_pixtral")
    try:
        return import_module(f"{_PIXTRAL}.processing_pixtral").PixtralProcessor
    finally:
        del sys.modules[wanted]


def plain(processor: Any) -> Any:
    """A processor that renders as most do, without what its own class adds to that."""
    steps = {name: getattr(ProcessorMixin, name) for name in ("__call__", "prepare_inputs_layout")}
    made = copy(processor)
    made.__class__ = type(type(processor).__name__, (type(processor),), steps)
    return made


def _kind(folder: Path, model_type: str) -> Any:
    for file in _FILES:
        path = folder / file
        name = json.loads(path.read_text()).get("processor_class") if path.is_file() else None
        if name:
            return class_named(name)
    if model_type not in PROCESSOR_MAPPING_NAMES:
        raise Unsupported(f"{folder.name} does not say which processor prepares its images")
    return class_named(PROCESSOR_MAPPING_NAMES[model_type])
