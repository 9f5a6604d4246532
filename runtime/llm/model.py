"""Loads a causal language model of transformers for paged attention and proves that it computes the same
there.

It takes a GGUF file or a folder in transformers' layout; it knows no requests and no scheduling.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMultimodalLM,
    GgufConfig,
    modeling_gguf_pytorch_utils,
)
from transformers.utils import logging

from runtime.llm import composed, half_network, packed_linear, processors, weight_count
from runtime.llm.attention import IMPLEMENTATION, PagedForward
from runtime.llm.batch import Chunked, Sliding, Window, build
from runtime.llm.dllm import families
from runtime.llm.dllm.blocks import BlockStyle
from runtime.llm.encoder_client import EncoderClient
from runtime.llm.key_values import KeyValues, LayerShape
from runtime.llm.processors.base import Processor
from runtime.llm.sequence import Row, TokenSequence
from runtime.llm.states import StateKey, States, StateShape
from runtime.platform.errors import MissingFile, RuntimeFault, Unsupported

_SUPPORTED = (
    "supported are GGUF files and folders of decoder-only models whose attention goes through transformers'"
    " attention interface, such as Llama, Qwen, Mistral, Gemma, Phi, OLMo, Granite and SmolLM"
)
_ATTENTION_KINDS = frozenset(
    ["full_attention", "sliding_attention", "chunked_attention", "hybrid", "hybrid_sliding"]
)
_STATE_KINDS = frozenset(["linear_attention", "conv", "hybrid", "hybrid_sliding"])
_OTHER_KINDS = frozenset(["moe", "mlp"])
_PROBE_CHUNKS = (7, 1, 3, 1)
_PROBE_PAGE_SIZE = 4


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """`shapes` are the layers' keys and values, `states` what layers carry from token to token beside them;
    `num_hidden` counts the hidden states that transformers reports. Models that take more than text have a
    `processor`, and those that write in blocks, by diffusion, have `blocks`. Where media are encoded in
    another process, the network has no encoder, and `encoder` asks for features.
    """

    network: Any
    device: torch.device
    shapes: Mapping[int, LayerShape]
    windows: Mapping[int, Window]
    context_length: int
    num_hidden: int
    end_ids: frozenset[int]
    processor: Processor | None = None
    states: Mapping[StateKey, StateShape] = field(default_factory=dict)
    weight_bytes: int = 0
    blocks: BlockStyle | None = None
    encoder: EncoderClient | None = None

    @property
    def position_axes(self) -> int:
        return 1 if self.processor is None else self.processor.position_axes

    @property
    def token_bytes(self) -> int:
        """Of keys and values, over all layers."""
        return sum(shape.token_bytes for shape in self.shapes.values())

    @property
    def state_bytes(self) -> int:
        """Of one sequence's states, over all layers."""
        return sum(shape.num_bytes for shape in self.states.values())


def load(
    path: Path,
    device: torch.device,
    dtype: torch.dtype | None,
    others: Mapping[str, Path] | None = None,
    *,
    encodes: bool = True,
) -> LanguageModel:
    """`dtype` None is the fastest that keeps answers: bfloat16 on an accelerator, on a CPU float32 with
    weights of linear layers kept in float16. `others` are the models from which a folder may borrow its
    language part, by name. One that does not `encode` media itself is loaded without its encoder.
    """
    if not path.exists():
        raise MissingFile(f"there is no language model at {path.name}")
    silence_progress_bars()
    dtype, halves = number_format(device, dtype)
    try:
        weight_count.check_fits(path, device, dtype)
        network, processor = _read(path, dtype, others or {}, encodes)
    except RuntimeFault:
        raise
    except Exception as error:
        # Damaged files and strange configurations come out of transformers as any kind of error.
        raise Unsupported(f"{path.name} cannot be loaded ({error}); {_SUPPORTED}") from error
    return adopt(network.eval().requires_grad_(False).to(device), path.name, device, processor, halves=halves)


