"""What ``string.format`` prints, and what of it can be refused before it runs.

Owns the clauses ``%s %d %f %e %b %o %x %X`` with their precision, as cel-go v0.29.2 ``ext/formatting.go`` prints
them in its default locale (golang.org/x/text ``message`` in ``en_US``). That has surprises, which are kept: ``%f``
groups thousands; ``%e`` writes 1500 with a multiplication sign and superscripts and takes its precision for a width;
inside lists and maps other rules hold, so that what is printed reads as an expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from draht.cel.ast import Call, Expr, ListLiteral, Literal, MapLiteral
from draht.cel.errors import EvaluationError, LimitError
from draht.cel.library.standard_conversions import CONVERSIONS
from draht.cel.numbers import UInt
from draht.cel.types import Type
from draht.cel.values import MAX_INT64, Duration, Map, Timestamp, type_name, type_of

__all__ = ["MAX_LENGTH", "format_problem", "format_text", "go_quoted"]

MAX_LENGTH: Final = 1 << 24
"""Most code points of a string that a function makes; reading one of this length costs more than any limit allows."""
_DEFAULT_PRECISION: Final = 6
# From this many tens on, Go's printer takes the digits of a width or precision for no number at all.
_TENS_READ: Final = 1_000_000
_NO_VERB: Final = "%!(NOVERB)"
_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NOT_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INTEGERS: Final = ("int", "uint")
_TEXTS: Final = (
    "list",
    "map",
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "timestamp",
    "bytes",
    "duration",
    "type",
    "null",
)


@dataclass(frozen=True, slots=True)
class _Clause:
    letter: str
    precision: int | None


def format_text(text: str, arguments: Sequence[Any]) -> str:
    """The text with its clauses replaced by the arguments; more arguments than clauses are ignored.

    Raises:
        EvaluationError: A clause can't be read, has no argument, or can't print its argument.
    """
    parts = []
    index = length = 0
    for part in _parts(text):
        if isinstance(part, str):
            parts.append(part)
        else:
            if index >= len(arguments):
                raise _missing(index)
            parts.append(_PRINTERS[part.letter](arguments[index], part))
            index += 1
        length += len(parts[-1])
        if length > MAX_LENGTH:
            raise _too_long()
    return "".join(parts)


def format_problem(call: Call, types: Mapping[int, Type]) -> tuple[int, str] | None:
    """What is wrong with a call of ``format`` whose text and list of arguments are written out.

    Args:
        call: Any call; another one than that has no problem.
        types: The types of all nodes by their ids.

    Returns:
        The id of the node to blame and one sentence, or None.
    """
    text = call.target
    if call.function != "format" or not isinstance(text, Literal) or type(text.value) is not str:
        return None
    if len(call.args) != 1 or not isinstance(call.args[0], ListLiteral):
        return None
    elements = call.args[0].elements
    index = 0
    try:
        for part in _parts(text.value):
            if isinstance(part, str):
                continue
            if index >= len(elements):
                raise _missing(index)
            blamed = _misfit(part.letter, elements[index], types)
            if blamed is not None:
                return blamed, _wrong(part.letter, types[blamed].name)
            index += 1
    except EvaluationError as error:
        return call.id, error.message
    if len(elements) > index:
        return call.id, f"format has {len(elements)} arguments for {index} clauses"
    return None


def _parts(text: str) -> Iterator[str | _Clause]:
    at = 0
    while (found := text.find("%", at)) >= 0:
        if found > at:
            yield text[at:found]
        if text.startswith("%", found + 1):
            yield "%"
            at = found + 2
            continue
        at = found + 1
        precision = None
        if text.startswith(".", at):
            end = at + 1
            while end < len(text) and text[end] in "0123456789":
                end += 1
            digits = text[at + 1 : end]
            # As many digits as can't be an int64 aren't worth converting.
            if not digits or len(digits.lstrip("0")) > 19 or int(digits) > MAX_INT64:
                raise EvaluationError(f"the precision after % is no number: {digits[:20]!r}", hint="write %.2f")
            precision, at = int(digits), end
        if at == len(text):
            raise EvaluationError("the format ends after %", hint="write %% for a percent sign")
        if text[at] not in _PRINTERS:
            raise EvaluationError(
                f"format knows no clause %{text[at]}", hint="use %s %d %f %e %b %o %x %X, and %% for a percent sign"
            )
        yield _Clause(text[at], precision)
        at += 1
    if at < len(text):
        yield text[at:]


def _missing(index: int) -> EvaluationError:
    return EvaluationError(f"format has no argument {index}", hint="give one list element per clause")


_TAKES: Final = {
    "s": "strings, numbers, bools, bytes, null, lists, maps, types, durations and timestamps",
    "d": "ints and uints",
    "f": "doubles",
    "e": "doubles",
    "b": "ints, uints and bools",
    "o": "ints and uints",
    "x": "ints, uints, strings and bytes",
    "X": "ints, uints, strings and bytes",
}

_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "s": _TEXTS,
    "d": _INTEGERS,
    # A string may be "NaN" or "Infinity".
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": (*_INTEGERS, "bool"),
    "o": _INTEGERS,
    "x": (*_INTEGERS, "string", "bytes"),
    "X": (*_INTEGERS, "string", "bytes"),
}


def _wrong(letter: str, name: str) -> str:
    return f"%{letter} prints {_TAKES[letter]}, not a value of type {name}"


def _misfit(letter: str, element: Expr, types: Mapping[int, Type]) -> int | None:
    """The id of the node that the clause can't print, among the element and, for ``%s``, what is written in it."""
    pending = [element]
    while pending:
        element = pending.pop()
        kind = types[element.id].kind
        if kind != "dyn" and kind not in _KINDS[letter]:
            return element.id
        if letter != "s":
            continue
        if isinstance(element, ListLiteral):
            pending.extend(reversed(element.elements))
        elif isinstance(element, MapLiteral):
            for entry in reversed(element.entries):
                pending += (entry.value, entry.key)
    return None


