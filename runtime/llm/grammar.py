"""Which tokens a grammar allows next. Grammars are compiled by llguidance, beside the engine's thread, once
for each text; an answer's state is a copy. It knows no logits and no requests.
"""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache

import torch
from llguidance import LLExecutor, LLMatcher, StructTag
from llguidance.gbnf_to_lark import GbnfToLarkError, any_to_lark

from runtime.llm.api import Grammar
from runtime.llm.vocabulary import Vocabulary
from runtime.platform.errors import RuntimeFault, Unsupported

_NUM_KEPT = 128
_REASON_LENGTH = 400
_NAMES = {
    "json_schema": "JSON schema",
    "regex": "regular expression",
    "lark": "grammar",
    "choice": "list of choices",
    "structural_tag": "structural tag",
}
# With free whitespace a model at a high temperature may write blanks for ever.
_JSON_OPTIONS = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


class Constraint:
    """How far one answer has come in its grammar.

    It rests while it is not `active`, and rests too from an `opener` on, which may come as the first token.
    """

    def __init__(self, matcher: LLMatcher, vocabulary_size: int) -> None:
        self.matcher = matcher
        self.vocabulary_size = vocabulary_size
        self.active = True
        self.opener: int | None = None

    @property
    def is_complete(self) -> bool:
        """Nothing but the end may follow."""
        return self.active and bool(self.matcher.is_stopped())

    def accept(self, token: int) -> None:
        if not self.active:
            return
        is_opener, self.opener = token == self.opener, None
        if is_opener:
            self.active = False
        elif not self.matcher.consume_token(token):
            reason = _reason(str(self.matcher.get_error()))
            raise RuntimeFault(f"the answer cannot follow its grammar any further: {reason}")


class Grammars:
    """One model's compiled grammars. Any thread may compile."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._compiled: OrderedDict[Grammar, LLMatcher] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, grammar: Grammar) -> Constraint:
        """Raises `Unsupported`, naming what the grammar has that cannot be enforced."""
        with self._lock:
            known = self._compiled.get(grammar)
        if known is None:
            known = self._compile(grammar)
        with self._lock:
            self._compiled[grammar] = known
            self._compiled.move_to_end(grammar)
            if len(self._compiled) > _NUM_KEPT:
                self._compiled.popitem(last=False)
            return Constraint(known.deep_copy(), self._vocabulary.size)

    def _compile(self, grammar: Grammar) -> LLMatcher:
        try:
            matcher = LLMatcher(self._vocabulary.tokenizer, _source(grammar), log_level=0)
        except ValueError as error:
            # text that is no Unicode, for one
            raise Unsupported(_complaint(grammar, str(error))) from error
        if matcher.is_error():
            raise Unsupported(_complaint(grammar, str(matcher.get_error())))
        return matcher


def fill(constraints: Sequence[Constraint]) -> torch.Tensor:
    """One bit a token of the vocabulary that all share, set where the grammar allows it next."""
    # -> [N, V / 32] int32
    words = -(-constraints[0].vocabulary_size // 32)
    bits = torch.zeros(len(constraints), words, dtype=torch.int32)
    rows = [(each.matcher, row) for row, each in enumerate(constraints)]
    _executor().unsafe_compute_mask_ptr(rows, bits.data_ptr(), words * 4, len(constraints))
    for row, each in enumerate(constraints):
        if each.opener is not None:
            bits[row, each.opener // 32] |= _one_bit(each.opener % 32)
    return bits


def _one_bit(place: int) -> int:
    """As a signed word has it."""
    return 1 << place if place < 31 else -(1 << 31)


@cache
def _executor() -> LLExecutor:
    return LLExecutor()


def _source(grammar: Grammar) -> str:
    match grammar.kind:
        case "json_schema":
            return _schema_source(grammar.text)
        case "regex":
            return str(LLMatcher.grammar_from_regex(grammar.text))
        case "lark":
            return str(LLMatcher.grammar_from_lark(_lark(grammar.text)))
        case "structural_tag":
            return _tags_source(grammar.text)
        case "choice":
            return str(LLMatcher.grammar_from_regex("|".join(_texts(grammar.text))))


def _lark(text: str) -> str:
    """Grammars in llama.cpp's form are understood too."""
    try:
        return any_to_lark(text)
    except (GbnfToLarkError, RecursionError) as error:
        raise Unsupported(f"the grammar cannot be read: {error}") from error


def _tags_source(text: str) -> str:
    found = _read(text, "structural tag")
    assert isinstance(found, dict), text
    tags = []
    for each in found["structures"]:
        trigger = next((trigger for trigger in found["triggers"] if each["begin"].startswith(trigger)), "")
        if not trigger:
            raise Unsupported(f"the structural tag {each['begin']!r} begins with none of the triggers")
        shape = {**each["schema"], "x-guidance": _JSON_OPTIONS}
        tags.append(StructTag(trigger=trigger, begin=each["begin"], grammar=shape, end=each["end"]))
    return str(StructTag.to_grammar(tags, assume_special=False))


def _schema_source(text: str) -> str:
    schema = _read(text, "JSON schema")
    if not isinstance(schema, dict):
        raise Unsupported("a JSON schema must be a JSON object")
    return str(LLMatcher.grammar_from_json_schema(text, overrides=_JSON_OPTIONS))


def _texts(text: str) -> list[str]:
    choices = _read(text, "list of choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(c, str) and c for c in choices):
        raise Unsupported("choices must be a JSON array of at least one text, none of them empty")
    return [re.escape(choice) for choice in choices]


def _read(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unsupported(f"the {what} is not valid JSON: {error}") from error


def _complaint(grammar: Grammar, error: str) -> str:
    what = _NAMES[grammar.kind]
    found = re.search(r"Unimplemented keys: (\[.*?\])", error)
    if found:
        keywords = ", ".join(json.loads(found[1]))
        return f"the {what} has keywords that cannot be enforced: {keywords}"
    return f"the {what} cannot be enforced: {_reason(error)}"


def _reason(error: str) -> str:
    """Without the state and the grammar, which may be very long."""
    reason = error.split("\n<state>")[0].strip()
    return reason if len(reason) <= _REASON_LENGTH else f"{reason[:_REASON_LENGTH]}..."