def number_format(device: torch.device, dtype: torch.dtype | None) -> tuple[torch.dtype, bool]:
    """What is computed in, and whether weights of linear layers are kept in half of it."""
    if dtype is not None:
        return dtype, False
    return torch.float32 if device.type == "cpu" else torch.bfloat16, packed_linear.can_halve(device)


def _read(
    path: Path, dtype: torch.dtype, others: Mapping[str, Path], encodes: bool
) -> tuple[Any, Processor | None]:
    if path.is_file():
        return _read_text_model(path, dtype), None
    if composed.is_composed(path):
        language = _read_text_model(composed.language_path(path, others), dtype)
        return composed.read(path, language, others, encodes=encodes)
    config = AutoConfig.from_pretrained(path, local_files_only=True)
    if not processors.is_known(config):
        return _read_text_model(path, dtype), None
    settings = {"dtype": dtype, "attn_implementation": implementations(config)}
    if encodes:
        network = AutoModelForMultimodalLM.from_pretrained(path, local_files_only=True, **settings)
    else:
        network = half_network.load(path, config, "language", **settings)
    return network, processors.families()[config.model_type].load(path, config)


def _read_text_model(path: Path, dtype: torch.dtype) -> Any:
    return AutoModelForCausalLM.from_pretrained(
        path.parent if path.is_file() else path,
        dtype=dtype,
        attn_implementation=IMPLEMENTATION,
        local_files_only=True,
        **_file_arguments(path),
    )


def implementations(config: Any, kind: str = IMPLEMENTATION) -> str | dict[str, str]:
    """The language part attends on pages, or as said; towers keep what transformers chooses for them."""
    text = config.get_text_config()
    parts = {name: getattr(config, name, None) for name in config.sub_configs}
    mine = [name for name, part in parts.items() if part is text]
    # By "" transformers means the model beside its parts.
    return dict.fromkeys(mine or [""], kind) if parts else kind


def silence_progress_bars() -> None:
    logging.disable_progress_bar()
    # This one asks nobody.
    modeling_gguf_pytorch_utils.tqdm = partial(tqdm, disable=True)


def adopt(
    network: Any, name: str, device: torch.device, processor: Processor | None = None, *, halves: bool = False
) -> LanguageModel:
    """Make a loaded network ready for paged forwards, or refuse it with a sentence."""
    config = network.config.get_text_config()
    windows = _windows(network, config, name)
    axes = 1 if processor is None else processor.position_axes
    blocks = families.style_of(config, name)
    if blocks is not None and (windows or processor or _STATE_KINDS & set(_kinds(config) or ())):
        raise Unsupported(
            f"{name} writes in blocks; supported is that for text and layers that see everything"
        )
    states = States(1, device) if _STATE_KINDS & set(_kinds(config) or ()) else None
    shapes = _probe(network, config, windows, states, name, device, axes)
    packed_linear.pack(network, device, halves=halves)
    end_ids = network.generation_config.eos_token_id if network.generation_config else config.eos_token_id
    return LanguageModel(
        network=network,
        device=device,
        shapes=shapes,
        windows=windows,
        context_length=getattr(config, "max_position_embeddings", None) or sys.maxsize,
        num_hidden=config.num_hidden_layers + 1,
        end_ids=frozenset([end_ids] if isinstance(end_ids, int) else end_ids or ()),
        processor=processor,
        states={} if states is None else states.shapes,
        weight_bytes=weight_count.held(network),
        blocks=blocks,
    )


def _file_arguments(path: Path) -> dict[str, Any]:
    """A GGUF's weights are unpacked at load: a matmul on packed blocks would unpack them at every step."""
    if path.is_dir():
        return {}
    if path.suffix.lower() != ".gguf":
        raise Unsupported(f"{path.name} is neither a GGUF file nor a folder; {_SUPPORTED}")
    return {"gguf_file": path.name, "quantization_config": GgufConfig(dequantize=True)}


