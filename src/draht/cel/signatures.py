"""The signature of an overload where it is called, and how a call without one is described.

Owns the fresh type parameters that each call gets, and the words for operators. It doesn't decide whether a signature
fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, final

from draht.cel.declarations import Overload
from draht.cel.inference import Substitutions
from draht.cel.types import Type, parameter

__all__ = ["Signatures", "misfit"]

_OPERATORS: Final = {
    "_+_": "+",
    "_-_": "-",
    "_*_": "*",
    "_/_": "/",
    "_%_": "%",
    "_<_": "<",
    "_<=_": "<=",
    "_>_": ">",
    "_>=_": ">=",
    "_==_": "==",
    "_!=_": "!=",
    "@in": "in",
    "_[_]": "[]",
    "_[?_]": "[?]",
    "!_": "!",
    "-_": "-",
    "_?_:_": "?:",
}


@lru_cache(maxsize=4096)
def _parameters_of(parameters: tuple[Type, ...], result: Type) -> tuple[str, ...]:
    found: dict[str, None] = {}
    waiting = [result, *reversed(parameters)]
    while waiting:
        kind = waiting.pop()
        if kind.kind == "parameter":
            found[kind.name] = None
        waiting.extend(kind.parameters)
    return tuple(found)


@final
class Signatures:
    """Makes the signatures of one expression's calls."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made = 0

    def fresh(self) -> Type:
        """A type parameter that nothing else uses; no declaration's name of one begins with a digit."""
        self._made += 1
        return parameter(f"{self._made}")

    def of(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """Types of the arguments and of the result, with type parameters of their own."""
        names = _parameters_of(overload.parameters, overload.result)
        if not names:
            return overload.parameters, overload.result
        fresh = Substitutions({name: self.fresh() for name in names})
        return tuple([fresh.applied(kind) for kind in overload.parameters]), fresh.applied(overload.result)


def misfit(function: str, given: Sequence[Type], *, member: bool) -> str:
    """That no signature of the function takes these types, in a sentence."""
    names = [kind.for_people() for kind in given]
    sign = _OPERATORS.get(function)
    if sign is not None:
        return f"{sign} can't be applied to {' and '.join(names)}"
    receiver = f"{names.pop(0)}." if member else ""
    return f"{receiver}{function}({', '.join(names)}) doesn't exist"
