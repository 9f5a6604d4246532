"""The embedded model called directly: words to latents to pictures, and pictures back to latents.

Knows the checkpoint folder, diffusers and the language model; knows no runtime, no request, no batching.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from diffusers import AutoencoderDC, SD3Transformer2DModel
from torch import Tensor

from bench.train_glyph.folder import read_latent_scale, read_text_encoder
from bench.train_glyph.text import TextReader, standardise

TIMESTEPS = 1000


class GlyphModel:
    """Owns the networks of a checkpoint folder, in float32."""

    def __init__(self, folder: Path) -> None:
        load = {"torch_dtype": torch.float32}
        self._transformer = SD3Transformer2DModel.from_pretrained(folder / "transformer", **load).eval()
        self._autoencoder = AutoencoderDC.from_pretrained(folder / "vae", **load).eval()
        self._scale = read_latent_scale(folder)
        config, self._statistics = read_text_encoder(folder)
        self._reader = TextReader(config)

    @torch.inference_mode()
    def draw(self, texts: Sequence[str], seed: int, steps: int, guidance: float) -> Tensor:
        """Standardised latents [B, C, h, w], by Euler steps from noise along the flow."""
        features = standardise(self._reader.read(texts), self._statistics)
        tokens = torch.cat([features.tokens, torch.zeros_like(features.tokens)])
        pooled = torch.cat([features.pooled, torch.zeros_like(features.pooled)])
        config = self._transformer.config
        shape = (len(texts), config.in_channels, config.sample_size, config.sample_size)
        x = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
        for sigma, following in pairwise(torch.linspace(1, 0, steps + 1).tolist()):
            velocity = self._transformer(
                hidden_states=x.repeat(2, 1, 1, 1),
                encoder_hidden_states=tokens,
                pooled_projections=pooled,
                timestep=torch.full((2 * len(texts),), sigma * TIMESTEPS),
                return_dict=False,
            )[0]
            worded, wordless = velocity.chunk(2)
            x = x + (following - sigma) * (wordless + guidance * (worded - wordless))
        return x

    @torch.inference_mode()
    def decode(self, latents: Tensor) -> Tensor:
        """Pictures [B, 3, H, W] in [-1, 1]."""
        return self._autoencoder.decode(latents * self._scale.std + self._scale.mean).sample.clamp(-1, 1)

    @torch.inference_mode()
    def encode(self, pictures: Tensor) -> Tensor:
        return (self._autoencoder.encode(pictures).latent - self._scale.mean) / self._scale.std
