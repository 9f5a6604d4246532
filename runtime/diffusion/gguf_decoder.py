"""The first layers of a Llama-like language model in a GGUF file, with its tokenizer.

transformers reads such files in general; this reads only what is wanted, several times as fast.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import torch

from runtime.platform.errors import Unsupported

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
    gguf = importlib.import_module("gguf")
    reader = gguf.GGUFReader(path)
    told = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    if (
        told["general.architecture"].contents() != "llama"
        or told["tokenizer.ggml.model"].contents() != "gpt2"
    ):
        raise Unsupported(
            f"{path.name}: text features are read from Llama-like models with a byte-level tokenizer"
        )
    layers = told["llama.block_count"].contents()
    wanted = hidden_layer if hidden_layer >= 0 else layers + 1 + hidden_layer
    if not 0 < wanted < layers:
        raise Unsupported(
            f"{path.name} has {layers} layers; hidden layer {hidden_layer} is none of the inner ones"
        )
    model = _model(told, wanted)
    state = _state(gguf, reader, wanted, model.config, dtype)
    missing, _ = model.load_state_dict(state, strict=False, assign=True)
    if missing:
        raise Unsupported(f"{path.name} is incomplete: it lacks {', '.join(missing[:3])}")
    return model, _tokenizer(told)


def _model(told: dict[str, Any], layers: int) -> Any:
    transformers = importlib.import_module("transformers")

    def number(name: str) -> Any:
        return told[f"llama.{name}"].contents()

    config = transformers.LlamaConfig(
        vocab_size=number("vocab_size"),
        hidden_size=number("embedding_length"),
        intermediate_size=number("feed_forward_length"),
        num_hidden_layers=layers,
        num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"),
        max_position_embeddings=number("context_length"),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": number("rope.freq_base")},
    )
    with torch.device("meta"):
        model = transformers.LlamaModel(config)
    model.norm = torch.nn.Identity()
    model.rotary_emb = type(model.rotary_emb)(config)
    return model


def _state(gguf: Any, reader: Any, layers: int, config: Any, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    state = {}
    for entry in reader.tensors:
        block, _, rest = entry.name.partition(".")
        number, _, kind = rest.partition(".")
        kind = kind.removesuffix(".weight")
        if entry.name == "token_embd.weight":
            name = "embed_tokens.weight"
        elif block == "blk" and int(number) < layers and kind in _NAMES:
            name = f"layers.{number}.{_NAMES[kind]}.weight"
        else:
            continue
        tensor = torch.from_numpy(gguf.quants.dequantize(entry.data, entry.tensor_type).copy()).to(dtype)
        state[name] = _halves(tensor, heads[kind]) if kind in heads else tensor
    return state


def _halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """GGUF keeps the two rows that a rotary frequency turns side by side; transformers half a head apart."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def _tokenizer(told: dict[str, Any]) -> Any:
    tokenizers = importlib.import_module("tokenizers")
    words = told["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ")) for merge in told["tokenizer.ggml.merges"].contents()]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=merges))
    split = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if told["tokenizer.ggml.pre"].contents() == "smollm":
        split.insert(0, tokenizers.pre_tokenizers.Digits(individual_digits=True))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(split)
    kinds = told["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens([word for word, kind in zip(words, kinds) if kind == _CONTROL])
    transformers = importlib.import_module("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
