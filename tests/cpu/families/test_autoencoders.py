"""Autoencoders through tiles, and the preview colours that are fitted to them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from runtime.diffusion.families.base import Autoencoder, LatentFormat
from runtime.diffusion.latents import fit_rgb
from runtime.diffusion.model import Loader, inspect_checkpoint, inspect_vae
from runtime.diffusion.tiling import decode_latent, encode_image
from runtime.platform.errors import Unsupported
from tests.cpu.families import tiny

GLYPH = Path("models/checkpoints/glyph")


@pytest.fixture(scope="module")
def glyph() -> Autoencoder:
    """An AutoencoderDC without attention and with norms of single cells: what it sees at a pixel is local."""
    return Loader(dict).autoencoder(inspect_vae(GLYPH))


@pytest.fixture(scope="module")
def local_kl(tmp_path_factory: pytest.TempPathFactory) -> Autoencoder:
    folder = tmp_path_factory.mktemp("kl")
    tiny.autoencoder(4).save_pretrained(folder)
    return Loader(dict).autoencoder(inspect_vae(folder))


@pytest.mark.parametrize("size", [(110, 30), (30, 110)])
def test_tiles_with_room_for_what_the_decoder_sees_leave_no_seam(
    glyph: Autoencoder, size: tuple[int, int]
) -> None:
    latent = torch.randn(1, 8, *size, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        whole = decode_latent(glyph, latent)
        tiled = decode_latent(glyph, latent, tile=400, overlap=96)
    assert whole.shape == (1, size[0] * 4, size[1] * 4, 3)
    torch.testing.assert_close(tiled, whole, rtol=0, atol=1e-5)


def test_tiles_with_too_little_room_leave_faint_seams_and_no_more(glyph: Autoencoder) -> None:
    latent = torch.randn(2, 8, 56, 44, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        whole = decode_latent(glyph, latent)
        tiled = decode_latent(glyph, latent, tile=128, overlap=32)
        one = decode_latent(glyph, latent, tile=512)
    torch.testing.assert_close(one, whole)
    assert tiled.shape == whole.shape
    assert (tiled - whole).abs().max() > 1e-4
    assert (tiled - whole).abs().mean() < 0.01


def test_encoding_in_tiles_equals_encoding_whole(glyph: Autoencoder) -> None:
    image = torch.rand(1, 264, 448, 3, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        whole = encode_image(glyph, image)
        tiled = encode_image(glyph, image, tile=256, overlap=64)
    assert whole.shape == (1, 8, 66, 112)
    torch.testing.assert_close(tiled, whole, rtol=1e-4, atol=1e-4)


def test_a_picture_is_cropped_about_its_centre_and_loses_its_alpha(glyph: Autoencoder) -> None:
    image = torch.rand(1, 34, 67, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(encode_image(glyph, image), encode_image(glyph, image[:, 1:33, 1:65, :3]))


def test_a_picture_survives_the_way_there_and_back(glyph: Autoencoder) -> None:
    across = torch.linspace(0, 1, 64)
    image = torch.stack(
        [across.expand(64, 64), across[:, None].expand(64, 64), torch.full((64, 64), 0.5)], dim=-1
    )
    with torch.inference_mode():
        back = decode_latent(glyph, encode_image(glyph, image[None]))
    assert (back - image).abs().mean() < 0.05


def test_encoding_twice_gives_the_same(local_kl: Autoencoder) -> None:
    image = torch.rand(1, 16, 16, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(encode_image(local_kl, image), encode_image(local_kl, image), rtol=0, atol=0)


def test_a_batch_decodes_as_its_pictures_do(local_kl: Autoencoder) -> None:
    latent = torch.randn(3, 4, 8, 8, generator=torch.Generator().manual_seed(0))
    together = decode_latent(local_kl, latent)
    for row in range(3):
        torch.testing.assert_close(together[row : row + 1], decode_latent(local_kl, latent[row : row + 1]))


def test_a_latent_of_other_channels_is_refused(glyph: Autoencoder) -> None:
    with pytest.raises(Unsupported, match="latents of 8 channels"):
        decode_latent(glyph, torch.zeros(1, 4, 8, 8))


class Linear:
    """An autoencoder whose colours are a matrix of its latent."""

    channels = 5
    factor = 2
    matrix = torch.randn(5, 3, generator=torch.Generator().manual_seed(7))
    bias = torch.tensor([0.1, -0.2, 0.3])

    def encode(self, pixels: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def decode(self, latent: torch.Tensor) -> torch.Tensor:
        colours = (latent.movedim(1, -1) @ self.matrix + self.bias).movedim(-1, 1)
        return colours.repeat_interleave(2, -1).repeat_interleave(2, -2)


def test_preview_colours_of_a_linear_autoencoder_are_exact() -> None:
    latent_format = LatentFormat(5, 2, scale=2.0, shift=0.5)
    fit = fit_rgb(Linear(), latent_format, "cpu")
    latent = torch.randn(1, 5, 4, 4, generator=torch.Generator().manual_seed(1))
    shown = latent.movedim(1, -1) @ fit.rgb + fit.bias
    truth = Linear().decode(latent_format.from_network(latent))[..., ::2, ::2].movedim(1, -1)
    torch.testing.assert_close(shown, truth, rtol=1e-4, atol=1e-4)


def test_preview_colours_of_the_glyph_model_are_close_to_its_pictures(glyph: Autoencoder) -> None:
    model = inspect_checkpoint(GLYPH).model
    assert model is not None
    latent_format = Loader(dict).latent_format(model)
    assert latent_format.rgb is not None
    image = torch.ones(1, 64, 64, 3)
    image[:, 16:48, 16:48] = torch.tensor([0.9, 0.1, 0.1])
    latent = latent_format.to_network(encode_image(glyph, image))
    shown = latent.movedim(1, -1) @ latent_format.rgb + latent_format.rgb_bias
    red, white = shown[0, 8, 8], shown[0, 1, 1]
    assert red[0] > red[1] + 0.3
    assert white.min() > red[1]


def test_latents_go_to_the_network_and_back() -> None:
    model = inspect_checkpoint(GLYPH).model
    assert model is not None
    latent_format = Loader(dict).latent_format(model)
    latent = torch.randn(1, 8, 4, 4, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(latent_format.from_network(latent_format.to_network(latent)), latent)
    assert latent_format.channels == 8
    assert latent_format.factor == 4
