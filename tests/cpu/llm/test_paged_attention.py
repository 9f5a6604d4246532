"""Paged attention against plain attention over the same tokens laid out in a row."""

import pytest
import torch

from treadle_kernels import kv_write, paged_attention

PAGE = 4


def plain(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    hidden: torch.Tensor,
    softcap: float | None,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    # query: [n, Hq, D]; keys, values: [m, H, D]; hidden: [n, m] -> [n, Hq, D]
    repeats = query.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(repeats, 1), values.repeat_interleave(repeats, 1)
    scores = torch.einsum("nhd,mhd->hnm", query, keys) / 3
    if softcap is not None:
        scores = softcap * (scores / softcap).tanh()
    weights = scores.masked_fill(hidden, -torch.inf).exp()
    total = weights.sum(-1, keepdim=True)
    if sinks is not None:
        total = total + sinks.exp()[:, None, None]
    return torch.einsum("hnm,mhd->nhd", weights / total, values)


@pytest.fixture
def pool() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(40, 2, PAGE, 8), torch.randn(40, 2, PAGE, 8)


def tokens_of(pool: torch.Tensor, pages: list[int], length: int) -> torch.Tensor:
    return torch.cat([pool[page].transpose(0, 1) for page in pages])[:length]


@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize("sinks", [None, torch.tensor([0.5, -1.0, 2.0, 0.0])], ids=["plain", "sinks"])
def test_decode_rows_of_ragged_lengths_equal_plain_attention(
    softcap: float | None, sinks: torch.Tensor | None, pool: tuple[torch.Tensor, torch.Tensor]
) -> None:
    lengths = [1, 4, 5, 11]
    order = torch.randperm(40).tolist()
    tables = [[order.pop() for _ in range(-(-length // PAGE))] for length in lengths]
    width = max(len(table) for table in tables)
    padded = torch.tensor([table + [0] * (width - len(table)) for table in tables])
    hidden = torch.arange(width * PAGE) >= torch.tensor(lengths)[:, None]
    bias = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf).repeat_interleave(2, 0)[:, None]
    query = torch.randn(len(lengths), 4, 8)
    index = paged_attention.page_index(padded, 2)
    keys, values = (paged_attention.gather(each, index, len(lengths)) for each in pool)
    got = paged_attention.decode(query, keys, values, bias, 1 / 3, softcap, sinks)
    for row, (table, length) in enumerate(zip(tables, lengths)):
        k, v = (tokens_of(each, table, length) for each in pool)
        want = plain(query[row : row + 1], k, v, torch.zeros(1, length, dtype=torch.bool), softcap, sinks)
        torch.testing.assert_close(got[row : row + 1], want)


@pytest.mark.parametrize(("softcap", "with_sinks"), [(None, False), (2.0, False), (None, True)])
def test_a_chunk_equals_plain_attention(
    softcap: float | None, with_sinks: bool, pool: tuple[torch.Tensor, torch.Tensor]
) -> None:
    table, start, count = [7, 3, 30], 5, 6
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0]) if with_sinks else None
    index = paged_attention.page_index(torch.tensor([table]), 2)
    keys, values = (paged_attention.gather(each, index, 1)[:, : start + count] for each in pool)
    hidden = torch.arange(start + count) > torch.arange(start, start + count)[:, None]
    bias = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)
    query = torch.randn(count, 4, 8)
    got = paged_attention.chunk(query.transpose(0, 1), keys, values, bias, 1 / 3, softcap, sinks)
    k, v = (tokens_of(each, table, start + count) for each in pool)
    torch.testing.assert_close(got.transpose(0, 1), plain(query, k, v, hidden, softcap, sinks))


def test_new_tokens_land_in_their_slots_and_nowhere_else(pool: tuple[torch.Tensor, torch.Tensor]) -> None:
    keys = pool[0]
    before, new = keys.clone(), torch.randn(3, 2, 8)
    pages, offsets = torch.tensor([4, 4, 9]), torch.tensor([2, 3, 0])
    kv_write.write(keys, new, kv_write.slot_index(pages, offsets, 2, PAGE))
    before[pages, :, offsets] = new
    assert torch.equal(keys, before)
