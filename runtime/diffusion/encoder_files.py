"""Text encoders from a single file's tensors: configuration from shapes, names as transformers has them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch

from runtime.platform.checkpoint import Shapes, count_layers
from runtime.platform.errors import Unsupported

_CLIP_HEAD = 64
_CLIP_END = 49407


def encoder_from_tensors(role: str, tensors: dict[str, torch.Tensor]) -> Any:
    """A transformers module on the CPU, in the tensors' type."""
    return _FROM_TENSORS[role](tensors)


def _build(class_name: str, config_name: str, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Any:
    transformers = importlib.import_module("transformers")
    with torch.device("meta"):
        module = getattr(transformers, class_name)(getattr(transformers, config_name)(**config))
    missing, _ = module.load_state_dict(tensors, strict=False, assign=True)
    module.tie_weights()
    _rebuild_positions(module)
    lacking = [name for name in missing if _parameter(module, name).is_meta]
    if lacking:
        raise Unsupported(f"the text encoder is incomplete: it lacks {', '.join(lacking[:3])}")
    return module


def _parameter(module: Any, name: str) -> torch.Tensor:
    owner, _, leaf = name.rpartition(".")
    tensor: torch.Tensor = getattr(module.get_submodule(owner), leaf)
    return tensor


def _rebuild_positions(module: Any) -> None:
    """Buffers that files do not hold: CLIP's position ids and the rotary frequencies."""
    for part in module.modules():
        positions = getattr(part, "position_ids", None)
        if isinstance(positions, torch.Tensor) and positions.is_meta:
            part.position_ids = torch.arange(positions.shape[-1])[None]
        if hasattr(part, "inv_freq") and part.inv_freq.is_meta:
            fresh = type(part)(part.config)
            part.inv_freq, part.original_inv_freq = fresh.inv_freq, fresh.inv_freq.clone()


def _clip_l(tensors: dict[str, torch.Tensor]) -> Any:
    config = _clip_config(_shapes(tensors), "quick_gelu")
    flat = {name.removeprefix("text_model."): tensor for name, tensor in tensors.items()}
    return _build("CLIPTextModel", "CLIPTextConfig", config, flat)


def _clip_h(tensors: dict[str, torch.Tensor]) -> Any:
    tensors = _from_open_clip(tensors)
    # SD2 was trained on the last layer but one; diffusers' folders leave the last one out as well
    layers = count_layers(_shapes(tensors), "text_model.encoder.layers.") - 1
    config = {**_clip_config(_shapes(tensors), "gelu"), "num_hidden_layers": layers}
    flat = {name.removeprefix("text_model."): tensor for name, tensor in tensors.items()}
    return _build("CLIPTextModel", "CLIPTextConfig", config, flat)


def _clip_g(tensors: dict[str, torch.Tensor]) -> Any:
    tensors = _from_open_clip(tensors)
    config = _clip_config(_shapes(tensors), "gelu")
    config["projection_dim"] = tensors["text_projection.weight"].shape[0]
    return _build("CLIPTextModelWithProjection", "CLIPTextConfig", config, tensors)


def _t5(tensors: dict[str, torch.Tensor]) -> Any:
    shapes = _shapes(tensors)
    gated = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight" in shapes
    inner = "wi_0" if gated else "wi"
    heads = shapes["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"][1]
    config = {
        "vocab_size": shapes["shared.weight"][0],
        "d_model": shapes["shared.weight"][1],
        "d_kv": shapes["encoder.block.0.layer.0.SelfAttention.q.weight"][0] // heads,
        "d_ff": shapes[f"encoder.block.0.layer.1.DenseReluDense.{inner}.weight"][0],
        "num_layers": count_layers(shapes, "encoder.block."),
        "num_heads": heads,
        "feed_forward_proj": "gated-gelu" if gated else "relu",
        "is_encoder_decoder": False,
        "use_cache": False,
    }
    return _build("T5EncoderModel", "T5Config", config, tensors)


def _qwen3(tensors: dict[str, torch.Tensor]) -> Any:
    flat = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    shapes = _shapes(flat)
    head = shapes["layers.0.self_attn.q_norm.weight"][0]
    config = {
        "vocab_size": shapes["embed_tokens.weight"][0],
        "hidden_size": shapes["embed_tokens.weight"][1],
        "intermediate_size": shapes["layers.0.mlp.gate_proj.weight"][0],
        "num_hidden_layers": count_layers(shapes, "layers."),
        "num_attention_heads": shapes["layers.0.self_attn.q_proj.weight"][0] // head,
        "num_key_value_heads": shapes["layers.0.self_attn.k_proj.weight"][0] // head,
        "head_dim": head,
        "max_position_embeddings": 40960,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    }
    return _build("Qwen3Model", "Qwen3Config", config, flat)


_FROM_TENSORS = {"clip_l": _clip_l, "clip_g": _clip_g, "clip_h": _clip_h, "t5": _t5, "qwen3": _qwen3}


def _clip_config(shapes: Shapes, activation: str) -> dict[str, Any]:
    vocabulary, width = shapes["text_model.embeddings.token_embedding.weight"]
    return {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": shapes["text_model.encoder.layers.0.mlp.fc1.weight"][0],
        "num_hidden_layers": count_layers(shapes, "text_model.encoder.layers."),
        "num_attention_heads": max(1, width // _CLIP_HEAD),
        "max_position_embeddings": shapes["text_model.embeddings.position_embedding.weight"][0],
        "hidden_act": activation,
        "eos_token_id": _CLIP_END,
    }


def _from_open_clip(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """OpenCLIP's names to transformers'; tensors that already have those stay as they are."""
    if "text_model.embeddings.token_embedding.weight" in tensors:
        return tensors
    width = tensors["token_embedding.weight"].shape[1]
    renamed = {
        "text_model.embeddings.token_embedding.weight": tensors["token_embedding.weight"],
        "text_model.embeddings.position_embedding.weight": tensors["positional_embedding"],
        "text_model.final_layer_norm.weight": tensors["ln_final.weight"],
        "text_model.final_layer_norm.bias": tensors["ln_final.bias"],
    }
    if "text_projection" in tensors:
        renamed["text_projection.weight"] = tensors["text_projection"].T.contiguous()
    inner = {"ln_1": "layer_norm1", "ln_2": "layer_norm2", "mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}
    inner["attn.out_proj"] = "self_attn.out_proj"
    for index in range(count_layers(_shapes(tensors), "transformer.resblocks.")):
        old, new = f"transformer.resblocks.{index}.", f"text_model.encoder.layers.{index}."
        for kind in ("weight", "bias"):
            for before, after in inner.items():
                renamed[f"{new}{after}.{kind}"] = tensors[f"{old}{before}.{kind}"]
            for name, third in zip("qkv", tensors[f"{old}attn.in_proj_{kind}"].split(width)):
                renamed[f"{new}self_attn.{name}_proj.{kind}"] = third
    return renamed


def _shapes(tensors: Mapping[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
