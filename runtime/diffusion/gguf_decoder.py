"""The first layers of a Llama-like language model in a GGUF file, with its tokenizer.

transformers reads such files in general; this reads only what is wanted, several times as fast.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from runtime.platform.errors import Unsupported
from runtime.platform.gguf_file import GgufFile, read_gguf

_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CONTROL = 3


def load_gguf_decoder(path: Path, hidden_layer: int, dtype: torch.dtype) -> tuple[Any, Any]:
    """A LlamaModel whose last hidden state is the file's `hidden_states[hidden_layer]`, and its tokenizer."""
    file = read_gguf(path)
    kinds = file.values.get("general.architecture"), file.values.get("tokenizer.ggml.model")
    if kinds != ("llama", "gpt2"):
        raise Unsupported(
            f"{path.name}: text features are read from Llama-like models with a byte-level tokenizer"
        )
    try:
        layers = file.values["llama.block_count"]
        wanted = hidden_layer if hidden_layer >= 0 else layers + 1 + hidden_layer
        if not 0 < wanted < layers:
            raise Unsupported(
                f"{path.name} has {layers} layers; {hidden_layer} is no inner hidden layer of it"
            )
        model = _model(file, wanted)
        missing, _ = model.load_state_dict(
            _state(file, wanted, model.config, dtype), strict=False, assign=True
        )
        tokenizer = _tokenizer(file)
    except KeyError as error:
        raise Unsupported(f"{path.name} is incomplete: its header lacks {error}") from error
    if missing:
        raise Unsupported(f"{path.name} is incomplete: it lacks {', '.join(missing[:3])}")
    return model, tokenizer


def _model(file: GgufFile, layers: int) -> Any:
    transformers = importlib.import_module("transformers")

    def told(name: str) -> Any:
        return file.values[f"llama.{name}"]

    config = transformers.LlamaConfig(
        vocab_size=file.tensors["token_embd.weight"].shape[0],
        hidden_size=told("embedding_length"),
        intermediate_size=told("feed_forward_length"),
        num_hidden_layers=layers,
        num_attention_heads=told("attention.head_count"),
        num_key_value_heads=told("attention.head_count_kv"),
        max_position_embeddings=told("context_length"),
        rms_norm_eps=told("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": told("rope.freq_base")},
    )
    with torch.device("meta"):
        model = transformers.LlamaModel(config)
    model.norm = torch.nn.Identity()
    model.rotary_emb = type(model.rotary_emb)(config)
    return model


def _state(file: GgufFile, layers: int, config: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = {"embed_tokens.weight": file.tensor("token_embd.weight").to(dtype)}
    for layer in range(layers):
        for old, new in _NAMES.items():
            tensor = file.tensor(f"blk.{layer}.{old}.weight").to(dtype)
            state[f"layers.{layer}.{new}.weight"] = _halves(tensor, heads[old]) if old in heads else tensor
    return state


def _halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """GGUF keeps the two rows that a rotary frequency turns side by side; transformers half a head apart."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def _tokenizer(file: GgufFile) -> Any:
    tokenizers = importlib.import_module("tokenizers")
    told = file.values
    words = told["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in told["tokenizer.ggml.merges"]]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=merges))
    split = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if told.get("tokenizer.ggml.pre") == "smollm":
        split.insert(0, tokenizers.pre_tokenizers.Digits(individual_digits=True))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(split)
    kinds = told["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens([word for word, kind in zip(words, kinds) if kind == _CONTROL])
    transformers = importlib.import_module("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
