"""The steps by which media reach a model: preprocess, hash, stand in the prompt, place, position, encode,
hand over. A family replaces those that it does otherwise.

The defaults fit the families whose transformers processor expands its own placeholders, item by item.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from runtime.llm.api import Audio, Image, Media, Video
from runtime.llm.media import Features, Item, Kind, MediaPrompt, Placed, content_hash, keys_of
from runtime.llm.processors import assemble
from runtime.llm.processors.memory import ItemMemory
from runtime.llm.resample import resample
from runtime.platform.errors import RuntimeFault, Unsupported

_MEMORY_BYTES = 128 << 20
_KINDS: Mapping[type[Media], Kind] = {Image: "image", Video: "video", Audio: "audio"}


class Processor:
    """One loaded model's. Any thread may use it but for `encode`, which is the engine's.

    `model_types` are the configurations that a family serves, `kinds` the media that it takes. Where
    `attends_both_ways`, the tokens of an image see each other in both directions and stay in one chunk.
    `position_axes` counts the numbers of which a token's position consists. A request holds `max_items` at
    most, where there is a limit. With `takes_joined_rows` a network wants all features in one tensor rather
    than in a list of tensors; one that `takes_embeddings` knows no features beside tokens and is handed
    embeddings instead.
    """

    model_types: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[tuple[Kind, ...]] = ("image",)
    attends_both_ways: ClassVar[bool] = False
    position_axes: ClassVar[int] = 1
    max_items: ClassVar[int | None] = None
    takes_joined_rows: ClassVar[bool] = False
    takes_embeddings: ClassVar[bool] = False

    def __init__(self, processor: Any, config: Any) -> None:
        self.config = config
        self.tokenizer = processor.tokenizer
        self._processor = processor
        self._settings = processor._merge_kwargs(
            tokenizer_init_kwargs=self.tokenizer.init_kwargs, return_tensors="pt"
        )
        self._own = threading.local()
        self._memory = ItemMemory(_MEMORY_BYTES)

    @classmethod
    def load(cls, folder: Path, config: Any) -> Processor:
        return cls(assemble.load(folder, config.model_type), config)

    # -- before a request starts -----------------------------------------------------------------------------

    def items(self, media: Sequence[Media]) -> list[Item]:
        """All media of one request, in order; for families to which their number matters."""
        if self.max_items is not None and len(media) > self.max_items:
            raise Unsupported(
                f"a model of type {self.config.model_type} takes {self.max_items} medium a request at most"
            )
        return [self.item(each) for each in media]

    def item(self, media: Media) -> Item:
        """Raises `Unsupported` for a kind that the model does not take or content that it cannot read."""
        kind = next(kind for of, kind in _KINDS.items() if isinstance(media, of))
        if kind not in self.kinds:
            takes = ", ".join(self.kinds)
            raise Unsupported(f"a model of type {self.config.model_type} takes no {kind}; it takes {takes}")
        return self._memory.get(_raw_hash(media), lambda: self._item(kind, media))

    def _item(self, kind: Kind, media: Media) -> Item:
        try:
            inputs, text = self.preprocess(media)
        except RuntimeFault:
            raise
        except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
            raise Unsupported(f"the {kind} cannot be prepared for the model: {error}") from error
        num_rows = self.tokenizer.encode(text, add_special_tokens=False).count(self.placeholder(kind))
        return Item(kind, inputs, text, num_rows, content_hash(kind, inputs))

    def preprocess(self, media: Media) -> tuple[dict[str, torch.Tensor], str]:
        """What the encoder takes for this one item, and the text that stands for it in a prompt."""
        processor = self._thread_processor()
        match media:
            case Image():
                made, texts = processor._process_images([self.raw(media)], **self._settings["images_kwargs"])
            case Video():
                made, texts = processor._process_videos([self.raw(media)], **self._settings["videos_kwargs"])
            case Audio():
                made, texts = processor._process_audio(
                    [self.raw(media)],
                    sampling_rate=processor._audio_processor.sampling_rate,
                    return_tensors="pt",
                )
        tensors = {name: value for name, value in made.items() if isinstance(value, torch.Tensor)}
        return {name: tensors[name] for name in tensors if name not in processor.unused_input_names}, texts[0]

    def raw(self, media: Media) -> Any:
        """As transformers' processors take it."""
        match media:
            case Image():
                return media.pixels.numpy()
            case Video():
                return media.frames.numpy()
            case Audio():
                rate = self._processor._audio_processor.sampling_rate
                return resample(media.samples, media.rate, rate).numpy()

    def template(self, items: Sequence[Item]) -> Any:
        """The model's transformers processor with the preprocessing of exactly these items behind it."""
        texts = {kind: [item.text for item in items if item.kind == kind] for kind in self.kinds}
        processor = copy(self._processor)
        processor._process_images = lambda *_, **__: ({}, texts.get("image", []))
        processor._process_videos = lambda *_, **__: ({}, texts.get("video", []))
        processor._process_audio = lambda *_, **__: ({}, texts.get("audio", []))
        # They take what a user spells for a place; `place` counts afterwards.
        processor.validate_inputs = lambda *_, **__: None
        processor._check_special_mm_tokens = lambda *_, **__: None
        processor.get_text_with_replacements = partial(_expanded, processor.get_text_with_replacements)
        return processor

    def prompt(self, tokens: list[int], items: Sequence[Item], network: Any) -> MediaPrompt:
        """Where each item's features go among the tokens of a prompt that holds their texts."""
        placed = self.place(tokens, items)
        positions, shift = self.positions(tokens, placed, network)
        return MediaPrompt(
            tokens=tokens,
            keys=keys_of(tokens, placed),
            placed=tuple(placed),
            atoms=self.atoms(placed) if self.attends_both_ways else (),
            positions=positions,
            shift=shift,
        )

    def place(self, tokens: Sequence[int], items: Sequence[Item]) -> list[Placed]:
        left = {
            kind: iter([at for at, token in enumerate(tokens) if token == self.placeholder(kind)])
            for kind in self.kinds
        }
        placed = []
        for item in items:
            taken = tuple(at for _, at in zip(range(item.num_rows), left[item.kind], strict=False))
            if not taken or len(taken) < item.num_rows:
                raise Unsupported(f"the prompt has fewer places than the {item.kind}s given with it")
            placed.append(Placed(item, taken))
        if any(True for each in left.values() for _ in each):
            raise Unsupported("the prompt has more places than the media given with it")
        return placed

    def placeholder(self, kind: Kind) -> int:
        """The token whose embedding a feature replaces."""
        names = (f"{kind}_token_id", f"{kind}_token_index")
        found = [value for name in names if (value := getattr(self.config, name, None)) is not None]
        assert found, f"{self.config.model_type} names no placeholder for {kind}"
        return int(found[0])

    def positions(
        self,
        tokens: Sequence[int],  # noqa: ARG002
        placed: Sequence[Placed],  # noqa: ARG002
        network: Any,  # noqa: ARG002
    ) -> tuple[torch.Tensor | None, int]:
        """As in `MediaPrompt`; the default counts one by one."""
        return None, 0

    def atoms(self, placed: Sequence[Placed]) -> tuple[tuple[int, int], ...]:
        return tuple(each.span for each in placed if each.item.kind == "image")

    def extended(
        self,
        prompt: str,  # noqa: ARG002
        token_ids: Sequence[int],  # noqa: ARG002
        media: Sequence[Media],  # noqa: ARG002
    ) -> Mapping[str, Any] | None:
        """What an answer to a prompt says in the model's own form, as JSON has it; the default is nothing."""
        return None

    # -- on the engine's thread ------------------------------------------------------------------------------

    @torch.inference_mode()
    def encode(self, network: Any, items: Sequence[Item]) -> list[Features]:
        """The features of items of one kind, computed together."""
        kind = items[0].kind
        inputs = self.stack(items)
        # An encoder whose weights are all packed has buffers only.
        place = next(chain(network.parameters(), network.buffers()))
        moved = {
            name: each.to(place.device, place.dtype if each.is_floating_point() else None)
            for name, each in inputs.items()
        }
        features = self.split(self.encoder(network, kind)(**moved, return_dict=True), items)
        counts = [(len(each.rows), item.num_rows) for each, item in zip(features, items, strict=True)]
        assert all(made == wanted for made, wanted in counts), f"rows made and wanted: {counts}"
        return features

    def encoder(self, network: Any, kind: Kind) -> Callable[..., Any]:
        return getattr(network, f"get_{kind}_features")

    def stack(self, items: Sequence[Item]) -> dict[str, torch.Tensor]:
        """Inputs of several items as one call takes them, the smaller ones filled up with zeros."""
        return {name: _stacked([item.inputs[name] for item in items]) for name in items[0].inputs}

    def split(self, output: Any, items: Sequence[Item]) -> list[Features]:
        """An encoder's output item by item."""
        counts = [item.num_rows for item in items]
        rows = _cut(output.pooler_output, counts)
        layers = [_cut(each, counts) for each in getattr(output, "deepstack_features", None) or ()]
        return [Features(each, tuple(layer[index] for layer in layers)) for index, each in enumerate(rows)]

    def arguments(self, features: Mapping[Kind, Features]) -> dict[str, Any]:
        """What a forward takes whose tokens hold these features' places, in packed order."""
        return {"mm_encoder_outputs": {kind: self.output(each) for kind, each in features.items()}}

    def output(self, features: Features) -> Any:
        """Features in the form in which the model's encoder would have answered."""
        rows = features.rows if self.takes_joined_rows else (features.rows,)
        return BaseModelOutputWithPooling(pooler_output=rows)

    def _thread_processor(self) -> Any:
        """transformers' processors are not made for several threads at once."""
        if not hasattr(self._own, "processor"):
            self._own.processor = deepcopy(self._processor)
        return self._own.processor


