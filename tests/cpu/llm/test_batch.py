import torch

from runtime.llm.batch import Chunked, Sliding, build, group_sizes
from runtime.llm.sequence import Row, TokenSequence


def row(tokens: list[int], start: int, pages: list[int], samples: bool = True) -> Row:
    each = TokenSequence("x", tokens, 99, computed=start, pages=pages)
    return Row(each, start, len(tokens) - start, samples)


def test_rows_are_packed_with_decode_rows_first_and_longest_first() -> None:
    short, long = row([1, 2, 3], 2, [5]), row(list(range(10, 19)), 8, [7, 2, 4])
    prompt = row([30, 31, 32, 33, 34], 0, [8, 9], samples=False)
    batch = build([prompt, short, long], 4, torch.device("cpu"))
    assert batch.rows == (long, short, prompt)
    assert batch.input_ids.tolist() == [[18, 3, 30, 31, 32, 33, 34]]
    assert batch.position_ids.tolist() == [[8, 2, 0, 1, 2, 3, 4]]
    assert batch.logits_at.tolist() == [0, 1]
    assert batch.token_pages.tolist() == [4, 5, 8, 8, 8, 8, 9]
    assert batch.page_offsets.tolist() == [0, 2, 0, 1, 2, 3, 0]
    (group,) = batch.decode_groups
    assert group.pages.tolist() == [[7, 2, 4], [5, 5, 5]]
    assert group.lengths.tolist() == [9, 3]


def test_rows_of_very_different_lengths_are_not_padded_to_one_another() -> None:
    assert group_sizes([]) == []
    assert group_sizes([5, 5, 4, 4]) == [4]
    assert group_sizes([100, 99, 3, 2, 1]) == [2, 3]


def test_a_window_hides_the_far_past() -> None:
    batch = build([row(list(range(7)), 6, [0, 1]), row([1, 2, 3], 0, [2])], 4, torch.device("cpu"))
    (group,), (chunk,) = batch.decode_groups, batch.chunks
    seen = group.bias(1, Sliding(3), torch.float32)[0, 0] == 0
    assert seen.tolist() == [False] * 4 + [True] * 3 + [False]
    assert chunk.bias(None, torch.float32, explicit=False) is None
    assert chunk.bias(Sliding(3), torch.float32, explicit=False) is None
    narrow = chunk.bias(Sliding(2), torch.float32, explicit=False)
    assert narrow is not None
    assert (narrow == 0).tolist() == [[True, False, False], [True, True, False], [False, True, True]]


def test_a_chunked_layer_sees_from_the_last_multiple_on() -> None:
    batch = build([row(list(range(7)), 6, [0, 1]), row([1, 2, 3, 4], 0, [2])], 4, torch.device("cpu"))
    (group,), (chunk,) = batch.decode_groups, batch.chunks
    seen = group.bias(1, Chunked(4), torch.float32)[0, 0] == 0
    assert seen.tolist() == [False] * 4 + [True] * 3 + [False]
    assert chunk.bias(Chunked(4), torch.float32, explicit=False) is None
    narrow = chunk.bias(Chunked(3), torch.float32, explicit=False)
    assert narrow is not None
    assert (narrow == 0).long().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]]


def test_a_row_with_guesses_decodes_at_each_of_its_positions() -> None:
    guessing = TokenSequence("x", [1, 2, 3, 4], 99, computed=3, pages=[6, 1])
    rows = [row([5, 6], 1, [3]), Row(guessing, 3, 3, samples=True, draft=(8, 9))]
    batch = build(rows, 4, torch.device("cpu"))
    assert batch.input_ids.tolist() == [[4, 8, 9, 6]]
    assert batch.position_ids.tolist() == [[3, 4, 5, 1]]
    assert batch.logits_at.tolist() == [0, 1, 2, 3]
    assert batch.token_pages.tolist() == [6, 1, 1, 3]
    (group,) = batch.decode_groups
    assert group.pages.tolist() == [[6, 1], [6, 1], [6, 1], [3, 3]]
    assert group.lengths.tolist() == [4, 5, 6, 2]
    assert batch.chunks == ()


def test_a_block_sees_itself_and_what_is_before_it() -> None:
    writing = TokenSequence("x", [1, 2, 3], 99, pages=[5, 6], block=2)
    batch = build([Row(writing, 0, 4, samples=True, draft=(9,))], 4, torch.device("cpu"))
    assert batch.logits_at.tolist() == [3], "only of what is being written"
    (chunk,) = batch.chunks
    bias = chunk.bias(None, torch.float32, explicit=False)
    assert bias is not None
    assert (bias == 0).long().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
