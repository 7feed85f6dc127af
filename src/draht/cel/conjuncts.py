"""An expression taken apart at ``&&``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from draht.cel.ast import Call, Comprehension, Expr
from draht.cel.folds import shape_of

__all__ = ["Conjunct", "conjuncts"]

_AND: Final = "_&&_"


class Conjunct(NamedTuple):
    """One part.

    Args:
        expr: The part.
        binds: The ``cel.bind`` around it that were looked through, the outermost first.
    """

    expr: Expr
    binds: tuple[Comprehension, ...] = ()


def conjuncts(expr: Expr, *, through_binds: bool = False) -> Iterator[Conjunct]:
    """The parts that ``&&`` joins in the order of the text; the expression itself where it joins nothing.

    Args:
        expr: The expression.
        through_binds: Look through ``cel.bind``; its name is known to the parts of what it is around only.
    """
    waiting = [Conjunct(expr)]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, Call) and node.function == _AND:
            waiting += [Conjunct(part, around) for part in reversed(node.args)]
        elif through_binds and isinstance(node, Comprehension) and shape_of(node).kind == "bind":
            waiting.append(Conjunct(node.result, (*around, node)))
        else:
            yield Conjunct(node, around)
