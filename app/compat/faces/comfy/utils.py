"""`comfy.utils`: progress, resizing, weight files. It computes on plain tensors and knows no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL.Image import Image

from app.compat.tiles import tile_starts, tiled
from nodes.context import current_context
from nodes.resize import resized
from runtime.platform.errors import Unsupported

PROGRESS_BAR_ENABLED = True
PROGRESS_BAR_HOOK: Callable[..., None] | None = None


def set_progress_bar_enabled(enabled: bool) -> None:
    global PROGRESS_BAR_ENABLED
    PROGRESS_BAR_ENABLED = enabled


def set_progress_bar_global_hook(function: Callable[..., None] | None) -> None:
    """It is told of every bar's progress, beside the node that shows it."""
    global PROGRESS_BAR_HOOK
    PROGRESS_BAR_HOOK = function


class ProgressBar:
    """Shown on the node that runs here. Outside of a node it counts in silence."""

    def __init__(self, total: float, node_id: str | None = None) -> None:
        self.total = total
        self.current: float = 0
        self.node_id = node_id
        self.hook = PROGRESS_BAR_HOOK

    def update_absolute(self, value: float, total: float | None = None, preview: Any = None) -> None:
        if total is not None:
            self.total = total
        self.current = min(value, self.total)
        context = current_context.get(None)
        if context is not None:
            context.progress(self.current, self.total)
            if (picture := _picture(preview)) is not None:
                context.preview(picture)
        if self.hook is not None:
            self.hook(self.current, self.total, preview, node_id=self.node_id)

    def update(self, value: float) -> None:
        self.update_absolute(self.current + value)


def _picture(preview: Any) -> Image | None:
    """Previews come as (format, picture, largest side)."""
    if isinstance(preview, tuple | list) and len(preview) > 1 and isinstance(preview[1], Image):
        return preview[1]
    return preview if isinstance(preview, Image) else None


def common_upscale(
    samples: torch.Tensor, width: int, height: int, upscale_method: str, crop: str
) -> torch.Tensor:
    """[B, C, h, w], or [B, C, T, h, w] frame by frame."""
    if samples.ndim == 5:
        batch, channels, frames = samples.shape[:3]
        flat = samples.movedim(2, 1).reshape(batch * frames, channels, *samples.shape[-2:])
        scaled = resized(flat, width, height, upscale_method, crop)
        return scaled.reshape(batch, frames, channels, height, width).movedim(1, 2)
    return resized(samples, width, height, upscale_method, crop)


def lanczos(samples: torch.Tensor, width: int, height: int) -> torch.Tensor:
    return resized(samples, width, height, "lanczos")


def bislerp(samples: torch.Tensor, width: int, height: int) -> torch.Tensor:
    return resized(samples, width, height, "bislerp")


def get_tiled_scale_steps(width: int, height: int, tile_x: int, tile_y: int, overlap: int) -> int:
    return len(tile_starts(width, tile_x, overlap)) * len(tile_starts(height, tile_y, overlap))


def tiled_scale(
    samples: torch.Tensor,
    function: Callable[[torch.Tensor], torch.Tensor],
    tile_x: int = 64,
    tile_y: int = 64,
    overlap: int = 8,
    upscale_amount: float = 4,
    out_channels: int = 3,
    output_device: torch.device | str = "cpu",
    pbar: ProgressBar | None = None,
) -> torch.Tensor:
    return tiled_scale_multidim(
        samples, function, (tile_y, tile_x), overlap, upscale_amount, out_channels, output_device, pbar=pbar
    )


def tiled_scale_multidim(
    samples: torch.Tensor,
    function: Callable[[torch.Tensor], torch.Tensor],
    tile: Sequence[int] = (64, 64),
    overlap: int = 8,
    upscale_amount: float = 4,
    out_channels: int = 3,
    output_device: torch.device | str = "cpu",
    downscale: bool = False,
    index_formulas: Any = None,
    pbar: ProgressBar | None = None,
) -> torch.Tensor:
    """`function` on overlapping tiles of the last dimensions, blended where they meet."""
    if index_formulas is not None:
        raise Unsupported("tiled_scale_multidim works with one factor for all dimensions, no index_formulas")
    factor = 1 / upscale_amount if downscale else upscale_amount
    step = (lambda: pbar.update(1)) if pbar is not None else (lambda: None)
    return tiled(samples, function, tuple(tile), overlap, factor, out_channels, step).to(output_device)


def repeat_to_batch_size(tensor: torch.Tensor, batch_size: int, dim: int = 0) -> torch.Tensor:
    size = tensor.shape[dim]
    if size >= batch_size:
        return tensor.narrow(dim, 0, batch_size)
    repeats = [1] * tensor.ndim
    repeats[dim] = math.ceil(batch_size / size)
    return tensor.repeat(repeats).narrow(dim, 0, batch_size)


