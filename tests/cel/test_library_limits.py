"""Hostile arguments of library functions: everything ends in bounded time and memory, with an error that says why."""

from __future__ import annotations

import pytest

from cel_base import answer
from draht.cel.errors import EvaluationError
from draht.cel.patterns import MAX_DEPTH, compiled

pytestmark = pytest.mark.timeout(60)
"""Far more than any case takes; a case that isn't bounded takes hours or all memory."""

CASES = {
    "a string that multiplies": (
        "lists.range(1000).map(x, 'aaaaaaaaaa').join()"
        f".replace('', '{'b' * 60}').replace('', '{'c' * 60}').replace('', '{'d' * 60}').size()"
    ),
    "a list that multiplies": "cel.bind(x, lists.range(900000), [x, x, x, x, x, x, x, x].flatten().size())",
    "comparing all with all": "lists.range(900000).distinct().size()",
    "comparing all with all, as lists": "sets.contains(lists.range(400000), lists.range(400000))",
    "sorting a long list": "lists.range(900000).sortBy(x, -x).size()",
    "many matches in a long text": "lists.range(10000).map(x, 'cccc').join().findAll('c.*b|c').size()",
    "a range without end": "lists.range(9223372036854775807)",
    "flattening without end": "[[1]].flatten(9223372036854775807)",
}

HARMLESS = {
    "an exponential pattern": "lists.range(10000).map(x, 'aaaa').join().matches('^(a|aa)+$')",
    "a pattern that backtracks elsewhere": "lists.range(10000).map(x, 'aaaa').join().matches('(a*)*b')",
    "a precision of a million": "'%.999999f'.format([1.0]).size()",
    "a width of a million": "'%.999999e'.format([1.0]).size()",
    "thousands of digits": f"isQuantity('{'9' * 9000}') || isSemver('{'9' * 9000}.0.0') || isIP('{'9' * 9000}')",
    "thousands of colons": f"isIP('{':' * 9000}') || isCIDR('{':' * 9000}/1')",
    "thousands of parameters": f"url('http://a/?{'a=b&' * 2000}').getQuery().size()",
    "a name of thousands of labels": f"format.dns1123Subdomain().validate('{'a-' * 4500}').hasValue()",
    "a fold over a long map": "lists.range(20000).transformMap(i, v, v).size()",
}


@pytest.mark.parametrize("name", CASES)
def test_what_can_not_be_paid_is_not_computed(name: str) -> None:
    """A result that no limit allows is refused before it is made."""
    assert answer(CASES[name]).get("error") in ("cost-limit", "other")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_looks_dangerous_is_not(name: str) -> None:
    """These have an answer, and soon."""
    assert "value" in answer(HARMLESS[name])


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * MAX_DEPTH + ")" * MAX_DEPTH,
        "(((((x{10}){10}){10}){10}){10})",
        r"\pL{1000}",
        r"(\pL{300}|\pN{300}){3}",
        "x{1001}",
        "(?P<" + "n" * 100_000,
        r"\p{" + "x" * 100_000 + "}",
    ],
)
def test_patterns_are_bounded(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """A pattern that would need too much is refused in a sentence, and nothing is written to stderr."""
    with pytest.raises(EvaluationError, match="the regular expression is not valid"):
        compiled(pattern)
    assert capfd.readouterr().err == ""
