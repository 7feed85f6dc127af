"""What macros become, and what they refuse."""

from __future__ import annotations

import pytest

from cel_trees import ALL_MACROS, KUBERNETES_MACROS, tree
from draht.cel.ast import Call, Comprehension, Select
from draht.cel.errors import CompileError
from draht.cel.macros import ACCUMULATOR, MOST_NODES, UNUSED_VARIABLE
from draht.cel.parser import parse


def _without_places(text: str) -> str:
    return "".join(each for each in tree(parse(text, ALL_MACROS)) if not each.isdigit())


def test_has_asks_for_a_field() -> None:
    """``has(a.b)`` is a selection that tests."""
    test = parse("has(a.b)", ALL_MACROS)
    assert isinstance(test, Select)
    assert (test.field, test.test) == ("b", True)
    assert isinstance(parse("has(has(a.b).c)", ALL_MACROS), Select)


@pytest.mark.parametrize("name", ["all", "exists", "exists_one", "map", "filter"])
def test_a_macro_over_a_list_is_a_fold(name: str) -> None:
    """The loop variable is the one that was written, and what is collected has a name that nobody can write."""
    fold = parse(f"[1].{name}(x, x > 0)", ALL_MACROS)
    assert isinstance(fold, Comprehension)
    assert (fold.variable, fold.second, fold.accumulator) == ("x", None, ACCUMULATOR)


@pytest.mark.parametrize("name", ["all", "exists", "existsOne", "exists_one", "transformList", "transformMap"])
def test_a_macro_with_two_variables_has_both(name: str) -> None:
    """Index and value, or key and value."""
    fold = parse(f"a.{name}(k, v, v > k)", ALL_MACROS)
    assert isinstance(fold, Comprehension)
    assert (fold.variable, fold.second) == ("k", "v")


def test_a_bound_value_is_a_fold_over_nothing() -> None:
    """``cel.bind`` gives a value a name."""
    fold = parse("cel.bind(x, 1 + 2, x * x)", ALL_MACROS)
    assert isinstance(fold, Comprehension)
    assert (fold.variable, fold.accumulator) == (UNUSED_VARIABLE, "x")
    assert isinstance(parse("other.bind(x, 1, x)", ALL_MACROS), Call)
    assert isinstance(parse("cel.bind(x, 1, x)", KUBERNETES_MACROS), Call)


def test_an_optional_value_is_asked_and_taken() -> None:
    """``optMap`` writes its receiver twice, with ids of their own."""
    chosen = parse("a.?b.optMap(v, v + 1)", ALL_MACROS)
    assert isinstance(chosen, Call)
    present, value, nothing = chosen.args
    assert isinstance(present, Call)
    assert isinstance(nothing, Call)
    assert (chosen.function, present.function, nothing.function) == ("_?_:_", "hasValue", "optional.none")
    assert isinstance(value, Call)
    assert value.function == "optional.of"


def test_filter_and_map_are_a_map_with_three_arguments() -> None:
    """``map`` with a condition takes what the condition lets through."""
    assert _without_places("[1].map(x, x > 0, x)") == _without_places("[1].filter(x, x > 0)")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("has(a)", 5),
        ("has(a[0])", 6),
        ("[1].all(x.y, true)", 10),
        ("[1].map(1, true)", 9),
        ("[1].filter(__result__, true)", 12),
        ("a.all(x, x, true)", 10),
        ("a.transformList(x, 1, true)", 20),
        ("a.optMap(1, 2)", 10),
        ("a.optFlatMap(a.b, 2)", 15),
        ("cel.bind(1, 2, 3)", 10),
    ],
)
def test_a_macro_refuses_what_it_cannot_use(text: str, place: int) -> None:
    """The issue points at the argument and says how to write it."""
    with pytest.raises(CompileError) as caught:
        parse(text, ALL_MACROS)
    (issue,) = caught.value.issues
    assert (issue.column, issue.hint is not None) == (place, True)


@pytest.mark.parametrize("text", ["all(x, true)", "a.has(b)", "a.map(x)", "a.existsOne(x, true)", "a.optMap(x, 1, 2)"])
def test_other_calls_stay_calls(text: str) -> None:
    """A name alone doesn't make a macro: the receiver and the number of arguments must fit."""
    assert isinstance(parse(text, ALL_MACROS), Call)


def test_macros_that_double_end() -> None:
    """Each ``optMap`` writes its receiver twice; what would have too many nodes is refused."""
    parse("a" + ".optMap(x, x)" * 10, ALL_MACROS)
    with pytest.raises(CompileError, match="too large once its macros are expanded"):
        parse("a" + ".optMap(x, x)" * 20, ALL_MACROS)
    assert MOST_NODES == 1 << 16
