"""The vision half of a LLaVA model, and the language model that reads what it says."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    CLIPVisionConfig,
    GgufConfig,
    LlavaConfig,
)
from transformers.models.llava.modeling_llava import LlavaMultiModalProjector

from bench.train_vlm.pictures import PICTURE
from runtime.llm import gguf_header
from runtime.platform.building import building
from runtime.platform.installed import packaged_language_models

LANGUAGE_MODEL = "smollm2-135m-instruct"
PLACEHOLDER = "<reponame>"  # a token of the vocabulary that no text needs stands for an image's tokens
PATCH = 16  # pixels a side
NUM_IMAGE_TOKENS = (PICTURE // PATCH) ** 2


class Vision(nn.Module):
    """Parameters are named as in LlavaModel, so that its loader can take them."""

    def __init__(self, config: LlavaConfig) -> None:
        super().__init__()
        self.vision_tower = AutoModel.from_config(config.vision_config, attn_implementation="eager")
        self.multi_modal_projector = LlavaMultiModalProjector(config)

    def features(self, pictures: Tensor) -> Tensor:
        """[B, 3, PICTURE, PICTURE] in [-1, 1] to [B, NUM_IMAGE_TOKENS, width], without the class token."""
        states: Tensor = self.vision_tower(pictures).last_hidden_state
        return states[:, 1:]

    def forward(self, pictures: Tensor) -> Tensor:
        """What stands for the pictures among the language model's input embeddings, [B, tokens, D]."""
        embeddings: Tensor = self.multi_modal_projector(self.features(pictures))
        return embeddings


class Language:
    """Owns the frozen language model and its tokenizer."""

    def __init__(self, dtype: torch.dtype) -> None:
        model_file = packaged_language_models()[LANGUAGE_MODEL]
        source = {"pretrained_model_name_or_path": str(model_file.parent), "gguf_file": model_file.name}
        with building, gguf_header.read_once():
            self.tokenizer = AutoTokenizer.from_pretrained(**source)
            self.model: Any = AutoModelForCausalLM.from_pretrained(
                **source,
                dtype=dtype,
                quantization_config=GgufConfig(dequantize=True),
                attn_implementation="eager",  # the fused kernels are slow backwards on a CPU
            )
        self.model.eval().requires_grad_(False)

    def embed(self, ids: Tensor) -> Tensor:
        embeddings: Tensor = self.model.get_input_embeddings()(ids)
        return embeddings

    def tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids


def new_config(language: Language) -> LlavaConfig:
    vision = CLIPVisionConfig(
        hidden_size=256,
        intermediate_size=1024,
        num_hidden_layers=4,
        num_attention_heads=4,
        image_size=PICTURE,
        patch_size=PATCH,
    )
    return LlavaConfig(
        vision_config=vision,
        text_config=deepcopy(language.model.config),  # it is changed there
        image_token_index=language.tokenizer.convert_tokens_to_ids(PLACEHOLDER),
        image_seq_length=NUM_IMAGE_TOKENS,
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
        architectures=["LlavaForConditionalGeneration"],
    )
