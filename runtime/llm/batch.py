"""Rows of a step as the tensors that one packed forward needs; it knows neither the model nor the pools.

Decode rows come first, longest first, in groups that share a padded length; then one chunk a row. A row with
guesses behind its last token decodes at each of these positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from runtime.llm.sequence import Row
from treadle_kernels import kv_write, paged_attention

# A group costs about as many operations a layer as reading this many padded pages.
_PAGES_WORTH_A_GROUP = 12


@dataclass(frozen=True, slots=True)
class Sliding:
    """Each position sees the last `length` ones, itself among them."""

    length: int

    def first_seen(self, positions: torch.Tensor) -> torch.Tensor:
        return positions - (self.length - 1)


@dataclass(frozen=True, slots=True)
class Chunked:
    """Each position sees those from the last multiple of `length` on."""

    length: int

    def first_seen(self, positions: torch.Tensor) -> torch.Tensor:
        return positions // self.length * self.length


Window = Sliding | Chunked | None
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """`count` positions, packed from `first` on, that each read pages of their own."""

    first: int
    count: int
    pages: torch.Tensor  # [R, N]
    lengths: torch.Tensor  # [R]
    page_size: int
    _index: dict[int, torch.Tensor] = field(default_factory=dict)
    _bias: dict[tuple[int, Window], torch.Tensor] = field(default_factory=dict)

    def index(self, heads: int) -> torch.Tensor:
        return _remember(self._index, heads, lambda: paged_attention.page_index(self.pages, heads))

    def bias(self, heads: int, window: Window, dtype: torch.dtype) -> torch.Tensor:
        """Additive, [R * heads, 1, L]."""
        return _remember(self._bias, (heads, window), lambda: self._make_bias(heads, window, dtype))

    def _make_bias(self, heads: int, window: Window, dtype: torch.dtype) -> torch.Tensor:
        positions = torch.arange(self.pages.shape[1] * self.page_size, device=self.pages.device)
        hidden = positions >= self.lengths[:, None]
        if window is not None:
            hidden |= positions < window.first_seen(self.lengths[:, None] - 1)
        bias = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)
        return bias.repeat_interleave(heads, 0)[:, None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """`count` tokens of one row, packed from `first` on, at positions from `start` on.

    Positions of one of the `spans` see each other both ways, and so do those of each `block`.
    """

    first: int
    count: int
    start: int
    pages: torch.Tensor  # [N]
    spans: tuple[tuple[int, int], ...] = ()
    block: int = 1
    _index: dict[int, torch.Tensor] = field(default_factory=dict)
    _bias: dict[tuple[Window, bool], torch.Tensor | None] = field(default_factory=dict)

    def index(self, heads: int) -> torch.Tensor:
        return _remember(self._index, heads, lambda: paged_attention.page_index(self.pages[None], heads))

    def bias(self, window: Window, dtype: torch.dtype, explicit: bool) -> torch.Tensor | None:
        """Additive, [n, start + n]; None where the plain causal pattern says it all, unless `explicit`."""
        return _remember(self._bias, (window, explicit), lambda: self._make_bias(window, dtype, explicit))

    def _make_bias(self, window: Window, dtype: torch.dtype, explicit: bool) -> torch.Tensor | None:
        length = self.start + self.count
        is_causal = self.block == 1 and not self.spans and (window is None or window.length >= length)
        if is_causal and self.start == 0 and not explicit:
            return None
        queries = torch.arange(self.start, length, device=self.pages.device)[:, None]
        keys = torch.arange(length, device=self.pages.device)[None]
        hidden = keys // self.block > queries // self.block
        if window is not None:
            hidden |= keys < window.first_seen(queries)
        for start, stop in self.spans:
            hidden &= ~((queries >= start) & (queries < stop) & (keys >= start) & (keys < stop))
        return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)


@dataclass(frozen=True, slots=True)
class Batch:
    """`rows` are in packed order; `logits_at` holds the packed positions whose logits are wanted: first
    `num_sampled` of places where tokens are chosen, then those of the rows' `scored` positions.
    """

    rows: tuple[Row, ...]
    input_ids: torch.Tensor  # [1, T]
    position_ids: torch.Tensor  # [1, T], or [axes, 1, T] for models whose positions have several
    logits_at: torch.Tensor
    num_sampled: int
    decode_groups: tuple[DecodeGroup, ...]
    chunks: tuple[Chunk, ...]
    token_pages: torch.Tensor  # [T]
    page_offsets: torch.Tensor  # [T]
    page_size: int
    _slots: dict[int, torch.Tensor] = field(default_factory=dict)

    def slots(self, heads: int) -> torch.Tensor:
        return _remember(
            self._slots,
            heads,
            lambda: kv_write.slot_index(self.token_pages, self.page_offsets, heads, self.page_size),
        )


def build(rows: Sequence[Row], page_size: int, device: torch.device, position_axes: int = 1) -> Batch:
    decode = sorted((row for row in rows if _is_decode(row)), key=lambda row: -_num_pages(row, page_size))
    prefill = [row for row in rows if not _is_decode(row)]
    packed = (*decode, *prefill)
    ids: list[int] = []
    places: list[int] = []
    pages: list[int] = []
    wanted: list[int] = []
    scored: list[int] = []
    for row in packed:
        span = range(row.start, row.start + row.count)
        scored += (len(ids) + position - row.start for position in row.scored)
        ids += row.tokens
        places += span
        pages += [row.sequence.pages[position // page_size] for position in span]
        wanted += range(len(ids) - row.num_sampled, len(ids))
    position_ids = torch.tensor([places], device=device)
    page_offsets = position_ids[0] % page_size
    if position_axes > 1:
        position_ids = torch.cat([_axes(row, position_axes) for row in packed], 1)[:, None].to(device)
    return Batch(
        rows=packed,
        input_ids=torch.tensor([ids], device=device),
        position_ids=position_ids,
        logits_at=torch.tensor(wanted + scored, dtype=torch.long, device=device),
        num_sampled=len(wanted),
        decode_groups=tuple(_decode_groups(decode, page_size, device)),
        chunks=tuple(_chunks(prefill, sum(row.count for row in decode), page_size, device)),
        token_pages=torch.tensor(pages, device=device),
        page_offsets=page_offsets,
        page_size=page_size,
    )


def group_sizes(page_counts: Sequence[int]) -> list[int]:
    """Cut rows, longest first, where padding the shorter ones would cost more than another group."""
    sizes: list[int] = []
    longest = padding = 0
    for count in page_counts:
        padding += longest - count
        if sizes and padding <= _PAGES_WORTH_A_GROUP:
            sizes[-1] += 1
        else:
            sizes.append(1)
            longest, padding = count, 0
    return sizes


def _is_decode(row: Row) -> bool:
    return row.num_known == 1 and row.sequence.block == 1


def _num_pages(row: Row, page_size: int) -> int:
    return -(-(row.start + row.count) // page_size)


def _decode_groups(rows: Sequence[Row], page_size: int, device: torch.device) -> list[DecodeGroup]:
    groups, first = [], 0
    tables: list[list[int]] = []
    lengths: list[int] = []
    for row in rows:
        tables += [row.sequence.pages[: _num_pages(row, page_size)]] * row.count
        lengths += range(row.start + 1, row.start + row.count + 1)
    for count in group_sizes([len(table) for table in tables]):
        mine = tables[first : first + count]
        width = len(mine[0])
        padded = [table + table[-1:] * (width - len(table)) for table in mine]
        groups.append(
            DecodeGroup(
                first,
                count,
                torch.tensor(padded, device=device),
                torch.tensor(lengths[first : first + count], device=device),
                page_size,
            )
        )
        first += count
    return groups


def _chunks(rows: Sequence[Row], first: int, page_size: int, device: torch.device) -> list[Chunk]:
    chunks = []
    for row in rows:
        sequence = row.sequence
        pages = torch.tensor(sequence.pages[: _num_pages(row, page_size)], device=device)
        chunks.append(Chunk(first, row.count, row.start, pages, sequence.atoms, sequence.block))
        first += row.count
    return chunks


def _axes(row: Row, axes: int) -> torch.Tensor:
    """A row's positions, [axes, count]."""
    media = row.sequence.media
    if media is None:
        return torch.arange(row.start, row.start + row.count).expand(axes, -1)
    return media.positions_of(row.start, row.count, axes)


def _remember(known: dict[K, V], key: K, make: Callable[[], V]) -> V:
    if key not in known:
        known[key] = make()
    return known[key]
