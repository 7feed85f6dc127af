"""What the comparison with upstream found, and what the libraries promise in words: named cases with their values.

They need no Go. Values are in the form of `cel_difference.typed`; an error is its kind.
"""

from __future__ import annotations

from typing import Any

import pytest

from cel_base import evaluate

TRUE = ["bool", True]
FALSE = ["bool", False]


def _text(value: str) -> list[str]:
    return ["string", value]


def _texts(*values: str) -> list[Any]:
    return ["list", [_text(value) for value in values]]


CASES: dict[str, tuple[str, Any]] = {
    # strings
    "a position counts code points": ("'a€𝄞b'.indexOf('b')", ["int", "3"]),
    "an offset behind the end finds nothing": ("'abc'.lastIndexOf('c', 5)", ["int", "-1"]),
    "nothing is found at every offset": ("'abc'.indexOf('', 9)", ["int", "3"]),
    "the position behind the last character is empty": ("'abc'.charAt(3)", _text("")),
    "a position beyond that is an error": ("'abc'.charAt(4)", ("error", "other")),
    "replacing nothing surrounds every character": ("'ab'.replace('', '-')", _text("-a-b-")),
    "replace stops at its limit": ("'aaa'.replace('a', 'b', 2)", _text("bba")),
    "split leaves the rest in the last part": ("'a,b,c'.split(',', 2)", _texts("a", "b,c")),
    "split by nothing leaves the rest in the last part": ("'abc'.split('', 2)", _texts("a", "bc")),
    "split into no parts is an empty list": ("'abc'.split('', 0)", ["list", []]),
    "trim takes Unicode's spaces, no other control characters": ("'\\u2003a\\x1c'.trim()", _text("a\x1c")),
    "case is ASCII's": ("'ÄA'.lowerAscii()", _text("Äa")),
    "quote escapes what CEL can't write": ("strings.quote('a\\n\"')", _text('"a\\n\\""')),
    # format
    "fixed groups thousands": ("'%.2f'.format([1234567.891])", _text("1,234,567.89")),
    "fixed rounds half to even": ("'%.0f|%.0f'.format([2.5, 3.5])", _text("2|4")),
    "fixed wraps a huge precision as upstream does": ("'%.256f'.format([1.5])", _text("1.5")),
    "scientific has superscripts": ("'%e'.format([1500.0])", _text("1.500000×10⁰³")),  # noqa: RUF001 - upstream's sign
    "scientific takes its precision for a width": ("'%.15e'.format([1500.0])", _text("  1.500000×10⁰³")),  # noqa: RUF001 - upstream's sign
    "a list prints as an expression": ("'%s'.format([[1.5, 'a', b'b', null]])", _text('[1.500000, "a", b"b", null]')),
    "a map prints in the order of its keys": ("'%s'.format([{'b': 1, 'a': 2}])", _text('{"a":2, "b":1}')),
    "negative numbers have a sign in hexadecimal": ("'%x'.format([-255])", _text("-ff")),
    # lists
    "sorting stops nothing that isn't in order": ("[dyn(2), dyn(1), dyn(null)].isSorted()", FALSE),
    "what has no order is passed over": ("[double('NaN'), 1.0].max() == 1.0", FALSE),
    "values of different types are passed over": ("[dyn(3), dyn('a')].max()", ["int", "3"]),
    "an empty list has no maximum": ("[].max()", ("error", "other")),
    "an empty list has a sum": ("[].sum()", ["int", "0"]),
    "sums overflow": ("[9223372036854775807, 1].sum()", ("error", "overflow")),
    "equal keys end where Go's sort leaves them": (
        "lists.range(14).sortBy(x, x % 2).map(x, string(x)).join(' ')",
        _text("8 12 2 0 4 10 6 3 7 9 5 11 1 13"),
    ),
    "includes asks a scalar, too": ("'a'.includes('a') && [1].includes(1.0) && !{'a': 1}.includes('a')", TRUE),
    "flatten takes a list that is flat": ("dyn([1, 2]).flatten() == [1, 2]", TRUE),
    "sets know numbers across types": ("sets.equivalent([dyn(1), dyn(2u)], [dyn(2.0), dyn(1), dyn(1)])", TRUE),
    # regular expressions
    "a boundary is between characters, not bytes": (r"'BΩb'.matches(r'\B')", FALSE),
    "an empty match behind a match doesn't count": ("'abbc'.findAll('b*')", _texts("", "bb", "")),
    "classes have Go's names": (r"'aΩ1'.findAll(r'\p{greek}|\p{ASCII}')", _texts("a", "Ω", "1")),
    "a negated class is negated after case is folded": ("'\\u017fa€'.find(r'(?i)\\P{ascii}')", _text("€")),
    # addresses
    "zones are refused": ("isIP('fe80::1%eth0') || isCIDR('fe80::%eth0/64')", FALSE),
    "IPv4 as IPv6 is refused": ("isIP('::ffff:1.2.3.4') || isCIDR('::ffff:1.2.3.0/24')", FALSE),
    "leading zeros are refused": ("isIP('10.0.0.01') || isCIDR('10.0.0.0/08')", FALSE),
    "a prefix keeps its host bits": ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", TRUE),
    "flags of a multicast address don't count": ("ip('ff12::1').isLinkLocalMulticast()", TRUE),
    # URLs
    "a fragment is no part of the path": ("url('http://a/b%2Fc#d').getEscapedPath()", _text("/b%2Fc")),
    "a parameter that can't be read is left out": (
        "url('http://a/?x=1&y=%zz&z=a+b;&w=a+b').getQuery() == {'x': ['1'], 'w': ['a b']}",
        TRUE,
    ),
    "bytes that are no text keep their number": ("url('http://a/?x=%ff%fe').getQuery().x[0].size()", ["int", "2"]),
    # Kubernetes' values
    "a quantity compared with a number is an error": ("dyn(quantity('1')) == 1", ("error", "no-such-overload")),
    "a number compared with a quantity isn't": ("1 == dyn(quantity('1'))", FALSE),
    "a fraction of zeros is no integer": ("quantity('1.0').isInteger()", FALSE),
    "build metadata takes no part": ("semver('1.2.3+a') == semver('1.2.3+b')", TRUE),
    "versions can be forgiven": ("semver('v01.2', true)", ["semver", "1.2.0"]),
    "no quantity is the zero of optionals": ("optional.ofNonZeroValue(quantity('0')).hasValue()", TRUE),
    "a map can't get a key twice": ("[1, 1].transformMapEntry(i, v, {v: i})", ("error", "other")),
    "the authorizer's functions are known but never reached": (
        "dyn(1).group('apps').resource('pods').check('get').allowed()",
        ("error", "no-such-overload"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_does_what_is_said(name: str) -> None:
    """Each sentence holds."""
    expression, expected = CASES[name]
    assert evaluate(expression) == expected, expression


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("'%d'.format(['a'])", "%d prints ints and uints"),
        ("'%s %s'.format(['a'])", "no argument 1"),
        ("'%s'.format(['a', 'b'])", "2 arguments for 1 clauses"),
        ("'%q'.format([1])", "no clause %q"),
        ("'%'.format([1])", "ends after %"),
        ("'%s'.format([[quantity('1')]])", "kubernetes.Quantity"),
        ("'x'.find('(')", "missing )"),
        (r"'x'.matches(r'\C')", r"\C"),
        ("'x'.find('(?P<é>a)')", "group name"),
        ("'ab'.sortBy(x, x)", "sortBy"),
        ("quantity('1').sign()", "sign"),
        ("'ab'.reverse()", "reverse"),
    ],
)
def test_what_can_be_refused_is_refused_before_it_runs(expression: str, part: str) -> None:
    """Formats, patterns and calls that can never work don't compile, and the message says what is wrong."""
    verdict, why = evaluate(expression)
    assert verdict == "refused"
    assert part in why
