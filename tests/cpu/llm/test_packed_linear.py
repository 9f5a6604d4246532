import pytest
import torch
from torch import nn

from runtime.llm.packed_linear import PackedLinear, pack


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


def test_only_plain_layers_on_a_cpu_are_replaced() -> None:
    class Special(nn.Linear):
        pass

    network = nn.Sequential(nn.Linear(4, 4), Special(4, 4), nn.Linear(4, 4).double())
    pack(network, torch.device("meta"))
    assert type(network[0]) is nn.Linear
    pack(network, torch.device("cpu"))
    assert [type(layer) for layer in network] == [PackedLinear, Special, nn.Linear]
