"""`comfy.cli_args`: the settings of this process under ComfyUI's names."""

from __future__ import annotations

import argparse
from enum import Enum
from typing import Any

from app.compat.host import host


class LatentPreviewMethod(Enum):
    NoPreviews = "none"
    Auto = "auto"
    Latent2RGB = "latent2rgb"
    TAESD = "taesd"


class Args(argparse.Namespace):
    """Settings that this program has, and False or None for switches that it decides itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        config = host().config
        known: dict[str, Any] = {
            "listen": ",".join(config.listen),
            "port": config.port,
            "disable_metadata": not config.metadata,
            "cpu": config.device == "cpu",
            "multi_user": config.multi_user,
            "verbose": config.log_level,
            "base_directory": str(config.directories.custom_nodes.parent),
            "output_directory": str(config.directories.output),
            "input_directory": str(config.directories.input),
            "temp_directory": str(config.directories.temp),
            "user_directory": str(config.directories.user),
            "max_upload_size": config.max_upload_mb,
            "enable_cors_header": config.cors_origin,
            "tls_keyfile": config.tls_key,
            "tls_certfile": config.tls_certificate,
            "disable_all_custom_nodes": not config.custom_nodes,
            "cache_none": config.cache_keeps == "nothing",
            "cache_classic": config.cache_keeps == "last",
            "cache_lru": config.cache_entries or 0,
            "preview_method": LatentPreviewMethod.Auto,
            "extra_model_paths_config": None,
            "default_device": None,
            "cuda_device": None,
            "reserve_vram": None,
            "fast": set(),
        }
        return known.get(name, False)


args = Args()


class PerformanceFeature(Enum):
    Fp16Accumulation = "fp16_accumulation"
    Fp8MatrixMultiplication = "fp8_matrix_mult"
    CublasOps = "cublas_ops"
    AutoTune = "autotune"


def enables_dynamic_vram() -> bool:
    return False