# Clauses


def _refused(letter: str, value: Any) -> EvaluationError:
    return EvaluationError(_wrong(letter, type_name(value)), hint="use another clause or convert the value")


def _string(value: Any, _clause: _Clause) -> str:
    _refuse_vast(value)
    return _printed(value)


def _decimal(value: Any, clause: _Clause) -> str:
    if type(value) is not int and type(value) is not UInt:
        raise _refused(clause.letter, value)
    return str(int(value))


def _double(value: Any, clause: _Clause) -> float:
    if type(value) is str and value in _NOT_NUMBERS:
        return _NOT_NUMBERS[value]
    if type(value) is not float:
        raise _refused(clause.letter, value)
    return value


def _special(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return None


def _fixed(value: Any, clause: _Clause) -> str:
    number = _double(value, clause)
    precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    if precision // 10 > _TENS_READ:
        return _NO_VERB
    special = _special(number)
    if special is not None:
        return special
    # The printer keeps the most digits in an int16 and the least in a uint8.
    most = (precision + (1 << 15)) % (1 << 16) - (1 << 15)
    least = precision % (1 << 8)
    exact = f"{abs(number):.{most}f}" if most >= 0 else format(Decimal(repr(abs(number))), "f")
    whole, _, fraction = exact.partition(".")
    fraction = fraction.rstrip("0").ljust(least, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{int(whole):,}{'.' if fraction else ''}{fraction}"


def _scientific(value: Any, clause: _Clause) -> str:
    number = _double(value, clause)
    # The precision becomes a width; digits are always six.
    width = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    if width // 10 > _TENS_READ:
        return _NO_VERB
    printed = _special(number)
    if printed is None:
        mantissa, _, exponent = f"{abs(number):.6e}".partition("e")
        sign = "-" if number < 0 else ""
        shown = f"{'-' if int(exponent) < 0 else ''}{abs(int(exponent)):02}"
        printed = f"{sign}{mantissa}×10{shown.translate(_SUPERSCRIPT)}"  # noqa: RUF001 - what upstream prints
    return printed.rjust(width % (1 << 16))


def _binary(value: Any, clause: _Clause) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) is not int and type(value) is not UInt:
        raise _refused(clause.letter, value)
    return format(int(value), "b")


def _octal(value: Any, clause: _Clause) -> str:
    if type(value) is not int and type(value) is not UInt:
        raise _refused(clause.letter, value)
    return format(int(value), "o")


def _hexadecimal(value: Any, clause: _Clause) -> str:
    if type(value) is str:
        value = value.encode("utf-8", "surrogateescape")
    if type(value) is bytes:
        text = value.hex()
        return text.upper() if clause.letter == "X" else text
    if type(value) is not int and type(value) is not UInt:
        raise _refused(clause.letter, value)
    return format(int(value), clause.letter)


_PRINTERS: Final[dict[str, Callable[[Any, _Clause], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _hexadecimal,
}


# Values inside lists and maps, which are printed so that they can be read as an expression


def _refuse_vast(value: Any) -> None:
    """One list may stand in another twice, and that one in a third; what is printed grows without the lists."""
    left = MAX_LENGTH
    pending = [value]
    while pending:
        value = pending.pop()
        kind = type(value)
        left -= len(value) if kind is str or kind is bytes else 16
        if left < 0:
            raise _too_long()
        if kind is list or kind is tuple:
            pending.extend(value)
        elif isinstance(value, Map):
            pending.extend(entry for _, entry in value.items())


def _too_long() -> LimitError:
    return LimitError(f"the text would have more than {MAX_LENGTH:,} characters", hint="print less at once")


def _printed(value: Any) -> str:
    kind = type(value)
    if kind is list or kind is tuple:
        return f"[{', '.join(map(_element, value))}]"
    if isinstance(value, Map):
        entries = sorted(((_key(key), _element(entry)) for key, entry in value.items()), key=lambda entry: entry[0])
        return f"{{{', '.join(f'{key}:{entry}' for key, entry in entries)}}}"
    if value is None:
        return "null"
    if kind is Type:
        return str(value.name)
    conversion = _STRINGS.get(type_of(value).kind)
    if conversion is None:
        raise _refused("s", value)
    return str(conversion(value))


_STRINGS: Final = {
    overload.parameters[0].kind: overload.call
    for function in CONVERSIONS
    if function.name == "string"
    for overload in function.overloads
    if overload.call is not None
}


def _element(value: Any) -> str:
    kind = type(value)
    if kind is float:
        if math.isnan(value):
            return '"NaN"'
        return f'"{"+" if value > 0 else "-"}Inf"' if math.isinf(value) else f"{value:.6f}"
    printed = _printed(value)
    if kind is str:
        return go_quoted(printed)
    if kind is bytes:
        return f"b{go_quoted(printed)}"
    if kind is Timestamp:
        return f"timestamp({go_quoted(printed)})"
    if kind is Duration:
        return f"duration({go_quoted(printed)})"
    return printed


def _key(value: Any) -> str:
    if type(value) not in (str, bool, int, UInt):
        raise EvaluationError(f"format can't print a map key of type {type_name(value)}", hint="convert the key first")
    return _element(value)


_SHORT: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def go_quoted(text: str) -> str:
    """The text as Go's ``strconv.Quote`` writes it."""
    return f'"{"".join(map(_quoted, text))}"'


def _quoted(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    # Both mean: letters, marks, numbers, punctuation, symbols, and the ASCII space.
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