def _expanded(expand: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    try:
        return expand(*arguments, **settings)
    except StopIteration:
        raise Unsupported("the prompt has more places than the media given with it") from None


def _raw_hash(media: Media) -> bytes:
    name = type(media).__name__
    match media:
        case Image():
            return content_hash(name, {"pixels": media.pixels})
        case Video():
            times = torch.tensor(media.times, dtype=torch.float64)
            return content_hash(name, {"frames": media.frames, "times": times})
        case Audio():
            return content_hash(name, {"samples": media.samples, "rate": torch.tensor(media.rate)})


def _stacked(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    # n times [m, ...] -> [n * m, ...]
    shape = [max(sizes) for sizes in zip(*(each.shape[1:] for each in tensors), strict=True)]
    stacked = tensors[0].new_zeros(sum(len(each) for each in tensors), *shape)
    first = 0
    for each in tensors:
        stacked[(slice(first, first + len(each)), *map(slice, each.shape[1:]))] = each
        first += len(each)
    return stacked


def _cut(output: Any, counts: Sequence[int]) -> list[torch.Tensor]:
    """[n, width] of each item; an encoder answers with one tensor an item, or with all rows in one."""
    parts = list(output) if isinstance(output, list | tuple) else [output]
    rows = torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])
    return list(rows.split(list(counts)))
