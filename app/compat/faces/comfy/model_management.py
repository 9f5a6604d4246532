"""`comfy.model_management`: which device there is, how much room it has, and the stop of a job.

Packs move their own models; this program's are moved by its runtimes, whatever a pack asks.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from enum import Enum
from typing import Any

import psutil
import torch

from app.compat.host import host
from nodes.context import JobInterrupted, current_context

InterruptProcessingException = JobInterrupted
OOM_EXCEPTION: Any = torch.cuda.OutOfMemoryError
XFORMERS_IS_AVAILABLE = False
XFORMERS_ENABLED_VAE = False
current_loaded_models: list[Any] = []
FLOAT8_TYPES = [torch.float8_e4m3fn, torch.float8_e5m2]


class VRAMState(Enum):
    DISABLED = 0
    NO_VRAM = 1
    LOW_VRAM = 2
    NORMAL_VRAM = 3
    HIGH_VRAM = 4
    SHARED = 5


class CPUState(Enum):
    GPU = 0
    CPU = 1
    MPS = 2


def __getattr__(name: str) -> Any:
    if name == "cpu_state":
        return {"cpu": CPUState.CPU, "mps": CPUState.MPS}.get(get_torch_device().type, CPUState.GPU)
    if name in ("vram_state", "set_vram_to"):
        return VRAMState.DISABLED if get_torch_device().type == "cpu" else VRAMState.NORMAL_VRAM
    if name == "total_ram":
        return psutil.virtual_memory().total / 2**20
    if name == "total_vram":
        return get_total_memory(get_torch_device()) / 2**20
    raise AttributeError(
        f"Treadle does not serve comfy.model_management.{name}; docs/compat.md lists what it serves"
    )


def get_torch_device() -> torch.device:
    """Where models run."""
    named = host().config.device
    if named is not None:
        return torch.device(named)
    return (
        torch.device("cuda", torch.cuda.current_device())
        if torch.cuda.is_available()
        else torch.device("cpu")
    )


def get_torch_device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return f"{device} {torch.cuda.get_device_name(device)}"
    return str(device)


def get_all_torch_devices(exclude_current: bool = False) -> list[torch.device]:
    devices = [torch.device("cuda", i) for i in range(torch.cuda.device_count())] or [torch.device("cpu")]
    return [device for device in devices if not exclude_current or device != get_torch_device()]


def cpu_device() -> torch.device:
    return torch.device("cpu")


text_encoder_device = vae_device = unet_inital_load_device = get_torch_device
unet_offload_device = text_encoder_offload_device = vae_offload_device = intermediate_device = cpu_device


def intermediate_dtype() -> torch.dtype:
    return torch.float32


def get_autocast_device(dev: Any) -> str:
    return str(getattr(dev, "type", "cuda"))


def is_device_type(device: Any, kind: str) -> bool:
    return getattr(device, "type", None) == kind


def is_device_cpu(device: Any) -> bool:
    return is_device_type(device, "cpu")


def is_device_mps(device: Any) -> bool:
    return is_device_type(device, "mps")


def is_device_cuda(device: Any) -> bool:
    return is_device_type(device, "cuda")


def is_device_xpu(device: Any) -> bool:
    return is_device_type(device, "xpu")


def is_nvidia() -> bool:
    return get_torch_device().type == "cuda" and torch.version.cuda is not None


def is_amd() -> bool:
    return get_torch_device().type == "cuda" and torch.version.hip is not None


def is_intel_xpu() -> bool:
    return get_torch_device().type == "xpu"


def is_ascend_npu() -> bool:
    return False


def is_mlu() -> bool:
    return False


def is_directml_enabled() -> bool:
    return False


def cpu_mode() -> bool:
    return get_torch_device().type == "cpu"


def mps_mode() -> bool:
    return get_torch_device().type == "mps"


def xformers_enabled() -> bool:
    return False


def xformers_enabled_vae() -> bool:
    return False


def pytorch_attention_enabled() -> bool:
    return True


def pytorch_attention_flash_attention() -> bool:
    return is_nvidia()


def sage_attention_enabled() -> bool:
    return False


def flash_attention_enabled() -> bool:
    return False


def get_total_memory(dev: Any = None, torch_total_too: bool = False) -> Any:
    device = get_torch_device() if dev is None else torch.device(dev)
    if device.type == "cuda":
        total = torch.cuda.mem_get_info(device)[1]
    else:
        total = psutil.virtual_memory().total
    return (total, total) if torch_total_too else total


def get_free_memory(dev: Any = None, torch_free_too: bool = False) -> Any:
    """Also what torch holds and does not use."""
    device = get_torch_device() if dev is None else torch.device(dev)
    if device.type != "cuda":
        free = psutil.virtual_memory().available
        return (free, free) if torch_free_too else free
    stats = torch.cuda.memory_stats(device)
    held = stats.get("reserved_bytes.all.current", 0) - stats.get("active_bytes.all.current", 0)
    free = torch.cuda.mem_get_info(device)[0] + held
    return (free, held) if torch_free_too else free


def soft_empty_cache(force: bool = False) -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def unload_all_models() -> None:
    """This program's weights that nothing running needs."""
    host().unload()


