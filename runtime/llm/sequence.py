"""A request's tokens as the scheduler knows them, and a row: what one forward computes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.llm.adapters import Adapter
    from runtime.llm.media import MediaPrompt
    from runtime.llm.pages import Node


@dataclass(eq=False, slots=True)
class TokenSequence:
    """One request's tokens and what is computed of them.

    `max_length` counts prompt and generated tokens. One that does not `generate` ends when its prompt is
    computed and computes all of it, since cached pages hold keys and values but no hidden states; so does one
    that `scores_prompt`, of whose prompt every position's logits are wanted.

    `keys` are what the prefix tree knows the tokens by: the tokens themselves, unless what a position holds
    is told by more than its token. No chunk ends inside one of the `atoms`, which are spans of positions, and
    none goes across one of the `stops`. `media` and the `adapter` travel along for those who compute, and
    so does the `slot` of a model whose layers carry states.

    The `draft` are tokens behind the known ones that the next row computes with them. They are guesses, which
    give way when room is short, unless a `block` is more than one token: then tokens are known a block at a
    time, each position sees its whole block, and the draft is the rest of the block that is being written.
    """

    id: str
    tokens: list[int]
    max_length: int
    end_ids: frozenset[int] = frozenset()
    generates: bool = True
    keys: list[int] = field(default_factory=list)
    atoms: tuple[tuple[int, int], ...] = ()
    media: MediaPrompt | None = None
    block: int = 1
    draft: tuple[int, ...] = ()
    scores_prompt: bool = False
    prompt_length: int = field(init=False)
    computed: int = 0
    cached_tokens: int | None = None
    pages: list[int] = field(default_factory=list)
    num_shared: int = 0
    path: Node | None = None
    slot: int | None = None
    stops: tuple[int, ...] = ()
    adapter: Adapter | None = None

    def __post_init__(self) -> None:
        self.prompt_length = len(self.tokens)
        self.keys = self.keys or self.tokens.copy()

    @property
    def remaining(self) -> int:
        return len(self.tokens) - self.computed

    @property
    def needed(self) -> int:
        """How many tokens are to be computed before anything can be sampled."""
        return self.remaining + (len(self.draft) if self.block > 1 else 0)

    @property
    def is_prompt(self) -> bool:
        """Whether more is to be computed than what the last step brought."""
        return self.remaining > self.block

    def append(self, token: int) -> None:
        self.tokens.append(token)
        self.keys.append(token)

    def chunk(self, limit: int) -> int:
        """How many tokens to compute next: at most `limit`, or more where an atom or a block is larger."""
        count = min(limit, self.needed)
        if self.block > 1:
            return max(self.block, count // self.block * self.block)
        end = min([self.computed + count, *(stop for stop in self.stops if stop > self.computed)])
        for start, stop in self.atoms:
            if start < end < stop:
                end = start if start > self.computed else stop
        return end - self.computed


@dataclass(frozen=True, slots=True)
class Row:
    """Compute `count` positions of a sequence from `start` on, the last of them those of a `draft`.

    One that `samples` is asked for what follows its known tokens.
    """

    sequence: TokenSequence
    start: int
    count: int
    samples: bool
    draft: tuple[int, ...] = ()

    @property
    def num_known(self) -> int:
        return self.count - len(self.draft)

    @property
    def tokens(self) -> list[int]:
        return [*self.sequence.tokens[self.start : self.start + self.num_known], *self.draft]

    @property
    def scored(self) -> range:
        """The positions whose logits say how likely the prompt's next token was."""
        if not self.sequence.scores_prompt:
            return range(0)
        return range(self.start, min(self.start + self.num_known, self.sequence.prompt_length - 1))

    @property
    def num_sampled(self) -> int:
        """How many of its last positions' logits are wanted: those of a block stand for its own tokens, all
        others for the token that follows.
        """
        if not self.samples:
            return 0
        return len(self.draft) + (self.sequence.block == 1)
