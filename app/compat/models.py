"""MODEL, CLIP and VAE as packs know them: objects with methods, over this program's references.

Encoding and decoding work as in ComfyUI, and are merged with what other jobs ask. What reaches into a network
(patches, wrappers, state dicts) is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import torch

from app.compat.asking import answer, running_node
from runtime.diffusion.api import (
    DecodeRequest,
    EncodeImageRequest,
    EncodeTextRequest,
    ModelRef,
    TextEncoderRef,
    VaeRef,
)


class ModelFaces:
    """Around references on their way into a pack; off again on their way out."""

    def wrapped(self, value: Any) -> Any:
        match value:
            case ModelRef():
                return ModelFace(value)
            case TextEncoderRef():
                return ClipFace(value)
            case VaeRef():
                return VaeFace(value)
        return value

    def unwrapped(self, value: Any) -> Any:
        return value.ref if isinstance(value, ModelFace | ClipFace | VaeFace) else value


class _Face:
    kind = ""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"Treadle's {self.kind} has no '{name}': networks run merged with other jobs' work, "
            "so packs cannot reach into them; docs/compat.md lists what works"
        )


class ModelFace(_Face):
    kind = "MODEL"

    def __init__(self, ref: ModelRef) -> None:
        self.ref = ref
        self.model_options: dict[str, Any] = {"transformer_options": {}}
        self.load_device = torch.device("cpu")
        self.offload_device = torch.device("cpu")

    def clone(self) -> ModelFace:
        return ModelFace(self.ref)

    def is_clone(self, other: Any) -> bool:
        return isinstance(other, ModelFace) and other.ref.weights == self.ref.weights

    def model_size(self) -> int:
        return int(self.ref.weights.stat().st_size)


class Tokens(dict[str, Any]):
    """A prompt that is tokenized later. `["g"]` and `["l"]` may be taken from another prompt's tokens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __missing__(self, key: str) -> Tokens:
        return self

    def texts(self) -> tuple[str, ...]:
        """One for all encoders, or the global and the local one where they differ."""
        parts = tuple(getattr(self[key], "text", self.text) for key in ("g", "l"))
        return (self.text,) if set(parts) == {self.text} else parts


class ClipFace(_Face):
    kind = "CLIP"

    def __init__(self, ref: TextEncoderRef) -> None:
        self.ref = ref

    def clone(self) -> ClipFace:
        return ClipFace(self.ref)

    def clip_layer(self, layer_idx: int) -> None:
        self.ref = replace(self.ref, stop_layer=layer_idx)

    def tokenize(self, text: str, return_word_ids: bool = False, **_options: Any) -> Tokens:
        if return_word_ids:
            raise NotImplementedError("Treadle's CLIP tokenizes without word ids")
        return Tokens(text)

    def encode_from_tokens(
        self, tokens: Tokens, return_pooled: bool | str = False, return_dict: bool = False
    ) -> Any:
        """[1, tokens, features], with the pooled output as a second value or in a dict."""
        features, values = self._encoded(tokens)[0]
        if return_dict:
            return {"cond": features, **values}
        return (features, values.get("pooled_output")) if return_pooled else features

    def encode_from_tokens_scheduled(
        self,
        tokens: Tokens,
        unprojected: bool = False,  # noqa: ARG002
        add_dict: dict[str, Any] | None = None,
        show_pbar: bool = True,  # noqa: ARG002
    ) -> list[list[Any]]:
        return [[features, {**values, **(add_dict or {})}] for features, values in self._encoded(tokens)]

    def encode(self, text: str) -> Any:
        return self.encode_from_tokens(self.tokenize(text))

    def _encoded(self, tokens: Tokens) -> list[list[Any]]:
        if not isinstance(tokens, Tokens):
            raise TypeError("Treadle's CLIP encodes what its own tokenize returned")
        conditioning: list[list[Any]] = answer(
            EncodeTextRequest(running_node().request_id(), self.ref, tokens.texts())
        )
        return conditioning


class VaeFace(_Face):
    kind = "VAE"

    def __init__(self, ref: VaeRef) -> None:
        self.ref = ref
        self.latent_channels = ref.channels
        self.downscale_ratio = self.upscale_ratio = ref.factor
        self.output_channels = 3
        self.device = torch.device("cpu")

    def decode(self, samples_in: torch.Tensor, **_options: Any) -> torch.Tensor:
        """[B, C, h, w] -> [B, H, W, 3] in 0..1."""
        return self._asked(DecodeRequest(running_node().request_id(), self.ref, samples_in))

    def decode_tiled(
        self, samples: torch.Tensor, tile_x: int = 64, tile_y: int = 64, overlap: int = 16, **_options: Any
    ) -> torch.Tensor:
        """Tiles and overlap are in latent cells, as in ComfyUI."""
        factor, id = self.ref.factor, running_node().request_id()
        tile = max(tile_x, tile_y) * factor
        return self._asked(DecodeRequest(id, self.ref, samples, tile, overlap * factor))

    def encode(self, pixel_samples: torch.Tensor) -> torch.Tensor:
        """[B, H, W, 3] -> [B, C, h, w]; what is over whole cells is cut in the middle."""
        return self._asked(
            EncodeImageRequest(running_node().request_id(), self.ref, self._cut(pixel_samples))
        )

    def encode_tiled(
        self,
        pixel_samples: torch.Tensor,
        tile_x: int | None = None,
        tile_y: int | None = None,
        overlap: int | None = None,
        **_options: Any,
    ) -> torch.Tensor:
        """Tiles and overlap are in pixels."""
        tile = max(tile_x or 512, tile_y or 512)
        id, pixels = running_node().request_id(), self._cut(pixel_samples)
        return self._asked(EncodeImageRequest(id, self.ref, pixels, tile, overlap or 64))

    def spacial_compression_decode(self) -> int:
        return self.ref.factor

    def spacial_compression_encode(self) -> int:
        return self.ref.factor

    def temporal_compression_decode(self) -> int | None:
        return None

    def _cut(self, pixels: torch.Tensor) -> torch.Tensor:
        from nodes.vae import cut_to_cells

        return cut_to_cells(pixels[..., :3], self.ref.factor)

    def _asked(self, request: Any) -> torch.Tensor:
        result: torch.Tensor = answer(request)
        return result
