"""Rows of a step as the tensors that one packed forward needs; it knows neither the model nor the pools.

Decode rows come first, longest first, in groups that share a padded length; then one chunk a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from runtime.llm.scheduler import Row
from treadle_kernels import kv_write, paged_attention

# A group costs about as many operations a layer as reading this many padded pages.
_PAGES_WORTH_A_GROUP = 12

Window = int | None
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Rows of one token each, packed from `first` on."""

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
            hidden |= positions < self.lengths[:, None] - window
        bias = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)
        return bias.repeat_interleave(heads, 0)[:, None]


@dataclass(frozen=True, slots=True)
class Chunk:
    """`count` tokens of one row, packed from `first` on, at positions from `start` on.

    Positions of one of the `spans` see each other both ways.
    """

    first: int
    count: int
    start: int
    pages: torch.Tensor  # [N]
    spans: tuple[tuple[int, int], ...] = ()
    _index: dict[int, torch.Tensor] = field(default_factory=dict)
    _bias: dict[tuple[Window, bool], torch.Tensor | None] = field(default_factory=dict)

    def index(self, heads: int) -> torch.Tensor:
        return _remember(self._index, heads, lambda: paged_attention.page_index(self.pages[None], heads))

    def bias(self, window: Window, dtype: torch.dtype, explicit: bool) -> torch.Tensor | None:
        """Additive, [n, start + n]; None where the plain causal pattern says it all, unless `explicit`."""
        return _remember(self._bias, (window, explicit), lambda: self._make_bias(window, dtype, explicit))

    def _make_bias(self, window: Window, dtype: torch.dtype, explicit: bool) -> torch.Tensor | None:
        length = self.start + self.count
        is_causal = self.start == 0 and not self.spans and (window is None or window >= length)
        if is_causal and not explicit:
            return None
        queries = torch.arange(self.start, length, device=self.pages.device)[:, None]
        keys = torch.arange(length, device=self.pages.device)[None]
        hidden = keys > queries
        if window is not None:
            hidden |= keys <= queries - window
        for start, stop in self.spans:
            hidden &= ~((queries >= start) & (queries < stop) & (keys >= start) & (keys < stop))
        return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)


@dataclass(frozen=True, slots=True)
class Batch:
    """`rows` are in packed order; `logits_at` holds the packed positions whose next token is wanted."""

    rows: tuple[Row, ...]
    input_ids: torch.Tensor  # [1, T]
    position_ids: torch.Tensor  # [1, T], or [axes, 1, T] for models whose positions have several
    logits_at: torch.Tensor
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
    decode = sorted((row for row in rows if row.count == 1), key=lambda row: -len(row.sequence.pages))
    prefill = [row for row in rows if row.count > 1]
    packed = (*decode, *prefill)
    ids: list[int] = []
    places: list[int] = []
    pages: list[int] = []
    wanted: list[int] = []
    for row in packed:
        span = range(row.start, row.start + row.count)
        ids += row.sequence.tokens[row.start : row.start + row.count]
        places += span
        pages += [row.sequence.pages[position // page_size] for position in span]
        if row.samples:
            wanted.append(len(ids) - 1)
    position_ids = torch.tensor([places], device=device)
    page_offsets = position_ids[0] % page_size
    if position_axes > 1:
        position_ids = torch.cat([_axes(row, position_axes) for row in packed], 1)[:, None].to(device)
    return Batch(
        rows=packed,
        input_ids=torch.tensor([ids], device=device),
        position_ids=position_ids,
        logits_at=torch.tensor(wanted, dtype=torch.long, device=device),
        decode_groups=tuple(_decode_groups(decode, page_size, device)),
        chunks=tuple(_chunks(prefill, len(decode), page_size, device)),
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


def _decode_groups(rows: Sequence[Row], page_size: int, device: torch.device) -> list[DecodeGroup]:
    groups, first = [], 0
    tables = [row.sequence.pages[: row.start // page_size + 1] for row in rows]
    for count in group_sizes([len(table) for table in tables]):
        mine = tables[first : first + count]
        width = len(mine[0])
        padded = [table + table[-1:] * (width - len(table)) for table in mine]
        lengths = [row.start + 1 for row in rows[first : first + count]]
        groups.append(
            DecodeGroup(
                first,
                count,
                torch.tensor(padded, device=device),
                torch.tensor(lengths, device=device),
                page_size,
            )
        )
        first += count
    return groups


def _chunks(rows: Sequence[Row], first: int, page_size: int, device: torch.device) -> list[Chunk]:
    chunks = []
    for row in rows:
        num_pages = -(-(row.start + row.count) // page_size)
        pages = torch.tensor(row.sequence.pages[:num_pages], device=device)
        chunks.append(Chunk(first, row.count, row.start, pages, row.sequence.atoms))
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
