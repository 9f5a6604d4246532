"""What rows that sample bring in models that write block by block: nothing, or a block that is finished."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch

from runtime.llm import sample
from runtime.llm.answer import Answer
from runtime.llm.api import ChatRequest, CompleteRequest
from runtime.llm.dllm.blocks import Algorithm, Block, BlockStyle, Candidate
from runtime.llm.sample import Place
from runtime.llm.sequence import Row, TokenSequence
from runtime.platform.errors import Unsupported

# What is said of the next token means nothing where many come at once.
_REFUSED = frozenset(
    [
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
        "min_tokens",
        "logprobs",
        "prompt_logprobs",
        "prompt_logprobs",
        "grammar",
    ]
)


def check(request: ChatRequest | CompleteRequest) -> None:
    """Raise `Unsupported` with a sentence for what a block-diffusion model cannot follow."""
    params = request.params
    asked = [each.name for each in fields(params) if getattr(params, each.name) != each.default]
    refused = sorted(_REFUSED & set(asked))
    if isinstance(request, ChatRequest) and request.must_call:
        refused.append("must_call")
    if refused:
        raise Unsupported(
            f"a block-diffusion model does not support {refused[0]}; supported are temperature, top_p,"
            " top_k, seed, max_tokens, stop, stop_token_ids and ignore_eos"
        )


class BlockWriter:
    """Blocks of different sequences are at different steps of theirs and share each forward all the same."""

    # It guesses nothing that could turn out wrong.
    num_proposed = num_accepted = 0

    def __init__(self, style: BlockStyle, algorithm: Algorithm) -> None:
        self._style = style
        self._algorithm = algorithm

    def draft(self, sequence: TokenSequence, answer: Answer) -> None:
        """Called before each step."""
        if answer.block is None:
            answer.block = Block(self._style.masks_behind(len(sequence.tokens)))
        sequence.draft = tuple(answer.block.tokens)

    @torch.inference_mode()
    def write(
        self, rows: Sequence[Row], answers: Sequence[Answer], logits: torch.Tensor
    ) -> list[tuple[int, ...]]:
        """`logits` are those of all masks and tokens of the first row's block, then of the next ..."""
        # logits: [N, V]
        candidates = self._candidates(rows, answers, logits)
        found, first = [], 0
        for row, answer in zip(rows, answers):
            assert answer.block is not None
            mine = candidates[first : first + row.num_sampled]
            is_done = self._algorithm.step(answer.block, mine, self._style.mask_id)
            found.append(tuple(answer.block.tokens) if is_done else ())
            if is_done:
                answer.block = None
            answer.choice.numbers.use(row.num_sampled)
            first += row.num_sampled
        return found

    def _candidates(
        self, rows: Sequence[Row], answers: Sequence[Answer], logits: torch.Tensor
    ) -> list[Candidate]:
        """A drawn one is as likely as its temperature makes it, whatever top-p and top-k leave beside it."""
        logits[:, self._style.mask_id] = -torch.inf
        places = [
            Place(answer.choice, row.sequence.tokens, ahead)
            for row, answer in zip(rows, answers)
            for ahead in range(row.num_sampled)
        ]
        tokens = sample.choose(logits, places).tokens
        params = [place.choice.params for place in places]
        temperatures = [each.temperature if sample.is_drawn(each) else 1.0 for each in params]
        scaled = logits.float() / torch.tensor(temperatures, device=logits.device)[:, None]
        chosen = torch.tensor(tokens, device=logits.device)[:, None]
        confidences = scaled.softmax(-1).gather(1, chosen)[:, 0].tolist()
        return [Candidate(token, confidence) for token, confidence in zip(tokens, confidences)]
