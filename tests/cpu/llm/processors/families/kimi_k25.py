"""Kimi K2.5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import DeepseekV3Config, Kimi_K25Config, Kimi_K25Processor

from runtime.llm.processors.patches import Kimi_K25ImageProcessor


def save_kimi_k25(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        "<|media_begin|>",
        "<|media_content|>",
        "<|media_end|>",
        image_token="<|media_pad|>",
        video_token="<|kimi_k25_video_placeholder|>",
    )
    config = Kimi_K25Config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "patch_size": 4,
            "pos_emb_height": 8,
            "pos_emb_width": 8,
        },
        text_config=DeepseekV3Config(
            **tools.text_sizes(
                num_key_value_heads=4,
                moe_intermediate_size=32,
                n_routed_experts=4,
                num_experts_per_tok=2,
                n_group=2,
                topk_group=1,
                first_k_dense_replace=1,
                kv_lora_rank=16,
                q_lora_rank=24,
                qk_rope_head_dim=8,
                qk_nope_head_dim=16,
                v_head_dim=16,
            )
        ),
        projection_hidden_size=32,
        image_token_id=tokenizer.image_token_id,
        video_token_id=tokenizer.video_token_id,
        tie_word_embeddings=False,
    )
    images = Kimi_K25ImageProcessor(size={"max_height": 12, "max_width": 12}, max_patches=80, patch_size=4)
    place = "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>"
    template = tools.chat_template(image=place)
    tools.save(folder, config, tools.unchecked(Kimi_K25Processor)(images, tokenizer, chat_template=template))