def free_memory(
    memory_required: float, device: Any, keep_loaded: Sequence[Any] = (), **_options: Any
) -> list[Any]:
    """Gives weights back when there is less room than asked for."""
    if get_free_memory(device) < memory_required:
        host().unload()
        soft_empty_cache()
    return []


def load_models_gpu(models: Sequence[Any], *_args: Any, **_options: Any) -> None:
    """A pack's own module moves to the device; this program's models load with their first request."""
    for model in models:
        load_model_gpu(model)


def load_model_gpu(model: Any) -> None:
    if isinstance(model, torch.nn.Module):
        model.to(get_torch_device())


def loaded_models(only_currently_used: bool = False) -> list[Any]:
    return []


def cleanup_models() -> None:
    gc.collect()


def cleanup_models_gc() -> None:
    gc.collect()


def throw_exception_if_processing_interrupted() -> None:
    """Raises in a job that was stopped."""
    context = current_context.get(None)
    if context is not None:
        context.check_cancelled()


def processing_interrupted() -> bool:
    try:
        throw_exception_if_processing_interrupted()
    except JobInterrupted:
        return True
    return False


def interrupt_current_processing(value: bool = True) -> None:
    from app.compat.faces.nodes import interrupt_processing

    interrupt_processing(value)


def module_size(module: torch.nn.Module) -> int:
    return sum(weight.nelement() * weight.element_size() for weight in module.state_dict().values())


def dtype_size(dtype: torch.dtype) -> int:
    return torch.empty((), dtype=dtype).element_size()


def should_use_fp16(device: Any = None, *_args: Any, **_options: Any) -> bool:
    return (get_torch_device() if device is None else torch.device(device)).type == "cuda"


def should_use_bf16(device: Any = None, *_args: Any, **_options: Any) -> bool:
    kind = (get_torch_device() if device is None else torch.device(device)).type
    return kind == "cuda" and torch.cuda.is_bf16_supported()


def device_supports_non_blocking(device: Any) -> bool:
    return is_device_cuda(device)


def supports_fp8_compute(device: Any = None) -> bool:
    return is_nvidia() and torch.cuda.get_device_capability() >= (8, 9)


def unet_dtype(
    device: Any = None,
    model_params: int = 0,
    supported_dtypes: Sequence[torch.dtype] = (torch.float16, torch.bfloat16, torch.float32),
    weight_dtype: torch.dtype | None = None,
) -> torch.dtype:
    """The weights' own type where it can be computed with, else the first half type that the device likes."""
    if weight_dtype in supported_dtypes and weight_dtype is not None:
        return weight_dtype
    halves = [dtype for dtype in supported_dtypes if dtype in (torch.float16, torch.bfloat16)]
    return halves[0] if should_use_fp16(device) and halves else torch.float32


def unet_manual_cast(
    weight_dtype: torch.dtype | None,
    inference_device: Any,
    supported_dtypes: Sequence[torch.dtype] = (torch.float16, torch.bfloat16, torch.float32),
) -> torch.dtype | None:
    """The type to cast to for computing; None where the weights' own will do."""
    wanted = unet_dtype(inference_device, supported_dtypes=supported_dtypes, weight_dtype=weight_dtype)
    return None if wanted == weight_dtype else wanted


def text_encoder_dtype(device: Any = None) -> torch.dtype:
    return torch.float16 if should_use_fp16(device) else torch.float32


def vae_dtype(device: Any = None, allowed_dtypes: Sequence[torch.dtype] = ()) -> torch.dtype:
    if should_use_bf16(device) and (not allowed_dtypes or torch.bfloat16 in allowed_dtypes):
        return torch.bfloat16
    return torch.float32


def cast_to_device(tensor: torch.Tensor, device: Any, dtype: torch.dtype, copy: bool = False) -> torch.Tensor:
    return tensor.to(device=device, dtype=dtype, copy=copy, non_blocking=device_supports_non_blocking(device))


def cast_to(
    weight: torch.Tensor,
    dtype: torch.dtype | None = None,
    device: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    **_options: Any,
) -> torch.Tensor:
    kind, place = dtype or weight.dtype, device or weight.device
    return weight.to(dtype=kind, device=place, non_blocking=non_blocking, copy=copy)


def resolve_lowvram_weight(weight: torch.Tensor, model: Any, key: str) -> torch.Tensor:
    return weight


def pick_weight_dtype(dtype: Any, fallback_dtype: torch.dtype, device: Any = None) -> torch.dtype:
    return fallback_dtype if dtype is None else dtype


def torch_version_numeric() -> tuple[int, int]:
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)
