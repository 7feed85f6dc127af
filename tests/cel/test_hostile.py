"""Expressions that are made to take long, to fill memory or to break the reader end in an error, in bounded time.

"Bounded" is the time limit of a test, not a measurement: most of these would run for hours or fill the machine.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from draht.api.resource.device import Device as WireDevice
from draht.cel.device import Device, Features
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.selector import compile_selector

WIRE: dict[str, Any] = {
    "name": "d",
    "attributes": {"s": {"string": "a" * 63 + "b"}, "n": {"int": 1}, "l": {"ints": list(range(48))}},
}
DEVICE = Device.of("d", msgspec.convert(WIRE, WireDevice))
S = 'device.attributes["d"].s'
L = "device.attributes['d'].l"


def _bound(levels: int, first: str, more: str, last: str) -> str:
    """``cel.bind`` in ``cel.bind``: each variable is made from the one before it."""
    text = f"cel.bind(v0, {first}, "
    for level in range(1, levels):
        text += f"cel.bind(v{level}, {more.replace('$', f'v{level - 1}')}, "
    return text + last.replace("$", f"v{levels - 1}") + ")" * levels


def _loops(depth: int, over: str) -> str:
    text = "true"
    for level in range(depth):
        text = f"{over}.all(x{level}, {text})"
    return text


REFUSED_OR_BOUNDED = {
    "regex with nested quantifiers": f'{S}.matches("(((a*)*)*)*$")',
    "regex with exponential backtracking": f'{S}.matches("^(a|a|aa)+$")',
    "regex with many optional parts": f'{S}.matches("{"a?" * 500}{"a" * 500}")',
    "regex with nested repeats": f'{S}.matches("((((a{{1000}}){{1000}}){{1000}}){{1000}}){{1000}}")',
    "regex with deep groups": f'{S}.matches("{"(" * 2000}a{")" * 2000}")',
    "regex with a long class": f'{S}.matches("[{"a-z" * 3000}]")',
    "regex made at run time": f'{S}.matches({S}.replace("a", "(a*)*"))',
    "10 kB of conjunctions": " && ".join(["true"] * 1280),
    "10 kB of sums": "+".join(["1"] * 5000) + " == 5000",
    "10 kB of negations": "!" * 10_000 + "true",
    "10 kB of minus signs": "-" * 10_000 + "1 == 1",
    "10 kB of parentheses": "(" * 5000 + "true" + ")" * 5000,
    "10 kB of open parentheses": "(" * 10_000,
    "10 kB of lists": "[" * 5000 + "]" * 5000 + " == []",
    "10 kB of open braces": "{1:" * 3000,
    "10 kB of selections": "device" + ".a" * 5000,
    "10 kB of indices": "device" + "[0]" * 3300,
    "10 kB of conditions": "true?true:" * 1000 + "true",
    "10 kB of conditions to the left": "(" * 800 + "true" + "?true:true)" * 800,
    "10 kB of calls": "size(" * 2000 + "1" + ")" * 2000,
    "10 kB of receivers": '""' + ".trim()" * 1400 + ' == ""',
    "10 kB of one string": '"' + "a" * 10_000 + '" == ""',
    "10 kB of quotes": '"' * 9_999,
    "10 kB of digits": "1" * 10_000 + " == 1",
    "10 kB of digits in a double": "1" * 10_000 + ".0 == 1.0",
    "10 kB of digits at run time": f'int("{"1" * 9_000}" + device.driver) == 1',
    "10 kB of list elements": "[" + "1," * 5000 + "1].size() == 1",
    "10 kB of macros": "[1]" + ".map(x, x)" * 900 + " == [1]",
    "10 kB of nested binds": "".join(f"cel.bind(x,{n}," for n in range(700)) + "true" + ")" * 700,
    "nested loops over lists": _loops(7, "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"),
    "nested loops over an attribute": _loops(12, L),
    "nested loops over a range": _loops(3, "lists.range(1000)"),
    "loops that build lists": "lists.range(1000).map(a, lists.range(1000).map(b, lists.range(1000))).size() == 1",
    "a huge range": "lists.range(9223372036854775807).size() == 1",
    "a large range": "lists.range(2000000000).size() == 1",
    "a large range in a loop": "lists.range(1000).all(x, lists.range(100000).size() == 100000)",
    "a string that doubles": _bound(60, f'"{"a" * 10}"', "$ + $", '$ == ""'),
    "bytes that double": _bound(60, f'b"{"a" * 10}"', "$ + $", '$ == b""'),
    "a list that doubles": _bound(60, "[1]", "$ + $", "$.size() == 1"),
    "a list that doubles, compared": _bound(60, "[1]", "$ + $", "$ == $"),
    "a list that doubles, walked": _bound(60, "[1]", "$ + $", "$.all(x, x == 1)"),
    "a list that doubles, searched": _bound(60, "[1]", "$ + $", "2 in $"),
    "a list that doubles, in a text": _bound(60, "[1]", "$ + $", '"%s".format([$]) == ""'),
    "a list in lists": _bound(60, "[1]", "[dyn($), dyn($)].map(x, x)", "$ == [dyn(1)]"),
    "a list in lists, in a text": _bound(60, "dyn([1])", "dyn([$, $])", '"%s".format([$]) == ""'),
    "a list in lists, flattened": _bound(60, "[dyn(1)]", "[dyn($), dyn($)]", "$.flatten(100).size() == 1"),
    "maps in maps": _bound(60, "dyn({1: 1})", "dyn({1: $, 2: $})", "$ == $"),
    "a deep list, compared": _bound(120, "[1]", "[dyn($)]", "$ == $"),
    "a deep list, in a text": _bound(120, "dyn([1])", "dyn([$])", '"%s".format([$]) == ""'),
    "a list in lists, walked for its price": _bound(60, "dyn([1])", "dyn([$, $])", "$.includes(1)"),
    "a list in lists, without equal elements": _bound(60, "[dyn(1)]", "[dyn($), dyn($)]", "$.distinct().size() == 1"),
    "a text replaced by itself": _bound(7, '"0123456789"', '$.replace("", $)', "$.size() == 1"),
    "a text joined with itself": _bound(7, '"0123456789"', '$.split("").join($)', "$.size() == 1"),
    "a text formatted into itself": _bound(40, '"0123456789"', '"%s%s%s%s".format([$, $, $, $])', "$.size() == 1"),
    "a text quoted again and again": _bound(60, "'\"'", "strings.quote($)", "$.size() == 1"),
    "a number with many digits": '"%.1000000000f".format([1.0]) == ""',
    "a number with many digits, made at run time": '("%.100000" + device.driver + "00f").format([1.0]) == ""',
    "sets of large lists": "sets.contains(lists.range(100000), lists.range(100000).reverse())",
    "equivalent large lists": "sets.equivalent(lists.range(100000), lists.range(100000).reverse())",
    "distinct elements of a large list": "lists.range(300000).distinct().size() == 300000",
    "a large list sorted": "lists.range(300000).reverse().sort().size() == 300000",
    "a large list sorted by texts": "lists.range(300000).sortBy(x, string(x)).size() == 300000",
    "a large list flattened": "[lists.range(300000), lists.range(300000)].flatten().size() == 1",
    "a search in a search": "lists.range(1000).map(x, lists.range(1000).indexOf(x + 1000)).size() == 1",
    "a quantity with a large exponent": 'quantity("1e2147483647").isGreaterThan(quantity("1"))',
    "a quantity with many digits": f'quantity("{"9" * 9_000}").isGreaterThan(quantity("1"))',
    "a version with many digits": f'semver("{"9" * 9_000}.0.0").isGreaterThan(semver("1.0.0"))',
    "a double with a large exponent": 'double("1e999999999" + device.driver) > 1.0',
    "a timestamp with many digits": f'timestamp("2020-01-01T00:00:00.{"0" * 9_000}Z") > timestamp(0)',
    "a duration with many units": f'duration("{"1h" * 4_000}" + device.driver) > duration("1s")',
    "an address with many parts": f'isIP("{"1:" * 4_000}")',
    "a URL with many parameters": f'url("http://h/?{"a=1&" * 2_000}").getQuery().size() == 1',
    "a text split into characters": f'"{"a" * 9_000}".split("").map(x, "{"b" * 500}".split("")).size() == 1',
    "a text full of matches": f'"{"a" * 9_000}".findAll("a*?").map(x, x.findAll("")).size() == 1',
}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Lets the process have 1 GiB more address space than it has."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - a file of the kernel, not of a test
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", REFUSED_OR_BOUNDED)
def test_a_hostile_selector_ends_with_an_answer(name: str, little_memory: None) -> None:
    """It is refused, evaluates to an error, or evaluates; never a traceback, and neither hours nor gigabytes."""
    try:
        selector = compile_selector(REFUSED_OR_BOUNDED[name], Features())
    except CompileError as error:
        error.picture()
        return
    assert selector.cost.most >= 0
    outcome = selector.evaluate(DEVICE)
    assert isinstance(outcome, (bool, EvaluationError))


EXPENSIVE = [
    "nested loops over lists",
    "nested loops over an attribute",
    "nested loops over a range",
    "loops that build lists",
    "a large range in a loop",
    "a string that doubles",
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", EXPENSIVE)
def test_a_bomb_hits_the_cost_limit(name: str) -> None:
    """Its estimate is above the limit, and its evaluation ends at the limit."""
    selector = compile_selector(REFUSED_OR_BOUNDED[name], Features())
    outcome = selector.evaluate(DEVICE)
    assert selector.cost.most > 1_000_000
    assert isinstance(outcome, EvaluationError)
    assert outcome.kind == "cost-limit"