def _windows(network: Any, config: Any, name: str) -> dict[int, Window]:
    """Which layers see a limited past. Some models pass a window along and never apply it, so their word for
    a call is not taken: it is the layer types, or whether the model's code makes a sliding mask at all.
    """
    window: int | None = getattr(config, "sliding_window", None)
    kinds = _kinds(config)
    if kinds is None:
        source = inspect.getsource(inspect.getmodule(type(network)) or type(network))
        kinds = ["sliding_attention" if "create_sliding_window_causal_mask" in source else "full_attention"]
        kinds = kinds * config.num_hidden_layers
    strange = set(kinds) - _ATTENTION_KINDS - _STATE_KINDS - _OTHER_KINDS
    if strange:
        raise Unsupported(f"{name} has layers of kind {', '.join(sorted(strange))}; {_SUPPORTED}")
    sliding = [index for index, kind in enumerate(kinds) if kind in ("sliding_attention", "hybrid_sliding")]
    chunked = [index for index, kind in enumerate(kinds) if kind == "chunked_attention"]
    found: dict[int, Window] = {} if window is None else dict.fromkeys(sliding, Sliding(window))
    return found | {index: Chunked(config.attention_chunk_size) for index in chunked}


def _kinds(config: Any) -> list[str] | None:
    kinds: list[str] | None = getattr(config, "layer_types", None)
    return kinds


@torch.inference_mode()
def _probe(
    network: Any,
    config: Any,
    windows: Mapping[int, Window],
    states: States | None,
    name: str,
    device: torch.device,
    axes: int,
) -> Mapping[int, LayerShape]:
    """Compute a short text in chunks on pages, and whole by the model's own attention; both must agree."""
    count = sum(_PROBE_CHUNKS)
    tokens = [(7919 * position + 5) % config.vocab_size for position in range(count)]
    try:
        network.set_attn_implementation(implementations(network.config, "eager"))
        expected = network(input_ids=torch.tensor([tokens], device=device), use_cache=False).logits[0]
        network.set_attn_implementation(implementations(network.config))
        # Last, so that it computes as requests will: some part may not have heard of the way back.
        paged, key_values = _paged_logits(network, tokens, windows, states, device, axes)
        if not key_values.shapes:
            raise Unsupported(f"{name} never calls transformers' attention interface; {_SUPPORTED}")
    except RuntimeFault:
        raise
    except Exception as error:
        raise Unsupported(
            f"{name} cannot run on pages ({type(error).__name__}: {error}); {_SUPPORTED}"
        ) from error
    worst = (paged.float() - expected.float()).abs().max().item()
    tolerance = (1e-3 if expected.dtype == torch.float32 else 6e-2) * max(1.0, expected.abs().max().item())
    if not worst <= tolerance:
        raise Unsupported(
            f"{name} computes something else on pages (logits differ by {worst:.2g}); {_SUPPORTED}"
        )
    return key_values.shapes


def _paged_logits(
    network: Any,
    tokens: list[int],
    windows: Mapping[int, Window],
    states: States | None,
    device: torch.device,
    axes: int,
) -> tuple[torch.Tensor, KeyValues]:
    num_pages = -(-len(tokens) // _PROBE_PAGE_SIZE)
    key_values = KeyValues(num_pages, _PROBE_PAGE_SIZE, device)
    sequence = TokenSequence("probe", tokens, len(tokens), pages=list(range(num_pages))[::-1], slot=0)
    parts, start = [], 0
    for count in _PROBE_CHUNKS:
        batch = build([Row(sequence, start, count, samples=False)], _PROBE_PAGE_SIZE, device, axes)
        forward = PagedForward(batch, key_values, windows)
        if states is not None:
            states.begin(batch.rows)
        out = network(
            input_ids=batch.input_ids,
            position_ids=batch.position_ids,
            use_cache=states is not None,
            **({} if states is None else {"cache": states}),
            paged=forward,
        )
        if states is not None:
            states.commit()
        parts.append(out.logits[0])
        start += count
    return torch.cat(parts), key_values
