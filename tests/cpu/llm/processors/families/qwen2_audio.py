"""Qwen2-Audio, whose sounds last a second at most here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import (
    Qwen2AudioConfig,
    Qwen2AudioEncoderConfig,
    Qwen2AudioProcessor,
    Qwen2Config,
    WhisperFeatureExtractor,
)


def save_qwen2_audio(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(
        audio_token="<|AUDIO|>", audio_bos_token="<|audio_bos|>", audio_eos_token="<|audio_eos|>"
    )
    config = Qwen2AudioConfig(
        audio_config=Qwen2AudioEncoderConfig(
            num_mel_bins=16,
            encoder_layers=2,
            encoder_attention_heads=2,
            encoder_ffn_dim=48,
            d_model=32,
            max_source_positions=50,
        ),
        text_config=Qwen2Config(**tools.text_sizes()),
        audio_token_id=tokenizer.audio_token_id,
    )
    processor = Qwen2AudioProcessor(
        WhisperFeatureExtractor(feature_size=16, chunk_length=1),
        tokenizer,
        chat_template=tools.chat_template(audio="<|audio_bos|><|AUDIO|><|audio_eos|>"),
    )
    tools.save(folder, config, processor)
