"""Macros: calls that the parser replaces by other syntax.

Owns what a macro is. It doesn't know any; the libraries bring theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from draht.cel.ast import Expr

__all__ = ["ANY_NUMBER", "Macro"]

ANY_NUMBER: Final = -1
"""Stands for any number of arguments."""


@dataclass(frozen=True, slots=True)
class Macro:
    """A call that is replaced.

    Args:
        name: The function's name.
        arguments: How many arguments it takes, or `ANY_NUMBER`.
        member: Called on a receiver.
        expand: Makes the replacement from a builder of nodes, the receiver and the arguments; None leaves the call.
    """

    name: str
    arguments: int
    member: bool
    expand: Callable[[Any, Expr | None, tuple[Expr, ...]], Expr | None]
