"""What is an expression, what it means before types are known, and what a person is told where it is none."""

from __future__ import annotations

import textwrap

import pytest

from cel_trees import ALL_MACROS, tree
from draht.cel.ast import Call, Expr, Literal
from draht.cel.errors import CompileError
from draht.cel.numbers import UInt
from draht.cel.parser import MOST_CODE_POINTS, parse, parse_text


def _read(text: str) -> Expr:
    return parse(text, ALL_MACROS)


def _refusal(text: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        parse(text, ALL_MACROS)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0x7fffffffffffffff", 2**63 - 1),
        ("-0x8000000000000000", -(2**63)),
        ("0007", 7),
        ("18446744073709551615u", UInt(2**64 - 1)),
        ("0xFFU", UInt(255)),
        ("1.5e-3", 0.0015),
        (".5", 0.5),
        ("1e-400", 0.0),
        ("true", True),
        ("null", None),
        ('"a\\n\\x41\\u00e9\\U0001F600\\101"', "a\nAé😀A"),
        ("'''it's'''", "it's"),
        ('"""a\r\nb\rc"""', "a\nb\nc"),
        (r'r"\d+\."', r"\d+\."),
        (r"R'''\'''", "\\"),
        ("b'é'", "é".encode()),
        (r"b'\xff\377\n'", b"\xff\xff\n"),
        (r"br'\xff'", rb"\xff"),
        ("''", ""),
        ("''''''", ""),
    ],
)
def test_a_literal_has_the_value_it_is_written_with(text: str, value: object) -> None:
    """Numbers, strings and bytes in all their forms."""
    literal = _read(text)
    assert isinstance(literal, Literal)
    assert (literal.value, type(literal.value)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775808",
        "-9223372036854775809",
        "--9223372036854775808",
        "0x8000000000000000",
        "18446744073709551616u",
        "1e400",
        "-1e400",
        "1" * 5000,
        r'"\ud800"',
        r'"\U00110000"',
        r"b'\u0041'",
        r'"\q"',
        r'"\8"',
        "'\\x4'",
        '"a\nb"',
        '"a',
        '"""a"',
        "0x",
        "1u1",
        'rb"x"',
    ],
)
def test_a_literal_that_has_no_value_is_refused(text: str) -> None:
    """Overflow, broken escapes and missing quotes."""
    assert len(_refusal(text).issues) == 1


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a || b && c", "a || (b && c)"),
        ("a < b == c", "(a < b) == c"),
        ("a ? b : c ? d : e", "a ? b : (c ? d : e)"),
        ("-a.b[0] + 1", "(-((a.b)[0])) + 1"),
        ("a && b && c && d", "(a && b) && (c && d)"),
        ("a || b || c", "(a || b) || c"),
        ("!!a", "a"),
        ("---a", "-a"),
        ("--1", "1"),
        ("!a in b", "(!a) in b"),
        ("[1, 2,]", "[1,2]"),
        ("{,}", "{}"),
        ("{a ? b : c : d}", "{(a ? b : c) : d}"),
        ("a // b\n + c", "a+c"),
    ],
)
def test_operators_bind_as_upstream_binds_them(text: str, same: str) -> None:
    """The tree is that of the text with all parentheses written; places aside."""
    strip = str.maketrans("", "", "0123456789")
    assert tree(_read(text)).translate(strip) == tree(_read(same)).translate(strip)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "a.",
        "a..b",
        "a.in",
        "f(1,)",
        "{a:}",
        "{a}",
        "[1,,2]",
        "()",
        "a[]",
        "-!a",
        "a ? b",
        "a ? b ? c : d : e",
        "a.?b(c)",
        "a.`b`(c)",
        "`a`",
        "a.`b",
        "if",
        "if(1)",
        "a(b",
        "a)",
        "[)",
        "a{b}",
        "a{1: 2}",
        "a.b(c){}",
        "a.1",
        "@",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    """What upstream's grammar doesn't have."""
    assert _refusal(text).issues


