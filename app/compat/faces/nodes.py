"""`nodes`: ComfyUI's core classes over this program's nodes. Packs alone see this module under that name."""

from __future__ import annotations

import os
import random
from typing import Any

from app.compat.classes import CoreClasses, called
from app.compat.faces import folder_paths
from app.compat.host import host

MAX_RESOLUTION = 16384

NODE_CLASS_MAPPINGS = CoreClasses()
LOADED_MODULE_DIRS: dict[str, str] = {}


def __getattr__(name: str) -> Any:
    """A core class, or one of the tables that the server keeps."""
    if name == "EXTENSION_WEB_DIRS":
        return host().registry.web
    if name == "NODE_DISPLAY_NAME_MAPPINGS":
        return {id: host().registry[id].display_name for id in host().registry}
    if not name.startswith("_") and name in NODE_CLASS_MAPPINGS:
        return NODE_CLASS_MAPPINGS[name]
    raise AttributeError(f"Treadle does not serve nodes.{name}; docs/compat.md lists what it serves")


def common_ksampler(
    model: Any,
    seed: int,
    steps: int,
    cfg: float,
    sampler_name: str,
    scheduler: str,
    positive: Any,
    negative: Any,
    latent: dict[str, Any],
    denoise: float = 1.0,
    disable_noise: bool = False,
    start_step: int | None = None,
    last_step: int | None = None,
    force_full_denoise: bool = False,
) -> tuple[dict[str, Any]]:
    shared = {
        "model": model, "steps": steps, "cfg": cfg, "sampler_name": sampler_name, "scheduler": scheduler,
        "positive": positive, "negative": negative, "latent_image": latent,
    }  # fmt: skip
    if start_step is None and last_step is None and not disable_noise:
        values = called(host().registry["KSampler"], {**shared, "seed": seed, "denoise": denoise})
    elif denoise < 1.0:
        raise NotImplementedError("common_ksampler with a denoise below 1 runs all of its steps, with noise")
    else:
        part = {
            "noise_seed": seed,
            "add_noise": "disable" if disable_noise else "enable",
            "start_at_step": start_step or 0,
            "end_at_step": 10_000 if last_step is None else last_step,
            "return_with_leftover_noise": "disable" if force_full_denoise else "enable",
        }
        values = called(host().registry["KSamplerAdvanced"], {**shared, **part})
    return (values[0],)


def interrupt_processing(value: bool = True) -> None:
    """Stops every running job."""
    jobs = host().jobs
    if value and jobs is not None:
        loop = host().loop
        assert loop is not None, "jobs without a loop"
        loop.call_soon_threadsafe(jobs.interrupt)


def before_node_execution() -> None:
    from app.compat.faces.comfy.model_management import throw_exception_if_processing_interrupted

    throw_exception_if_processing_interrupted()


class SaveImage:
    """Subclasses change `output_dir`, `type` and `prefix_append`."""

    RETURN_TYPES = ()
    FUNCTION = "save_images"
    OUTPUT_NODE = True
    CATEGORY = "image"

    def __init__(self) -> None:
        self.output_dir = folder_paths.get_output_directory()
        self.type = "output"
        self.prefix_append = ""
        self.compress_level = 4

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {"images": ("IMAGE",), "filename_prefix": ("STRING", {"default": "ComfyUI"})},
            "hidden": {"prompt": "PROMPT", "extra_pnginfo": "EXTRA_PNGINFO"},
        }

    def save_images(
        self,
        images: Any,
        filename_prefix: str = "ComfyUI",
        prompt: Any = None,
        extra_pnginfo: Any = None,
    ) -> dict[str, Any]:
        from nodes.pictures import as_picture, png_metadata

        height, width = images[0].shape[:2]
        folder, name, counter, subfolder, _ = folder_paths.get_save_image_path(
            f"{filename_prefix}{self.prefix_append}", self.output_dir, width, height
        )
        saved = []
        for number, image in enumerate(images):
            file = f"{name.replace('%batch_num%', str(number))}_{counter + number:05}_.png"
            info = png_metadata(prompt, extra_pnginfo) if host().config.metadata else None
            path = os.path.join(folder, file)
            as_picture(image).save(path, pnginfo=info, compress_level=self.compress_level)
            saved.append({"filename": file, "subfolder": subfolder, "type": self.type})
        return {"ui": {"images": saved}}


class PreviewImage(SaveImage):
    def __init__(self) -> None:
        super().__init__()
        self.output_dir = folder_paths.get_temp_directory()
        self.type = "temp"
        self.prefix_append = "_temp_" + "".join(random.choice("abcdefghijklmnopqrstupvxyz") for _ in range(5))
        self.compress_level = 1

    @classmethod
    def INPUT_TYPES(cls) -> dict[str, Any]:
        return {
            "required": {"images": ("IMAGE",)},
            "hidden": {"prompt": "PROMPT", "extra_pnginfo": "EXTRA_PNGINFO"},
        }


NODE_CLASS_MAPPINGS.update(SaveImage=SaveImage, PreviewImage=PreviewImage)
