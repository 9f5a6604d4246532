"""Arithmetic on linked numbers, written as an expression."""

from __future__ import annotations

import ast
import math
import operator
import string
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from nodes.context import NodeInputError
from nodes.declare import node
from nodes.types import Grows, Multiline, Socket

Number = int | float
Values = Annotated[
    dict[str, Any],
    Grows(Annotated[Any, Socket("FLOAT,INT,BOOLEAN")], "value", names=tuple(string.ascii_lowercase)),
]

_MAX_EXPONENT = 1024
_MAX_LENGTH = 2000

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("ceil", "floor", "sqrt", "sin", "cos", "tan", "log", "log2")},
    **{name: getattr(math, name) for name in ("log10", "exp", "trunc", "hypot", "gcd", "lcm", "atan2")},
    "abs": abs,
    "min": min,
    "max": max,
    "round": round,
    "int": int,
    "float": float,
    "pow": lambda base, exponent: _power(base, exponent),
}
_NAMES: Mapping[str, Number] = {"pi": math.pi, "e": math.e, "True": True, "False": False}


@node(
    "ComfyMathExpression",
    display="Math Expression",
    category="utilities",
    outputs=("FLOAT", "INT", "BOOL"),
    search_aliases=("calculate", "formula"),
)
def calculate(
    *, expression: Annotated[str, Multiline()] = "a + b", values: Values
) -> tuple[float, int, bool]:
    """What the expression comes to, in which linked numbers are called a, b, c and so on.

    It knows + - * / // % **, comparisons, and, or, not, `x if y else z`, and functions such as min, max,
    round, floor, ceil, abs, sqrt and pow.
    """
    result = evaluate(expression, {name: value for name, value in values.items() if value is not None})
    if not math.isfinite(result):
        raise NodeInputError(f"The expression comes to {result}, which is no number")
    return float(result), int(result), bool(result)


def evaluate(expression: str, values: Mapping[str, Number]) -> Number:
    """Raises `NodeInputError` with the reason."""
    if len(expression) > _MAX_LENGTH:
        raise NodeInputError(f"The expression has more than {_MAX_LENGTH} characters")
    try:
        body = ast.parse(expression.strip(), mode="eval").body
        result = _value(body, {**_NAMES, **values})
        return result if isinstance(result, int | float) else float(result)
    except SyntaxError as error:
        raise NodeInputError(f"The expression cannot be read: {error.msg}") from None
    except (ArithmeticError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise NodeInputError(f"The expression cannot be computed: {error}") from None


def _value(part: ast.expr, names: Mapping[str, Any]) -> Any:
    match part:
        case ast.Constant(value=int() | float() | bool()):
            return part.value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise NodeInputError(f"The expression uses {name}, to which nothing is connected")
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, names), _value(right, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand, names))
        case ast.BoolOp(op=op, values=parts):
            return _any_or_all(op, parts, names)
        case ast.Compare():
            return _compared(part, names)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(each, names) for each in arguments))
    raise NodeInputError(f"The expression may not hold '{ast.unparse(part)}'")


def _any_or_all(op: ast.boolop, parts: list[ast.expr], names: Mapping[str, Any]) -> Any:
    """Python's: the first value that decides, and no further one is looked at."""
    value: Any = None
    for part in parts:
        value = _value(part, names)
        if bool(value) is isinstance(op, ast.Or):
            break
    return value


def _compared(part: ast.Compare, names: Mapping[str, Any]) -> bool:
    left = _value(part.left, names)
    for op, each in zip(part.ops, part.comparators, strict=True):
        if type(op) not in _COMPARE:
            raise NodeInputError(f"The expression may not hold '{ast.unparse(part)}'")
        right = _value(each, names)
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _power(base: Any, exponent: Any) -> Any:
    """Within bounds: a few characters could keep a machine busy for ever."""
    if abs(exponent) > _MAX_EXPONENT or abs(base) > 2**64:
        raise NodeInputError("The power in the expression is too large")
    return base**exponent
