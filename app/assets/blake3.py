"""BLAKE3, the hash by which clients of the assets API name content. All chunks of a segment go side by side.

The tree of hashes is that of the BLAKE3 paper (O'Connor, Aumasson, Neves, Wilcox-O'Hearn), with the default
key and 32 bytes of output. It blocks: some tens of megabytes a second on one core.
"""

from __future__ import annotations

from typing import IO

import numpy as np
from numpy.typing import NDArray

from app.assets.rows import HASH_PREFIX

Words = NDArray[np.uint32]


_CHUNK_BYTES, _BLOCK_BYTES = 1024, 64
# a power of two, so that every segment but the last is a whole subtree
_SEGMENT_CHUNKS = 4096
_CHUNK_START, _CHUNK_END, _PARENT, _ROOT = 1, 2, 4, 8
_START = np.array(
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19],
    dtype=np.uint32,
)
_PERMUTED = np.array([2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8])
# rows of a quarter, turned so that diagonals become columns and back
_ONE, _TWO, _THREE = np.array([1, 2, 3, 0]), np.array([2, 3, 0, 1]), np.array([3, 0, 1, 2])


def content_hash(stream: IO[bytes]) -> str:
    """`blake3:` and 64 hexadecimal digits, of all that the stream still gives."""
    subtrees: list[Words] = []
    segment, counter = _read(stream), 0
    while True:
        following = _read(stream)
        is_whole = not subtrees and not following
        subtrees.append(_subtree(segment, counter, is_whole))
        if not following:
            break
        segment, counter = following, counter + _SEGMENT_CHUNKS
    root = _merged(np.concatenate(subtrees, axis=1), is_root=True)
    return HASH_PREFIX + root[:, 0].astype("<u4").tobytes().hex()


def _read(stream: IO[bytes]) -> bytes:
    wanted, parts = _SEGMENT_CHUNKS * _CHUNK_BYTES, []
    while wanted and (part := stream.read(wanted)):
        parts.append(part)
        wanted -= len(part)
    return b"".join(parts)


def _subtree(data: bytes, counter: int, is_whole: bool) -> Words:
    """[8, 1]: the chaining value of a segment whose first chunk has the number `counter`."""
    full = max(len(data) - 1, 0) // _CHUNK_BYTES
    values = []
    if full:
        values.append(_full_chunks(data[: full * _CHUNK_BYTES], counter))
    values.append(_last_chunk(data[full * _CHUNK_BYTES :], counter + full, is_whole and not full))
    return _merged(np.concatenate(values, axis=1), is_root=is_whole)


def _full_chunks(data: bytes, counter: int) -> Words:
    """[8, N] of N whole chunks."""
    # [N, 16 blocks, 16 words] -> [16 blocks, 16 words, N]
    words = np.frombuffer(data, dtype="<u4").astype(np.uint32).reshape(-1, 16, 16).transpose(1, 2, 0)
    blocks = np.ascontiguousarray(words)
    numbers = np.arange(counter, counter + blocks.shape[2], dtype=np.uint64)
    values = np.repeat(_START[:, None], blocks.shape[2], axis=1)
    for i in range(16):
        flags = (_CHUNK_START if i == 0 else 0) | (_CHUNK_END if i == 15 else 0)
        values = _compressed(values, blocks[i], numbers, _BLOCK_BYTES, flags)
    return values


def _last_chunk(data: bytes, counter: int, is_root: bool) -> Words:
    """[8, 1] of a chunk that may be short, even empty."""
    starts = range(0, max(len(data), 1), _BLOCK_BYTES)
    values, numbers = _START[:, None], np.array([counter], dtype=np.uint64)
    for start in starts:
        block = data[start : start + _BLOCK_BYTES]
        flags = _CHUNK_START if start == 0 else 0
        if start == starts[-1]:
            flags |= _CHUNK_END | (_ROOT if is_root else 0)
        padded = np.frombuffer(block.ljust(_BLOCK_BYTES, b"\0"), dtype="<u4").astype(np.uint32)
        values = _compressed(values, padded[:, None], numbers, len(block), flags)
    return values


def _merged(values: Words, is_root: bool) -> Words:
    """[8, N] -> [8, 1]: neighbours are paired level by level; one without a neighbour rises as it is."""
    while (count := values.shape[1]) > 1:
        flags = _PARENT | (_ROOT if is_root and count == 2 else 0)
        pairs = count // 2
        left, right = values[:, 0 : 2 * pairs : 2], values[:, 1 : 2 * pairs : 2]
        numbers = np.zeros(pairs, dtype=np.uint64)
        start = np.repeat(_START[:, None], pairs, axis=1)
        parents = _compressed(start, np.concatenate([left, right]), numbers, _BLOCK_BYTES, flags)
        values = np.concatenate([parents, values[:, 2 * pairs :]], axis=1)
    return values


def _compressed(values: Words, block: Words, numbers: NDArray[np.uint64], length: int, flags: int) -> Words:
    """[8, N] chaining values and [16, N] words -> [8, N]."""
    count = values.shape[1]
    low, high = numbers.astype(np.uint32), (numbers >> np.uint64(32)).astype(np.uint32)
    a, b = values[:4].copy(), values[4:].copy()
    c = np.repeat(_START[:4, None], count, axis=1)
    d = np.stack([low, high, np.full(count, length, np.uint32), np.full(count, flags, np.uint32)])
    order = np.arange(16)
    for _ in range(7):
        _mix(a, b, c, d, block[order[0:8:2]], block[order[1:8:2]])
        b, c, d = b[_ONE], c[_TWO], d[_THREE]
        _mix(a, b, c, d, block[order[8::2]], block[order[9::2]])
        b, c, d = b[_THREE], c[_TWO], d[_ONE]
        order = order[_PERMUTED]
    return np.concatenate([a ^ c, b ^ d])


def _mix(a: Words, b: Words, c: Words, d: Words, first: Words, second: Words) -> None:
    """The quarter round on four columns at once, in place. Each is [4, N]."""
    for words, turns in ((first, (16, 12)), (second, (8, 7))):
        a += b
        a += words
        d ^= a
        _turn(d, turns[0])
        c += d
        b ^= c
        _turn(b, turns[1])


def _turn(words: Words, bits: int) -> None:
    low = words << np.uint32(32 - bits)
    words >>= np.uint32(bits)
    words |= low
