"""Phi-4-multimodal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import Phi4MultimodalConfig, Phi4MultimodalFeatureExtractor, Phi4MultimodalProcessor

from runtime.llm.processors.crops import Phi4MultimodalImageProcessor


def save_phi4_multimodal(folder: Path, tools: Any) -> None:
    tokenizer = tools.tokenizer(image_token="<|image|>", audio_token="<|audio|>")
    config = Phi4MultimodalConfig(
        **tools.text_sizes(),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "image_size": 64,
            "crop_size": 64,
            "patch_size": 8,
            "image_token_id": tokenizer.image_token_id,
        },
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_blocks": 3,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 32,
            "nemo_conv_channels": 16,
            "depthwise_separable_out_channel": 32,
            "audio_token_id": tokenizer.audio_token_id,
        },
    )
    processor = tools.unchecked(Phi4MultimodalProcessor)(
        Phi4MultimodalImageProcessor({"height": 64, "width": 64}, patch_size=8, dynamic_hd=4),
        Phi4MultimodalFeatureExtractor(),
        tokenizer,
        chat_template=tools.chat_template(image="<|image|>", audio="<|audio|>"),
    )
    tools.save(folder, config, processor)
    # Both parts keep their settings in one file.
    settings = json.loads(processor.audio_processor.to_json_string()) | json.loads(
        processor.image_processor.to_json_string()
    )
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
