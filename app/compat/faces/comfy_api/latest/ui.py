"""`comfy_api.latest.ui`: what a node shows, and saving pictures on the way."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

from PIL.Image import Image

from app.compat.faces import folder_paths
from app.compat.v3.widgets import FolderType


class SavedResult(dict[str, Any]):
    """A file as clients ask for it."""

    def __init__(self, filename: str, subfolder: str, type: FolderType) -> None:
        super().__init__(filename=filename, subfolder=subfolder, type=FolderType(type).value)

    @property
    def filename(self) -> str:
        return str(self["filename"])

    @property
    def subfolder(self) -> str:
        return str(self["subfolder"])

    @property
    def type(self) -> FolderType:
        return FolderType(self["type"])


class SavedImages:
    def __init__(self, results: Sequence[SavedResult], is_animated: bool = False) -> None:
        self.results = list(results)
        self.is_animated = is_animated

    def as_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"images": self.results}
        return shown | ({"animated": (True,)} if self.is_animated else {})


class SavedAudios:
    def __init__(self, results: Sequence[SavedResult]) -> None:
        self.results = list(results)

    def as_dict(self) -> dict[str, Any]:
        return {"audio": self.results}


class ImageSaveHelper:
    """PNG files with the prompt and the workflow of the node `cls` in them."""

    @staticmethod
    def save_images(
        images: Any,
        filename_prefix: str,
        folder_type: FolderType,
        cls: Any = None,
        compress_level: int = 4,
    ) -> list[SavedResult]:
        from nodes.pictures import as_picture

        root = folder_paths.get_directory_by_type(FolderType(folder_type).value)
        assert root is not None
        height, width = images[0].shape[:2]
        folder, name, counter, subfolder, _ = folder_paths.get_save_image_path(
            filename_prefix, root, width, height
        )
        results = []
        for number, image in enumerate(images):
            file = f"{name.replace('%batch_num%', str(number))}_{counter:05}_.png"
            as_picture(image).save(
                os.path.join(folder, file), pnginfo=_metadata(cls), compress_level=compress_level
            )
            results.append(SavedResult(file, subfolder, FolderType(folder_type)))
            counter += 1
        return results

    @staticmethod
    def get_save_images_ui(
        images: Any, filename_prefix: str, cls: Any = None, compress_level: int = 4
    ) -> SavedImages:
        saved = ImageSaveHelper.save_images(images, filename_prefix, FolderType.output, cls, compress_level)
        return SavedImages(saved)


def _metadata(cls: Any) -> Any:
    from nodes.pictures import png_metadata

    hidden = getattr(cls, "hidden", None)
    return png_metadata(hidden.prompt, hidden.extra_pnginfo) if hidden is not None else None


class PreviewImage:
    """Pictures in the temporary folder; a batch, or masks when `image` has no channels."""

    def __init__(self, image: Any, animated: bool = False, cls: Any = None) -> None:
        tag = "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(5))
        self.values = ImageSaveHelper.save_images(image, f"ComfyUI_temp_{tag}", FolderType.temp, cls, 1)
        self.animated = animated

    def as_dict(self) -> dict[str, Any]:
        return {"images": self.values, "animated": (self.animated,)}


class PreviewMask(PreviewImage):
    def __init__(self, mask: Any, animated: bool = False, cls: Any = None) -> None:
        flat = mask.reshape(-1, *mask.shape[-2:], 1).expand(-1, -1, -1, 3)
        super().__init__(flat, animated, cls)


class PreviewText:
    def __init__(self, value: str) -> None:
        self.value = value

    def as_dict(self) -> dict[str, Any]:
        return {"text": (self.value,)}


class PreviewVideo:
    def __init__(self, values: Sequence[SavedResult]) -> None:
        self.values = list(values)

    def as_dict(self) -> dict[str, Any]:
        return {"images": self.values, "animated": (True,)}


class PreviewUI3D:
    def __init__(self, model_file: str, camera_info: Any, bg_image_path: str | None = None) -> None:
        self.values = [model_file, camera_info, bg_image_path]

    def as_dict(self) -> dict[str, Any]:
        return {"result": self.values}


__all__ = [
    "FolderType", "Image", "ImageSaveHelper", "PreviewImage", "PreviewMask", "PreviewText", "PreviewUI3D",
    "PreviewVideo", "SavedAudios", "SavedImages", "SavedResult",
]  # fmt: skip
