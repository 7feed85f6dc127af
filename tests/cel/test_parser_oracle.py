"""Trees of expressions against those of cel-go in Kubernetes' environment.

All texts are synthetic.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pytest

from cel_trees import KUBERNETES_MACROS, random_text, tree
from draht.cel.errors import CompileError
from draht.cel.parser import parse
from oracle_client import Oracle

SEED = int(os.environ.get("DRAHT_FUZZ_SEED", "43"))
CASES = 3_000
FUZZ_CASES = int(os.environ.get("DRAHT_FUZZ_CASES", "200000"))
BATCH = 2_000


def ours(text: str) -> str | None:
    """The tree as a line, or None for a refused text."""
    try:
        return tree(parse(text, KUBERNETES_MACROS))
    except CompileError:
        return None


def _agree(oracle: Oracle, seed: int, count: int) -> None:
    rng = random.Random(seed)
    accepted = 0
    for start in range(0, count, BATCH):
        texts = [random_text(rng) for _ in range(min(BATCH, count - start))]
        answers = oracle.call_many("cel.parse", [{"expression": text} for text in texts])
        for text, answer in zip(texts, answers, strict=True):
            theirs = answer["tree"] if answer["accepted"] else None
            assert ours(text) == theirs, f"reproduce: DRAHT_FUZZ_SEED={seed}, parse({text!r}): {answer['issues']}"
            accepted += answer["accepted"]
    assert count // 4 < accepted < count, "the generator makes both expressions and other texts"


def test_trees_are_upstreams_trees(oracle: Oracle) -> None:
    """Generated texts get upstream's verdict, and its tree with the place of each node."""
    _agree(oracle, SEED, CASES)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
def test_many_trees_are_upstreams_trees(oracle: Oracle) -> None:
    """A long run over fresh texts finds no difference."""
    _agree(oracle, SEED + 1, FUZZ_CASES)


def _nested(before: str, core: str, after: str, count: int) -> str:
    return before * count + core + after * count


SHAPES: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: _nested("(", "1", ")", n),
    "lists": lambda n: _nested("[", "1", "]", n),
    "maps": lambda n: _nested("{1:", "1", "}", n),
    "calls": lambda n: _nested("f(", "1", ")", n),
    "member calls": lambda n: "a" + ".f()" * n,
    "arguments of member calls": lambda n: _nested("a.f(", "1", ")", n),
    "indices": lambda n: "a" + "[0]" * n,
    "indices in indices": lambda n: _nested("a[", "1", "]", n),
    "fields": lambda n: "a" + ".b" * n,
    "optional fields": lambda n: "a" + ".?b" * n,
    "sums": lambda n: "1" + "+1" * n,
    "products": lambda n: "1" + "*1" * n,
    "relations": lambda n: "1" + "<1" * n,
    "sums of parentheses": lambda n: _nested("1+(", "1", ")", n),
    "sums of products of parentheses": lambda n: _nested("1+1*(", "1", ")", n),
    "products, then sums": lambda n: _nested("1*1+(", "1", ")", n),
    "relations of parentheses": lambda n: _nested("1<(", "1", ")", n),
    "relations of products": lambda n: _nested("1<1+1*(", "1", ")", n),
    "parentheses to the left": lambda n: _nested("(", "1", "+1)", n),
    "choices, then": lambda n: _nested("a?(", "1", "):1", n),
    "choices, else": lambda n: "a?1:" * n + "1",
    "choices, condition": lambda n: _nested("(", "a", "?1:1)", n),
    "and": lambda n: "a" + "&&a" * n,
    "and of or": lambda n: _nested("a&&(a||", "a", ")", n),
    "not": lambda n: "!" * n + "a",
    "not of parentheses": lambda n: _nested("!(", "a", ")", n),
    "minus": lambda n: "-" * n + "a",
    "minus of parentheses": lambda n: _nested("-(", "a", ")", n),
    "folds": lambda n: _nested("[1].all(x,", "true", ")", n),
    "folds of folds": lambda n: "[1]" + ".map(x,x)" * n,
    "messages": lambda n: _nested("a{b:", "1", "}", n),
    "tests": lambda n: "has(a" + ".b" * n + ")",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nesting_ends_where_upstreams_ends(oracle: Oracle, shape: str) -> None:
    """For each way to nest, the deepest text that upstream accepts is the deepest that is accepted here."""
    make = SHAPES[shape]
    depths = [*range(60, 65), *range(80, 86), *range(122, 127), *range(246, 254), 400]
    answers = oracle.call_many("cel.parse", [{"expression": make(depth)} for depth in depths])
    theirs = {depth: answer["accepted"] for depth, answer in zip(depths, answers, strict=True)}
    assert {depth: ours(make(depth)) is not None for depth in depths} == theirs
