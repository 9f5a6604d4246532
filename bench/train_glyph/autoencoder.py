"""The autoencoder and its training: pictures of 64 x 64 to latents of 8 x 16 x 16 and back."""

from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AutoencoderDC
from torch import Tensor

RATE = 1.5e-3
WARM_UP = 50  # steps
BATCH = 16
SAVE_EVERY = 400  # steps


def new_autoencoder() -> AutoencoderDC:
    return AutoencoderDC(
        in_channels=3,
        latent_channels=8,
        attention_head_dim=16,
        encoder_block_types="ResBlock",
        decoder_block_types="ResBlock",
        encoder_block_out_channels=(32, 64, 128),
        decoder_block_out_channels=(32, 64, 128),
        encoder_layers_per_block=(0, 1, 2),
        decoder_layers_per_block=(0, 2, 3),
        encoder_qkv_multiscales=((), (), ()),
        decoder_qkv_multiscales=((), (), ()),
        downsample_block_type="pixel_unshuffle",
        upsample_block_type="pixel_shuffle",
        decoder_norm_types="rms_norm",
        decoder_act_fns="silu",
        scaling_factor=1.0,
    )


def train_autoencoder(pictures: Tensor, steps: int, checkpoint: Path) -> AutoencoderDC:
    """`pictures` is [N, 3, H, W] in [-1, 1]. Goes on from `checkpoint` where there is one."""
    model = new_autoencoder().train()
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    generator = torch.Generator().manual_seed(0)
    start = _restore(checkpoint, model, optimiser, generator)
    for step in range(start, steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * (1 - step / steps)
        loss = _loss(model, _draw(pictures, generator))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if (step + 1) % 100 == 0:
            print(f"autoencoder: step {step + 1} of {steps}, loss {loss.item():.4f}", flush=True)
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == steps:
            _save(checkpoint, model, optimiser, generator, step + 1)
    return model.eval()


@torch.inference_mode()
def encode_both_ways(autoencoder: AutoencoderDC, pictures: Tensor) -> Tensor:
    """Latents of the pictures and of their mirror images, [2, N, C, h, w]."""
    ways = (pictures, pictures.flip(-1))
    return torch.stack(
        [torch.cat([autoencoder.encode(part).latent for part in way.split(32)]) for way in ways]
    )


def _draw(pictures: Tensor, generator: torch.Generator) -> Tensor:
    chosen = pictures[torch.randint(len(pictures), (BATCH,), generator=generator)]
    mirrored = torch.rand(BATCH, 1, 1, 1, generator=generator) < 0.5
    return torch.where(mirrored, chosen.flip(-1), chosen)


def _loss(model: AutoencoderDC, pictures: Tensor) -> Tensor:
    """Colours, edges in both directions, and a light hand on the latents' size."""
    latents = model.encode(pictures).latent
    drawn = model.decode(latents + 0.05 * torch.randn_like(latents)).sample
    edges = sum(F.l1_loss(drawn.diff(dim=axis), pictures.diff(dim=axis)) for axis in (2, 3))
    return F.smooth_l1_loss(drawn, pictures, beta=0.1) + 0.5 * edges + 0.005 * latents.square().mean()


def _save(
    checkpoint: Path,
    model: AutoencoderDC,
    optimiser: torch.optim.AdamW,
    generator: torch.Generator,
    step: int,
) -> None:
    fresh = checkpoint.with_suffix(".part")
    state = {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "generator": generator.get_state(),
    }
    torch.save({**state, "step": step}, fresh)
    fresh.replace(checkpoint)


def _restore(
    checkpoint: Path, model: AutoencoderDC, optimiser: torch.optim.AdamW, generator: torch.Generator
) -> int:
    """The step to go on with."""
    if not checkpoint.is_file():
        return 0
    state = torch.load(checkpoint)
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    generator.set_state(state["generator"])
    return int(state["step"])