@pytest.mark.parametrize(
    "text", ["a.if", "a.as(b)", "if{}", "a.`b-c/d e.f`", "a{`b-c`: 1}", ".a.b", "a.?b[?c]", "1.e5"]
)
def test_odd_texts_are_expressions(text: str) -> None:
    """What upstream's grammar has, surprising as it may be."""
    _read(text)


def test_the_whole_text_may_be_long_but_not_too_long() -> None:
    """Upstream's bound on code points holds."""
    _read(" " * (MOST_CODE_POINTS - 1) + "a")
    assert "100001 code points" in _refusal(" " * MOST_CODE_POINTS + "a").message


def test_a_node_can_be_shown_as_it_was_written() -> None:
    """The text of a node, of a call that a macro replaced, and of nothing for what only the expansion has."""
    parsed = parse_text('( a.b >= 1 )&& [1].all( x , x>0) && !c.f("é", -1)[ 0 ]', ALL_MACROS)
    expr = parsed.expr
    assert isinstance(expr, Call)
    shown = set()
    todo: list[Expr] = [expr]
    while todo:
        node = todo.pop()
        shown.add(parsed.text_of(node))
        if isinstance(node, Call):
            todo += [*node.args, *([node.target] if node.target else [])]
    assert shown >= {"a.b >= 1", "[1].all( x , x>0)", '!c.f("é", -1)[ 0 ]', 'c.f("é", -1)', "-1", '"é"', "1", "c"}


PICTURES = {
    "words for operators": (
        'device.driver == "a" and x',
        """
        1:22: an operator was expected, not and
          | device.driver == "a" and x
          |                      ^
          hint: write && instead of and
        """,
    ),
    "one sign": (
        "a = b & c",
        """
        1:3: = is not an operator
          | a = b & c
          |   ^
          hint: compare with ==
        1:7: & is not an operator
          | a = b & c
          |       ^
          hint: write && for "and"
        """,
    ),
    "several errors": (
        "f(1 +, 2) &&\n  [if, 3 4, {1}] ||\n  (a",
        """
        1:6: a value was expected, not ,
          | f(1 +, 2) &&
          |      ^
        2:4: if is a reserved word and can't name a variable or function
          |   [if, 3 4, {1}] ||
          |    ^
          hint: another name is needed
        2:10: an operator was expected, not 4
          |   [if, 3 4, {1}] ||
          |          ^
        2:15: a map has keys and values: a colon was expected
          |   [if, 3 4, {1}] ||
          |               ^
          hint: write {key: value}
        3:3: ( is never closed
          |   (a
          |   ^
          hint: close it with )
        """,
    ),
    "has": (
        'has(device.attributes["a"])',
        """
        1:22: has() asks for a field: its argument must end in .name
          | has(device.attributes["a"])
          |                      ^
          hint: a key that isn't a name is asked for with "key" in map
        """,
    ),
    "a loop variable": (
        "[1].all(x.y, true)",
        """
        1:10: the first argument names the loop variable and must be a plain name
          | [1].all(x.y, true)
          |          ^
          hint: write it like list.all(x, x > 0)
        """,
    ),
    "an escape": (
        'a.matches("\\d+")',
        """
        1:12: \\d is not an escape
          | a.matches("\\d+")
          |            ^
          hint: write \\\\ for one backslash, or a raw string: r"..."
        """,
    ),
    "wide characters": (
        '"日本" + ;',
        """
        1:8: ; can't stand here
          | "日本" + ;
          |          ^
          hint: one expression is one condition; join several with &&
        """,
    ),
    "not": (
        "not a",
        """
        1:5: an operator was expected, not a
          | not a
          |     ^
          hint: write ! instead of not
        """,
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_person_sees_what_is_wrong_and_where(name: str) -> None:
    """Each issue has its line, a caret under its column and, where one is known, the next step."""
    text, picture = PICTURES[name]
    assert _refusal(text).picture() == textwrap.dedent(picture).strip()
