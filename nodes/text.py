"""Texts joined, filled in, searched and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from string import Formatter
from typing import Annotated, Any, Literal

import regex

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.spec import NodeResult
from nodes.types import Anything, InOptional, Int, Multiline, Options, Text

CATEGORY = "text"
ADVANCED = Options({"advanced": True})

# Some patterns take ages on some texts; the standard library could not be stopped then.
MATCHING_TIMEOUT_S = 5.0

Flag = Annotated[bool, ADVANCED]
# A socket only: the node has a text area of its own to write in.
TextSocket = Annotated[str, Options({"forceInput": True})]
OptionalText = Annotated[str | None, Options({"forceInput": True})]


@node("TextConcat", display="Join Texts", category=CATEGORY)
def join(*, a: Text, b: Text, separator: str = "", c: OptionalText = None, d: OptionalText = None) -> str:
    """The texts one after the other, with `separator` between them. Unconnected c and d are left out."""
    return separator.join(text for text in (a, b, c, d) if text is not None)


@node("TextTemplate", display="Text Template", category=CATEGORY)
def fill_in(
    *,
    template: Annotated[str, Multiline(placeholder="A picture of {a}")],
    a: OptionalText = None,
    b: OptionalText = None,
    c: OptionalText = None,
    d: OptionalText = None,
) -> str:
    """Puts the inputs where {a}, {b}, {c} and {d} stand.

    An input that is not given leaves an empty place; {{ and }} are plain braces. Any other name in braces is
    an error that names it.
    """
    values = {"a": a, "b": b, "c": c, "d": d}
    return "".join(literal + _value(field, values) for literal, field in _fields(template))


@node("TextPreview", display="Show Text", category=CATEGORY, returns=(str,), is_output=True)
def show(*, text: TextSocket) -> NodeResult:
    """Shows a text on the node, and passes it on."""
    return NodeResult((text,), ui={"text": [text]})


@node("PreviewAny", display="Preview as Text", category="utilities", returns=(str,), is_output=True)
def show_anything(*, source: Anything) -> NodeResult:
    """Shows any value as text: JSON where it can be, else as Python writes it."""
    text = _as_text(source)
    return NodeResult((text,), ui={"text": [text]})


@node("StringConcatenate", display="Concatenate Text", category=CATEGORY)
def concatenate(*, string_a: Text, string_b: Text, delimiter: str = "") -> str:
    """One text after another, with `delimiter` between them."""
    return delimiter.join((string_a, string_b))


@node("StringSubstring", display="Substring", category=CATEGORY)
def substring(*, string: Text, start: int, end: int) -> str:
    """The characters from `start` up to `end`; negative numbers count from the end."""
    return string[start:end]


@node("StringLength", display="Text Length", category=CATEGORY, outputs=("length",))
def length(*, string: Text) -> int:
    """The number of characters."""
    return len(string)


@node("CaseConverter", display="Convert Text Case", category=CATEGORY)
def convert_case(
    *, string: Text, mode: Literal["UPPERCASE", "lowercase", "Capitalize", "Title Case"] = "UPPERCASE"
) -> str:
    """Capital or small letters."""
    match mode:
        case "UPPERCASE":
            return string.upper()
        case "lowercase":
            return string.lower()
        case "Capitalize":
            return string.capitalize()
        case _:
            return string.title()


@node("StringTrim", display="Trim Text", category=CATEGORY)
def trim(*, string: Text, mode: Literal["Both", "Left", "Right"] = "Both") -> str:
    """Without the blanks and line breaks around it."""
    match mode:
        case "Left":
            return string.lstrip()
        case "Right":
            return string.rstrip()
        case _:
            return string.strip()


@node("StringReplace", display="Replace Text", category=CATEGORY)
def replace(*, string: Text, find: Text, replace: Text) -> str:
    """Puts `replace` wherever `find` stands."""
    return string.replace(find, replace)


@node("StringContains", display="Contains Text", category=CATEGORY, outputs=("contains",))
def contains(*, string: Text, substring: Text, case_sensitive: Flag = True) -> bool:
    """Whether a text has another in it."""
    return substring in string if case_sensitive else substring.lower() in string.lower()


@node("StringCompare", display="Compare Text", category=CATEGORY)
def compare(
    *,
    string_a: Text,
    string_b: Text,
    mode: Literal["Starts With", "Ends With", "Equal"] = "Starts With",
    case_sensitive: Flag = True,
) -> bool:
    """Whether a text starts with, ends with or equals another."""
    one, two = (string_a, string_b) if case_sensitive else (string_a.lower(), string_b.lower())
    match mode:
        case "Starts With":
            return one.startswith(two)
        case "Ends With":
            return one.endswith(two)
        case _:
            return one == two


@node("RegexMatch", display="Match Text", category=CATEGORY, outputs=("matches",))
def regex_match(
    *,
    string: Text,
    regex_pattern: Text,
    case_insensitive: Flag = True,
    multiline: Flag = False,
    dotall: Flag = False,
) -> bool:
    """Whether a regular expression finds something in a text."""
    pattern = _pattern(regex_pattern, case_insensitive, multiline, dotall)
    with _in_time(regex_pattern):
        return pattern.search(string, timeout=MATCHING_TIMEOUT_S) is not None


@node("RegexExtract", display="Extract Text", category=CATEGORY)
def regex_extract(
    *,
    string: Text,
    regex_pattern: Text,
    mode: Literal["First Match", "All Matches", "First Group", "All Groups"] = "First Match",
    case_insensitive: Flag = True,
    multiline: Flag = False,
    dotall: Flag = False,
    group_index: Annotated[int, Int(0, 100), ADVANCED] = 1,
) -> str:
    """What a pattern finds, one a line; empty where it finds nothing."""
    pattern = _pattern(regex_pattern, case_insensitive, multiline, dotall)
    group = group_index if mode.endswith(("Group", "Groups")) else 0
    if group > pattern.groups:
        return ""
    with _in_time(regex_pattern):
        matches = pattern.finditer(string, timeout=MATCHING_TIMEOUT_S)
        found = [match[group] or "" for match in matches]
    return "\n".join(found if mode.startswith("All") else found[:1])


@node("RegexReplace", display="Replace Text (Regex)", category=CATEGORY)
def regex_replace(
    *,
    string: Text,
    regex_pattern: Text,
    replace: Text,
    case_insensitive: Annotated[Flag, InOptional()] = True,
    multiline: Annotated[Flag, InOptional()] = False,
    dotall: Annotated[Flag, InOptional()] = False,
    count: Annotated[int, Int(0, 100), ADVANCED, InOptional()] = 0,
) -> str:
    r"""Replaces what a pattern finds, at most `count` times (0: all). \1 in `replace` is the first group."""
    pattern = _pattern(regex_pattern, case_insensitive, multiline, dotall)
    try:
        with _in_time(regex_pattern):
            return pattern.sub(replace, string, count=count, timeout=MATCHING_TIMEOUT_S)
    except (regex.error, IndexError) as error:
        raise NodeInputError(f"replace does not fit the pattern: {error}") from None


@node("JsonExtractString", display="Extract Text from JSON", category=CATEGORY)
def extract_from_json(*, json_string: Text, key: str = "") -> str:
    """The value of a key of a JSON object, as text; empty where there is no such key or no such object."""
    try:
        document = json.loads(json_string)
    except ValueError:
        return ""
    value = document.get(key) if isinstance(document, dict) else None
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def _in_time(pattern: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise NodeInputError(f"'{pattern}' was still searching after {MATCHING_TIMEOUT_S} s") from None


def _fields(template: str) -> list[tuple[str, str | None]]:
    try:
        return [(literal, field) for literal, field, _, _ in Formatter().parse(template)]
    except ValueError as error:
        raise NodeInputError(
            f"The template has an unpaired brace ({error}); write {{{{ for a plain one"
        ) from None


def _value(field: str | None, values: dict[str, str | None]) -> str:
    if field is None:
        return ""
    if field not in values:
        raise NodeInputError(f"The template asks for {{{field}}}; there are {{a}}, {{b}}, {{c}} and {{d}}")
    return values[field] or ""


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _pattern(text: str, case_insensitive: bool, multiline: bool, dotall: bool) -> Any:
    flags = (
        (regex.IGNORECASE if case_insensitive else 0)
        | (regex.MULTILINE if multiline else 0)
        | (regex.DOTALL if dotall else 0)
    )
    try:
        return regex.compile(text, flags)
    except regex.error as error:
        raise NodeInputError(f"'{text}' is no regular expression: {error}") from None
