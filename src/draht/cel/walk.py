"""Walking a syntax tree without Python's stack.

Owns the loop with which checker and estimator descend. An expression may nest a few hundred levels, and each level
would take several frames of a recursive walk; whoever calls draht may already be deep in its own stack.

A visit is a generator: it yields a child, is sent the child's result, and returns its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TypeAlias, TypeVar

from draht.cel.ast import Call, Comprehension, Expr, ListLiteral, MapLiteral, Select, StructLiteral

__all__ = ["Visit", "children", "descendants", "finish"]

R = TypeVar("R")

Visit: TypeAlias = Generator[Expr, R, R]
"""One node's visit: yields children, returns the result for the node."""


def finish(expr: Expr, visit: Callable[[Expr], Generator[Expr, R, R]]) -> R:
    """The result of visiting a tree from its root."""
    running = [visit(expr)]
    result: R | None = None
    while True:
        try:
            # A generator is started by sending it None, and never sent None again: results are nodes or costs.
            child = running[-1].send(result)  # type: ignore[arg-type]  # see above
        except StopIteration as stop:
            result = stop.value
            running.pop()
            if not running:
                return stop.value  # type: ignore[no-any-return]  # what a visit returns
        else:
            running.append(visit(child))
            result = None


def children(expr: Expr) -> tuple[Expr, ...]:
    """The nodes directly below a node, in the order of evaluation of a call: receiver first."""
    match expr:
        case Select():
            return (expr.operand,)
        case Call():
            return expr.args if expr.target is None else (expr.target, *expr.args)
        case ListLiteral():
            return expr.elements
        case MapLiteral():
            return tuple([part for entry in expr.entries for part in (entry.key, entry.value)])
        case StructLiteral():
            return tuple([field.value for field in expr.fields])
        case Comprehension():
            return (expr.range, expr.initial, expr.condition, expr.step, expr.result)
        case _:
            return ()


def descendants(expr: Expr) -> Iterator[Expr]:
    """The node and everything below it, parents before children, left to right."""
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children(node)))
