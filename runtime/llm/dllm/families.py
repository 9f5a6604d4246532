"""Block-diffusion families whose networks are those of other families of transformers; what is their own is
the block, which lies in their configuration.

A folder of any decoder of transformers is such a model, too, when its configuration has `block_length` and
`mask_token_id`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from huggingface_hub.dataclasses import strict
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Glm4MoeForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    SarvamMoEConfig,
)
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)

from runtime.llm.dllm.blocks import BlockStyle
from runtime.platform.errors import Unsupported


@strict(accept_kwargs=True)
class SdarConfig(Qwen3Config):
    model_type = "sdar"
    attribute_map: ClassVar = {**Qwen3Config.attribute_map, "block_size": "block_length"}
    block_length: int = 4
    mask_token_id: int = 151669


@strict(accept_kwargs=True)
class SdarMoeConfig(Qwen3MoeConfig):
    model_type = "sdar_moe"
    attribute_map: ClassVar = {**Qwen3MoeConfig.attribute_map, "block_size": "block_length"}
    block_length: int = 4
    mask_token_id: int = 151669


@strict(accept_kwargs=True)
class Llada2MoeConfig(SarvamMoEConfig):
    """Its files name everything as those of SarvamMoE do, which is of the same descent."""

    model_type = "llada2_moe"
    block_length: int = 32
    mask_token_id: int = 156895


class SdarForCausalLM(Qwen3ForCausalLM):
    config_class = SdarConfig


class SdarMoeForCausalLM(Qwen3MoeForCausalLM):
    config_class = SdarMoeConfig


class Llada2MoeForCausalLM(Glm4MoeForCausalLM):
    config_class = Llada2MoeConfig


_NETWORKS: dict[Any, Any] = {
    SdarConfig: SdarForCausalLM,
    SdarMoeConfig: SdarMoeForCausalLM,
    Llada2MoeConfig: Llada2MoeForCausalLM,
}
_NAMED_AS = {"sdar_moe": "qwen3_moe", "llada2_moe": "sarvam_moe"}

for config, network in _NETWORKS.items():
    AutoConfig.register(config.model_type, config)
    AutoModelForCausalLM.register(config, network)
for name, other in _NAMED_AS.items():
    register_checkpoint_conversion_mapping(name, get_checkpoint_conversion_mapping(other))


def style_of(config: Any, name: str) -> BlockStyle | None:
    """None for models that write token by token."""
    length, mask_id = getattr(config, "block_length", None), getattr(config, "mask_token_id", None)
    if length is None or mask_id is None:
        return None
    if length < 2 or not 0 <= mask_id < config.vocab_size:
        raise Unsupported(
            f"{name} has blocks of {length} tokens and the mask {mask_id}; supported are blocks of 2 and more"
            f" and a mask among its {config.vocab_size} tokens"
        )
    return BlockStyle(length, mask_id)
