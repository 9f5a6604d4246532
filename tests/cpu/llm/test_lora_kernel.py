import pytest
import torch

from treadle_kernels import lora


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_each_row_gets_its_own_product_or_none(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, out = torch.randn(11, 24, dtype=dtype), torch.randn(11, 40, dtype=dtype)
    pairs = [(torch.randn(rank, 24, dtype=dtype), torch.randn(40, rank, dtype=dtype)) for rank in (1, 3, 8)]
    rows = [torch.tensor([0, 9, 4]), torch.tensor([1]), torch.tensor([2, 3, 10])]
    expected = out.clone().double()
    for index, (down, up) in zip(rows, pairs, strict=True):
        for row in index.tolist():
            expected[row] += up.double() @ (down.double() @ x[row].double())
    made = out.clone()
    lora.add(made, x, [(index, *pair) for index, pair in zip(rows, pairs, strict=True)])
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 0.5}[dtype]
    assert (made.double() - expected).abs().max() < tolerance
    untouched = [5, 6, 7, 8]
    assert torch.equal(made[untouched], out[untouched])


def test_without_an_index_all_rows_are_meant() -> None:
    x, out, down, up = torch.randn(5, 8), torch.zeros(5, 6), torch.randn(2, 8), torch.randn(6, 2)
    every = out.clone()
    lora.add(every, x, [(torch.arange(5), down, up)])
    lora.add(out, x, [(None, down, up)])
    assert torch.allclose(out, every)
    lora.add(out, x, [])
    assert torch.allclose(out, every)
