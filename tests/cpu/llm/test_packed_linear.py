import pytest
import torch
from torch import nn

from runtime.llm import weight_count
from runtime.llm.packed_linear import HalfLinear, PackedLinear, can_halve, pack


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("keeps_plain", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 3, 16, 70])
def test_a_packed_layer_computes_what_the_plain_one_does(
    dtype: torch.dtype, tolerance: float, with_bias: bool, keeps_plain: bool, rows: int
) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(48, 36, bias=with_bias, dtype=dtype)
    x = torch.randn(1, rows, 48, dtype=dtype)
    with torch.no_grad():
        packed, want = PackedLinear(plain, keeps_plain=keeps_plain)(x), plain(x)
    torch.testing.assert_close(packed, want, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_half_layer_computes_in_float32_with_rounded_weights_each_row_by_itself(with_bias: bool) -> None:
    torch.manual_seed(0)
    plain = nn.Linear(96, 50, bias=with_bias)
    x = torch.randn(1, 70, 96)
    with torch.no_grad():
        got = HalfLinear(plain)(x)
        plain.weight.copy_(plain.weight.half())
        torch.testing.assert_close(got, plain(x), atol=1e-5, rtol=1e-5)
        for rows in (1, 3, 16, 33):
            assert torch.equal(HalfLinear(plain)(x[:, :rows]), got[:, :rows])
    assert HalfLinear(plain)(x[:, :0]).shape == (1, 0, 50)


def test_float32_layers_whose_weights_fit_are_halved() -> None:
    network = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64, dtype=torch.bfloat16))
    with torch.no_grad():
        network[1].weight[0, 0] = 1e5
    assert weight_count.held(network) == 64 * 65 * (4 + 4 + 2)
    pack(network, torch.device("cpu"), halves=can_halve(torch.device("cpu")))
    kinds = [HalfLinear, PackedLinear, PackedLinear]
    assert [type(layer) for layer in network] == kinds
    assert not can_halve(torch.device("meta"))
    assert [layer.packed_bytes for layer in network] == [64 * 64 * 2, 64 * 64 * 8, 64 * 64 * 2]


def test_only_plain_layers_on_a_cpu_are_replaced() -> None:
    class Special(nn.Linear):
        pass

    network = nn.Sequential(nn.Linear(4, 4), Special(4, 4), nn.Linear(4, 4).double())
    pack(network, torch.device("meta"))
    assert type(network[0]) is nn.Linear
    pack(network, torch.device("cpu"))
    assert [type(layer) for layer in network] == [PackedLinear, Special, nn.Linear]
