"""The language itself, without libraries, against an independent implementation: cel-expr-python (cel-cpp).

Upstream's truth is cel-go, and Go's and C++'s implementations differ in places; those are listed here with what cel-go
does. What both accept must have one value, or be an error for both.
"""

from __future__ import annotations

import datetime
import math
import os
import random
import re
from typing import Any

import pytest
from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but no py.typed

import cel_generator
from draht.cel.checker import check
from draht.cel.declarations import Environment, Library
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.folding import fold
from draht.cel.library.macros import STANDARD_MACROS
from draht.cel.library.standard import STANDARD
from draht.cel.numbers import UInt
from draht.cel.parser import parse_text
from draht.cel.program import Program
from draht.cel.types import Type
from draht.cel.values import Duration, Map, Timestamp

SEED = os.environ.get("DRAHT_FUZZ_SEED", "1")
CASES = 2_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "100000"))
CORE = Environment.of((STANDARD, Library("macros", macros=STANDARD_MACROS)))
DEVIATIONS = re.compile(
    r"string\(.*(duration|timestamp)"  # cel-go shows "1.5s", cel-cpp "1.500s"
    r"|µs|\dns|\.999999999|854775808s"  # cel-cpp doesn't know µs, and its Python values have no nanoseconds
    r"|(?=.*(duration|timestamp)).*\bint\("  # of a duration: nanoseconds in cel-go, none in cel-cpp
    r"|getMilliseconds"  # of a duration: all of it in cel-go, what is left of the second in cel-cpp
    r"|\.get\w+\([^)]"  # odd offsets of zones
    r"|double\(.*_|bool\("  # texts that only Go reads as numbers and as booleans
    r"|string\(.*(/|\*|double\()"  # infinity has another name
    r"|(?=.*\b[bB]r?['\"]).*\bin \["  # bytes are no key in cel-go
    r"|-dyn\(duration"  # a duration has a negative in cel-go
    r"|(?=.*NaN).*[<>]"  # an error in cel-go, which doesn't order what is no number; false in cel-cpp
    r"|in \[\]"  # false in cel-go whatever stands before it
    r"|(?=.*(duration|double)).*\\[0-9xXuU]"  # the same in other words
)
"""Where cel-go and cel-cpp differ; draht does what cel-go does, which test_differential shows."""
SPECIAL = {"+Inf": "inf", "-Inf": "-inf", "NaN": "nan"}
"""How cel-go and cel-cpp write the numbers that are none; on both sides, because a literal may be such a text too."""
ERROR = "error"
REFUSED = "refused"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _ours(text: str) -> Any:
    try:
        parsed = parse_text(text, CORE.macros)
        checked = check(parsed.expr, CORE, parsed.source)
        program = Program(checked, CORE, fold(checked, parsed.source))
    except CompileError:
        return REFUSED
    try:
        return _plain(program.evaluate(None))
    except EvaluationError:
        return ERROR


def _plain(value: Any) -> Any:
    """A value in a form in which both sides can be compared; the types of numbers stay apart."""
    match value:
        case bool():
            return value
        case str():
            return SPECIAL.get(value, value)
        case UInt():
            return ("uint", int(value))
        case int():
            return ("int", value)
        case float():
            return "NaN" if math.isnan(value) else value.hex()
        case Duration():
            return ("us", value.nanoseconds // 1000)
        case Timestamp():
            return ("us", value.seconds * 1_000_000 + value.nanoseconds // 1000)
        case Type():
            return ("type", value.name)
        case Map():
            return ("map", {repr(int(key) if type(key) is UInt else key): _plain(item) for key, item in value.items()})
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _theirs(environment: Any, text: str) -> Any:
    try:
        result = environment.compile(text).eval(data={})
    except RuntimeError:
        return REFUSED
    return ERROR if str(result.type()) == "ERROR" else _plain_of_cpp(result)


def _plain_of_cpp(value: Any) -> Any:
    kind = str(value.type())
    content = value.value()
    match kind.split("<")[0]:
        case "INT" | "UINT":
            return (kind.lower(), content)
        case "DOUBLE":
            return "NaN" if math.isnan(content) else content.hex()
        case "BYTES":
            return bytes(content)
        case "TIMESTAMP":
            return ("us", (content - EPOCH) // datetime.timedelta(microseconds=1))
        case "DURATION":
            return ("us", content // datetime.timedelta(microseconds=1))
        case "TYPE":
            return ("type", str(content).lower())
        case "LIST":
            return [_plain_of_cpp(item) for item in content]
        case "MAP":
            return ("map", {repr(key): _plain_of_cpp(item) for key, item in content.items()})
        case "STRING":
            return SPECIAL.get(content, content)
        case _:
            return content


def _agree(seed: str, count: int) -> None:
    environment = cel.NewEnv()
    compared = 0
    for number in range(count):
        text = cel_generator.core_expression(random.Random(f"{seed}:{number}"))
        ours, theirs = _ours(text), _theirs(environment, text)
        if DEVIATIONS.search(text) or REFUSED in (ours, theirs):
            continue
        compared += 1
        assert ours == theirs, f"reproduce: DRAHT_FUZZ_SEED={seed}, number {number}: {text}"
    assert compared > count * 0.6


def test_the_core_language_has_the_values_of_another_implementation() -> None:
    """2,000 generated expressions that both accept have one value or are an error for both."""
    _agree(SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_the_core_language_has_the_values_of_another_implementation_for_many() -> None:
    """A long run over fresh expressions finds no difference."""
    _agree(f"{SEED}-long", FUZZ_CASES)
