"""The denoising transformer and its training: flow matching, an averaged copy, a checkpoint to go on from.

On a CPU with bf16 matrix units, autocast and torch.compile together make a step almost three times as fast.
"""

import copy
from pathlib import Path

import torch
from diffusers import SD3Transformer2DModel
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench.train_glyph.examples import Examples
from bench.train_glyph.text import Features

RATE = 1e-3
WARM_UP = 200  # steps
DECAY = 0.25  # the last part of training, in which the rate falls to zero
AVERAGE = 0.999
BATCH = 64
SAVE_EVERY = 400  # steps


def new_transformer() -> SD3Transformer2DModel:
    return SD3Transformer2DModel(
        sample_size=16,
        patch_size=2,
        in_channels=8,
        out_channels=8,
        num_layers=6,
        attention_head_dim=48,
        num_attention_heads=4,
        joint_attention_dim=576,
        caption_projection_dim=192,
        pooled_projection_dim=576,
        pos_embed_max_size=32,
        qk_norm="rms_norm",
    )


class TransformerTraining:
    """Owns the networks, the optimisers and the checkpoint file."""

    def __init__(self, model: SD3Transformer2DModel, examples: Examples, checkpoint: Path) -> None:
        self._model, self._examples, self._checkpoint = model.train(), examples, checkpoint
        self.averaged = copy.deepcopy(model).eval()
        self._compiled = torch.compile(model)
        self._optimisers = _optimisers(model)
        self._generator = torch.Generator().manual_seed(0)
        self._step = 0
        if checkpoint.is_file():
            self._restore(torch.load(checkpoint))

    def run(self, steps: int) -> None:
        while self._step < steps:
            loss = self._learn(_rate(self._step, steps))
            self._step += 1
            self._average()
            if self._step % 100 == 0:
                print(f"transformer: step {self._step} of {steps}, loss {loss:.4f}", flush=True)
            if self._step % SAVE_EVERY == 0 or self._step == steps:
                self._save()

    def _learn(self, rate: float) -> float:
        batch = self._examples.draw(BATCH, self._generator)
        noise = torch.randn(batch.latents.shape, generator=self._generator)
        sigma = draw_sigmas(BATCH, self._generator)
        loss = (
            (self._velocity(batch.latents, noise, sigma, batch.features) - (noise - batch.latents))
            .square()
            .mean()
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = rate
            optimiser.step()
        self._model.zero_grad()
        return loss.item()

    def _velocity(self, latents: Tensor, noise: Tensor, sigma: Tensor, features: Features) -> Tensor:
        # latents, noise: [B, C, h, w]; sigma: [B]
        share = sigma[:, None, None, None]
        with (
            torch.autocast("cpu", torch.bfloat16),
            sdpa_kernel(SDPBackend.MATH),
        ):  # flash backward is slow here
            velocity: Tensor = self._compiled(
                hidden_states=(1 - share) * latents + share * noise,
                encoder_hidden_states=features.tokens,
                pooled_projections=features.pooled,
                timestep=sigma * 1000,
                return_dict=False,
            )[0]
        return velocity.float()

    @torch.no_grad()
    def _average(self) -> None:
        share = 1 - min(AVERAGE, (self._step + 1) / (self._step + 10))
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self._model.parameters()), share)

    def _save(self) -> None:
        state = {
            "step": self._step,
            "model": self._model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self._optimisers],
            "generator": self._generator.get_state(),
        }
        fresh = self._checkpoint.with_suffix(".part")
        torch.save(state, fresh)
        fresh.replace(self._checkpoint)

    def _restore(self, state: dict) -> None:
        self._step = state["step"]
        self._model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state["averaged"])
        self._generator.set_state(state["generator"])
        for optimiser, saved in zip(self._optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)


def draw_sigmas(size: int, generator: torch.Generator) -> Tensor:
    """Mostly logit-normal; a quarter lies near pure noise, where the words alone decide what is drawn."""
    usual = torch.sigmoid(0.2 + 1.1 * torch.randn(size, generator=generator))
    noisy = 0.8 + 0.2 * torch.rand(size, generator=generator)
    return torch.where(torch.rand(size, generator=generator) < 0.25, noisy, usual)


def _optimisers(model: SD3Transformer2DModel) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the blocks, AdamW for all the rest."""
    named = dict(model.named_parameters())
    inner = {
        name for name, value in named.items() if name.startswith("transformer_blocks") and value.ndim == 2
    }
    matrices = [named[name] for name in named if name in inner]
    rest = [named[name] for name in named if name not in inner]
    return [
        torch.optim.Muon(matrices, lr=RATE, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(rest, lr=RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True),
    ]


def _rate(step: int, steps: int) -> float:
    return RATE * min(1, (step + 1) / WARM_UP, (1 - step / steps) / DECAY)
