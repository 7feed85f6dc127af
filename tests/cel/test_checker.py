"""What the checker says about an expression besides its type: everything that is wrong, where, and in bounded time."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import pytest

from cel_hostile import DEEP
from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.device import Features, device_environment, input_size
from draht.cel.errors import CompileError
from draht.cel.folding import fold
from draht.cel.parser import parse
from draht.cel.reference import Checked
from draht.cel.source import Source
from draht.cel.validators import validate
from draht.cel.walk import descendants

FEATURES = Features()
ENVIRONMENT = device_environment(FEATURES)


def _checked(text: str) -> Checked:
    source = Source(text)
    checked = check(parse(text, ENVIRONMENT.macros), ENVIRONMENT, source)
    validate(checked, ENVIRONMENT, source)
    fold(checked, source)
    estimate(checked, input_size(FEATURES))
    return checked


def _issues(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(CompileError) as refused:
        _checked(text)
    return [(issue.message, issue.line, issue.column) for issue in refused.value.issues]


ISSUES = [
    ("foo", [("'foo' is not declared", 1, 1)]),
    ("foo.bar", [("'foo' is not declared", 1, 1)]),
    ("foo(1)", [("function 'foo' is not declared", 1, 4)]),
    ("device.foo", [("kubernetes.DRADevice has no field 'foo'", 1, 7)]),
    ("device.driver.foo", [("string has no fields", 1, 14)]),
    ("device.capacity['a'].b.c", [("kubernetes.Quantity has no fields", 1, 23)]),
    ("1 + 'a'", [("+ can't be applied to int and string", 1, 3)]),
    ("!1", [("! can't be applied to int", 1, 1)]),
    ("device.driver.startsWith(1)", [("string.startsWith(int) doesn't exist", 1, 25)]),
    ("size(1)", [("size(int) doesn't exist", 1, 5)]),
    ("1 && 'a'", [("bool is needed here, not int", 1, 1), ("bool is needed here, not string", 1, 6)]),
    ("[1].filter(x, x)", [("?: can't be applied to int and list(int) and list(int)", 1, 11)]),
    ("1.all(x, x)", [("only a list or a map can be gone through, not int", 1, 1)]),
    (
        "[1, 'a', 2u]",
        [("all elements must have one type; int stands before this string", 1, 5)],
    ),
    ("[?1]", [("optional_type(int) is needed here, not int", 1, 3)]),
    ("duration('1d')", [("'d' is no unit of a duration", 1, 10)]),
    ("a ==\n b.c &&\n device.d", [("'a' is not declared", 1, 1), ("'b' is not declared", 2, 2)]),
    ("cel.bind(t, int, t == int)", [("'t' stands for a type, which no variable can", 1, 9)]),
    ("foo{}", [("'foo' is not declared", 1, 4)]),
    ("google.protobuf.Int64Value{a: 1}", [("google.protobuf.Int64Value has no field 'a'", 1, 29)]),
]


@pytest.mark.parametrize(("text", "expected"), ISSUES, ids=[text for text, _ in ISSUES])
def test_everything_that_is_wrong_is_said_with_its_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    """All issues come at once, in the order of the text, each with line and column."""
    found = _issues(text)
    assert found[: len(expected)] == expected


def test_one_mistake_is_said_once() -> None:
    """What depends on a part that is wrong isn't wrong as well."""
    assert [issue[0] for issue in _issues("foo.bar[1] + foo2.x('a') > 1 && !device.driver")] == [
        "'foo' is not declared",
        "'foo2' is not declared",
        "function 'x' is not declared",
        "! can't be applied to string",
    ]


def _bound(count: int, value: str) -> str:
    return "".join(f"cel.bind(a{n}, {value.replace('#', f'a{n - 1}')}, " for n in range(count))


def _doubling_values() -> str:
    return f"cel.bind(a0, {{1: 1}}, {_bound(90, '{#: #}')[len('cel.bind(a0, {a-1: a-1}, ') :]}1{')' * 90}"


def _doubling_parameters() -> str:
    equal = " && ".join(f"a{n} == {{a{n + 1}: a{n + 1}}}" for n in range(99))
    return _bound(100, "{}") + equal + ")" * 100


def _doubling_comparisons() -> str:
    variables = "".join(f"cel.bind(a{n}, {{}}, cel.bind(b{n}, {{}}, " for n in range(55))
    equal = [f"{x}{n} == {{{x}{n + 1}: {x}{n + 1}}}" for n in range(54) for x in "ab"]
    return variables + " && ".join([*equal, "a0 == b0"]) + ")" * 110


def _deep_parameters() -> str:
    equal = " && ".join(f"a{n} == {'[' * 100}a{n + 1}{']' * 100}" for n in range(35))
    return _bound(36, "[]") + equal + ")" * 36


HOSTILE = {
    **DEEP,
    "doubling values": _doubling_values(),
    "doubling parameters": _doubling_parameters(),
    "doubling comparisons": _doubling_comparisons(),
    "deep parameters": _deep_parameters(),
    "deep comparisons": " && ".join([f"{'[' * 200}{']' * 200} == {'[' * 200}1{']' * 200}"] * 12),
    "many parameters": " && ".join(["[] == []"] * 850),
    "many overloads": "[" + ", ".join(["dyn(1) < dyn(1)"] * 570) + "]",
    "mixed list": "[" + ", ".join(["[]", "'a'"] * 1100) + "]",
    "many unknown names": "[" + ", ".join(f"a{n}" for n in range(1200)) + "]",
    "unknown function of deep": "f(" * 120 + "foo" + ")" * 120,
}


@pytest.fixture
def little_stack() -> Iterator[None]:
    """Nearly no stack is left, as when the caller is deep in its own."""
    depth = len(inspect.stack(0))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 120)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_expression_is_judged_in_bounded_time_and_stack(text: str, little_stack: None) -> None:
    """Checking, validating, folding and estimating end with a result or with issues, whatever the expression."""
    assert len(text) <= 10 * 1024
    try:
        checked = _checked(text)
    except CompileError:
        return
    assert all(node.id in checked.types for node in descendants(checked.expr))