def resize_to_batch_size(tensor: torch.Tensor, batch_size: int) -> torch.Tensor:
    """Spread evenly: items repeat, or are left out, over the whole length."""
    size = tensor.shape[0]
    if batch_size <= 1:
        return tensor[:batch_size]
    scale = (size - 1) / (batch_size - 1) if batch_size < size else size / batch_size
    offset = 0.0 if batch_size < size else 0.5
    picked = [
        min(round(i * scale) if batch_size < size else int((i + offset) * scale), size - 1)
        for i in range(batch_size)
    ]
    return tensor[picked]


class StateDict(dict[str, Any]):
    """Weights that remember their file, for what this program loads by path."""

    def __init__(self, path: Path, weights: Mapping[str, Any]) -> None:
        super().__init__(weights)
        self.path = path


def load_torch_file(
    ckpt: str | Path, safe_load: bool = False, device: Any = None, return_metadata: bool = False
) -> Any:
    """A safetensors file or a pickle of tensors; other pickled objects are refused."""
    path = Path(ckpt)
    metadata: dict[str, str] | None = None
    if path.suffix.lower() in (".safetensors", ".sft"):
        from safetensors import safe_open

        with safe_open(str(path), framework="pt", device=str(device or "cpu")) as file:
            metadata = file.metadata()
            weights: Any = StateDict(path, {key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118
    else:
        loaded = torch.load(path, map_location=device or "cpu", weights_only=True)
        weights = StateDict(path, loaded.get("state_dict", loaded)) if isinstance(loaded, dict) else loaded
    return (weights, metadata) if return_metadata else weights


def save_torch_file(sd: dict[str, torch.Tensor], ckpt: str, metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save_file

    save_file(sd, ckpt, metadata=metadata)


def calculate_parameters(sd: Mapping[str, torch.Tensor], prefix: str = "") -> int:
    return sum(weight.nelement() for key, weight in sd.items() if key.startswith(prefix))


def weight_dtype(sd: Mapping[str, torch.Tensor], prefix: str = "") -> torch.dtype | None:
    """The type that most numbers have."""
    counts: dict[torch.dtype, int] = {}
    for key, weight in sd.items():
        if key.startswith(prefix):
            counts[weight.dtype] = counts.get(weight.dtype, 0) + weight.numel()
    return max(counts, key=lambda dtype: counts[dtype]) if counts else None


def state_dict_key_replace(state_dict: dict[str, Any], keys_to_replace: Mapping[str, str]) -> dict[str, Any]:
    for old, new in keys_to_replace.items():
        if old in state_dict:
            state_dict[new] = state_dict.pop(old)
    return state_dict


def state_dict_prefix_replace(
    state_dict: dict[str, Any], replace_prefix: Mapping[str, str], filter_keys: bool = False
) -> dict[str, Any]:
    """Changed in place; with `filter_keys` a new dict of the renamed keys alone."""
    renamed = {} if filter_keys else state_dict
    for old, new in replace_prefix.items():
        for key in [key for key in state_dict if key.startswith(old)]:
            renamed[f"{new}{key[len(old) :]}"] = state_dict.pop(key)
    return renamed


def get_attr(obj: Any, attr: str) -> Any:
    """`attr` may lead through several objects: `a.b.0.c`."""
    for name in attr.split("."):
        obj = getattr(obj, name)
    return obj


def set_attr(obj: Any, attr: str, value: Any) -> Any:
    """Returns what was there."""
    *way, name = attr.split(".")
    owner = get_attr(obj, ".".join(way)) if way else obj
    before = getattr(owner, name)
    setattr(owner, name, value)
    return before


def set_attr_param(obj: Any, attr: str, value: torch.Tensor) -> Any:
    return set_attr(obj, attr, torch.nn.Parameter(value, requires_grad=False))


def copy_to_param(obj: Any, attr: str, value: torch.Tensor) -> None:
    get_attr(obj, attr).data.copy_(value)


def string_to_seed(data: str) -> int:
    """CRC-32 of the text."""
    import zlib

    return zlib.crc32(data.encode())


def pack_latents(latents: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[list[int]]]:
    """Latents of several shapes as one [B, 1, n], with their shapes."""
    shapes = [list(latent.shape) for latent in latents]
    return torch.cat([latent.reshape(latent.shape[0], 1, -1) for latent in latents], dim=-1), shapes


def unpack_latents(
    combined_latent: torch.Tensor, latent_shapes: Sequence[Sequence[int]]
) -> list[torch.Tensor]:
    if len(latent_shapes) <= 1:
        return [combined_latent]
    sizes = [math.prod(shape[1:]) for shape in latent_shapes]
    parts = combined_latent.split(sizes, dim=-1)
    return [part.reshape(part.shape[0], *shape[1:]) for part, shape in zip(parts, latent_shapes)]
