"""ControlNets add what the stock pipeline's add, and each row of a batch has its own strength and hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from runtime.diffusion.api import ControlRef
from runtime.diffusion.families.base import Cond, ControlInput, Network
from runtime.diffusion.model import Loader, inspect_checkpoint, inspect_control
from runtime.platform.errors import Unsupported
from tests.cpu.families import original, tiny

HINT = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(3))


def control_net(saved: Callable[..., Any], family: str) -> Any:
    unet = saved(family)[0].unet
    net = tiny.diffusers.ControlNetModel.from_unet(unet)
    return tiny.randomised(net)


def prepared(saved: Callable[..., Any], folder: Path, family: str) -> tuple[Network, Any, ControlRef]:
    net = control_net(saved, family)
    net.save_pretrained(folder)
    model = inspect_checkpoint(saved(family)[1]).model
    assert model is not None
    return Loader(dict).network(model), net, inspect_control(folder)


def cond(seed: int, width: int, *controls: ControlInput) -> Cond:
    tokens = torch.randn(1, 77, width, generator=torch.Generator().manual_seed(seed))
    return Cond(tokens, torch.ones(1, 32) * seed, controls=controls)


@pytest.mark.parametrize(("family", "width"), [("sd15", 32), ("sdxl", 64)])
def test_a_control_net_adds_what_diffusers_adds(
    saved: Callable[..., Any], tmp_path: Path, family: str, width: int
) -> None:
    network, net, ref = prepared(saved, tmp_path / "net", family)
    x = torch.randn(1, 4, 8, 12, generator=torch.Generator().manual_seed(0))
    given = cond(1, width, ControlInput(ref, HINT[:1], 0.6))
    ours = network.forward(x, torch.tensor([300.0]), [given])
    added = None
    if family == "sdxl":
        size = [8 * 2, 12 * 2]
        added = {"text_embeds": given.pooled, "time_ids": torch.tensor([[*size, 0, 0, *size]]).float()}
    down, middle = net(
        x,
        300.0,
        encoder_hidden_states=given.tokens,
        controlnet_cond=HINT[:1],
        conditioning_scale=0.6,
        added_cond_kwargs=added,
        return_dict=False,
    )
    stock = (
        saved(family)[0]
        .unet(
            x,
            300.0,
            encoder_hidden_states=given.tokens,
            down_block_additional_residuals=down,
            mid_block_additional_residual=middle,
            added_cond_kwargs=added,
        )
        .sample
    )
    torch.testing.assert_close(ours, stock, rtol=1e-4, atol=1e-5)
    assert (ours - network.forward(x, torch.tensor([300.0]), [cond(1, width)])).abs().max() > 1e-3


def test_rows_with_other_strengths_and_hints_equal_rows_alone(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    network, _, ref = prepared(saved, tmp_path / "net", "sd15")
    x = torch.randn(2, 4, 8, 12, generator=torch.Generator().manual_seed(0))
    times = torch.tensor([800.0, 100.0])
    conds = [
        cond(1, 32, ControlInput(ref, HINT[:1], 0.2), ControlInput(ref, HINT[1:], 1.0)),
        cond(2, 32, ControlInput(ref, HINT[1:], 0.9), ControlInput(ref, HINT[:1], 0.1)),
    ]
    assert network.cond_key(conds[0]) == network.cond_key(conds[1])
    together = network.forward(x, times, conds)
    for row in range(2):
        alone = network.forward(x[row : row + 1], times[row : row + 1], conds[row : row + 1])
        torch.testing.assert_close(together[row], alone[0], rtol=1e-5, atol=1e-5)


def test_rows_with_another_chain_of_nets_do_not_share_a_forward(
    saved: Callable[..., Any], tmp_path: Path
) -> None:
    network, _, ref = prepared(saved, tmp_path / "net", "sd15")
    one = ControlInput(ref, HINT[:1], 1.0)
    other = ControlInput(ControlRef(tmp_path / "other", "unet"), HINT[:1], 1.0)
    chains = [cond(1, 32), cond(1, 32, one), cond(1, 32, one, one), cond(1, 32, other)]
    assert len({network.cond_key(chain) for chain in chains}) == 4


def test_a_control_net_file_is_its_folder(saved: Callable[..., Any], tmp_path: Path) -> None:
    network, net, folder = prepared(saved, tmp_path / "net", "sd15")
    path = tmp_path / "control.safetensors"
    save_file(original.below("control_model.", original.unet(net.state_dict(), 1)), path)
    x = torch.randn(1, 4, 8, 12, generator=torch.Generator().manual_seed(0))
    answers = [
        network.forward(x, torch.tensor([300.0]), [cond(1, 32, ControlInput(ref, HINT[:1], 1.0))])
        for ref in (inspect_control(path), folder)
    ]
    torch.testing.assert_close(*answers)


@pytest.mark.parametrize(("family", "width"), [("sd3", 128), ("flux", 48), ("z_image", 16)])
def test_other_families_refuse_control_nets(saved: Callable[..., Any], family: str, width: int) -> None:
    model = inspect_checkpoint(saved(family)[1]).model
    assert model is not None
    given = cond(1, width, ControlInput(ControlRef(Path("net"), "unet"), HINT[:1], 1.0))
    with pytest.raises(Unsupported, match=r"supported: SD1\.5"):
        Loader(dict).network(model).forward(torch.zeros(1, 4, 8, 8), torch.tensor([0.5]), [given])


def test_a_control_net_of_another_model_is_refused(saved: Callable[..., Any], tmp_path: Path) -> None:
    _, _, ref = prepared(saved, tmp_path / "net", "sd15")
    model = inspect_checkpoint(saved("sdxl")[1]).model
    assert model is not None
    given = cond(1, 64, ControlInput(ref, HINT[:1], 1.0))
    with pytest.raises(Unsupported, match="width 32, not 64"):
        Loader(dict).network(model).forward(torch.zeros(1, 4, 8, 12), torch.tensor([0.5]), [given])
