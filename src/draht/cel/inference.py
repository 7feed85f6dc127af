"""Which type may stand where another is wanted, and what type parameters stand for.

Owns assignability, unification and substitution. It knows types only: no expressions, no declarations. Source: cel-go
v0.29.2 ``checker/types.go`` and ``common/types/types.go``; the rules are upstream's one by one, because what an
expression is accepted as decides which overloads it may call.

A type can nest as deeply as an expression, and behind parameters far deeper, and it can hold the same type twice at
each level. So nothing here recurses, and what would take too long is refused (`TooComplex`), where upstream would go on
for as long as it takes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Final

from draht.cel.types import DYN, NULL, Type

__all__ = [
    "Substitutions",
    "TooComplex",
    "apart",
    "bounded",
    "is_dynamic",
    "is_dynamic_or_error",
    "most_general",
    "unwrapped_optional",
]

_DYNAMIC: Final = frozenset({"dyn", "any"})
_DYNAMIC_OR_ERROR: Final = frozenset({"dyn", "any", "error"})
_NULLABLE: Final = frozenset({"opaque", "object", "any", "duration", "timestamp"})
_BUILT: Final = frozenset({"opaque", "list", "map"})

_OPEN: Final = frozenset({"dyn", "any", "error", "null", "parameter"})

_LARGEST: Final = 10_000
_MOST_STEPS: Final = 1_000_000


class TooComplex(Exception):  # noqa: N818 # it says what is wrong, and the checker makes an issue of it
    """The types of an expression are too large, or take too long to compare."""


def is_dynamic(kind: Type) -> bool:
    """Whether the type is known only when the expression runs."""
    return kind.kind in _DYNAMIC


def is_dynamic_or_error(kind: Type) -> bool:
    """Whether nothing can be said against a use: the type is dynamic, or it is already wrong."""
    return kind.kind in _DYNAMIC_OR_ERROR


def unwrapped_optional(kind: Type) -> tuple[Type, bool]:
    """What an optional holds and True; any other type and False."""
    if kind.kind == "opaque" and kind.name == "optional_type" and kind.parameters:
        return kind.parameters[0], True
    return kind, False


def apart(given: Type, wanted: Type) -> bool:
    """Whether two types can't fit whatever their parameters stand for, as a look at their kinds tells."""
    return given.kind != wanted.kind and given.kind not in _OPEN and wanted.kind not in _OPEN


def bounded(kind: Type) -> Type:
    """The type itself, unless it is larger than the checker works with.

    Raises:
        TooComplex: It is.
    """
    if kind.weight > _LARGEST:
        raise TooComplex
    return kind


def most_general(left: Type, right: Type) -> Type:
    """The more general of two types that unify."""
    return left if _equal_or_less_specific(left, right) else right


def _equal_or_less_specific(left: Type, right: Type) -> bool:
    pairs = [(left, right)]
    while pairs:
        left, right = pairs.pop()
        if left.kind in _DYNAMIC or left.kind == "parameter":
            continue
        if right.kind in _DYNAMIC or right.kind == "parameter" or left.kind != right.kind:
            return False
        if left.kind in _BUILT:
            if left.name != right.name or len(left.parameters) != len(right.parameters):
                return False
            pairs.extend(zip(left.parameters, right.parameters, strict=True))
        elif left.kind != "type" and left != right:
            return False
    return True


def _takes(wanted: Type, given: Type) -> bool:
    """Whether a primitive, message or time type takes the other, as the types themselves say."""
    if wanted.nullable and given.kind == "null":
        return True
    if wanted.kind in _DYNAMIC or wanted.kind == "parameter":
        return True
    return wanted == given


def _takes_null(kind: Type) -> bool:
    return kind.kind in _NULLABLE or kind.nullable or kind == NULL


class Substitutions:
    """What type parameters stand for; grows while an expression is checked.

    Args:
        known: Parameters by name, with what they stand for.
    """

    __slots__ = ("_known", "_steps")

    def __init__(self, known: dict[str, Type] | None = None) -> None:
        self._known: dict[str, Type] = known if known is not None else {}
        self._steps = 0

    def assignable(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        """Whether all of them may stand for the wanted ones; what that says about parameters is kept if they may.

        Raises:
            TooComplex: It takes too long to find out.
        """
        if len(given) != len(wanted):
            return False
        before: list[tuple[str, Type | None]] = []
        if self._unified(list(zip(given, wanted, strict=True)), before):
            return True
        for name, old in reversed(before):
            if old is None:
                del self._known[name]
            else:
                self._known[name] = old
        return False

    def _unified(self, pairs: list[tuple[Type, Type]], before: list[tuple[str, Type | None]]) -> bool:
        # Every pair must fit, so one that doesn't ends the search. None marks a parameter whose type may become more
        # general once the pairs above it have been found to fit.
        waiting: list[tuple[Type, Type, Type | None]] = [(one, other, None) for one, other in reversed(pairs)]
        while waiting:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise TooComplex
            given, wanted, generalised = waiting.pop()
            if generalised is not None:
                general = most_general(given, wanted)
                if self._occurs_not(generalised, general):
                    self._bind(generalised, general, before)
            elif wanted.kind == "parameter" or given.kind == "parameter":
                bound = self._bound(given, wanted, before)
                if bound is None:
                    return False
                waiting.extend(bound)
            elif given.kind in _DYNAMIC_OR_ERROR or wanted.kind in _DYNAMIC_OR_ERROR:
                continue
            elif given.kind == "null" or wanted.kind == "null":
                if not _takes_null(wanted if given.kind == "null" else given):
                    return False
            elif given.kind in _BUILT:
                if given.kind != wanted.kind or given.name != wanted.name:
                    return False
                if len(given.parameters) != len(wanted.parameters):
                    return False
                parts = zip(reversed(given.parameters), reversed(wanted.parameters), strict=True)
                waiting.extend((one, other, None) for one, other in parts)
            elif given.kind == "type":
                if wanted.kind != "type":
                    return False
            elif not _takes(wanted, given):
                return False
        return True

    def _bound(
        self, given: Type, wanted: Type, before: list[tuple[str, Type | None]]
    ) -> list[tuple[Type, Type, Type | None]] | None:
        """What is left to compare when a parameter meets a type; None where they don't fit.

        Upstream first lets the wanted parameter stand for the given type; if nothing is known about it and it occurs
        within that type, it tries the other way round.
        """
        for parameter, kind in ((wanted, given), (given, wanted)):
            if parameter.kind != "parameter":
                continue
            if parameter == kind:
                return []
            known = self._known.get(parameter.name)
            if known is not None:
                return [] if known == kind else [(kind, known, parameter), (kind, known, None)]
            if self._occurs_not(parameter, kind):
                self._bind(parameter, kind, before)
                return []
        return None

    def _bind(self, parameter: Type, kind: Type, before: list[tuple[str, Type | None]]) -> None:
        before.append((parameter.name, self._known.get(parameter.name)))
        self._known[parameter.name] = kind

    def _occurs_not(self, wanted: Type, within: Type) -> bool:
        seen: set[str] = set()
        waiting = [within]
        while waiting:
            self._steps += 1
            kind = waiting.pop()
            if kind == wanted:
                return False
            if kind.kind == "parameter":
                known = self._known.get(kind.name)
                if known is not None and kind.name not in seen:
                    seen.add(kind.name)
                    waiting.append(known)
            elif kind.parameters:
                waiting.extend(kind.parameters)
        return True

    def applied(self, kind: Type, *, free_as_dyn: bool = False) -> Type:
        """The type with every parameter replaced by what it stands for; the free ones by ``dyn`` if asked to.

        Raises:
            TooComplex: The type would be too large, or it takes too long to find out.
        """
        if not kind.parameters and kind.kind != "parameter":
            return kind
        return self._applied(kind, {}, free_as_dyn=free_as_dyn)

    def all_applied(self, kinds: Iterable[Type]) -> list[Type]:
        """The types with every parameter replaced, the free ones by ``dyn``; what they share is looked at once.

        Raises:
            TooComplex: A type would be too large, or it takes too long to find out.
        """
        done: dict[int, Type] = {}
        return [self._applied(kind, done, free_as_dyn=True) for kind in kinds]

    def _applied(self, kind: Type, done: dict[int, Type], *, free_as_dyn: bool) -> Type:
        waiting = [kind]
        while waiting:
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise TooComplex
            part = waiting[-1]
            if id(part) in done:
                waiting.pop()
                continue
            if part.kind == "parameter":
                known = self._known.get(part.name)
                if known is None:
                    done[id(part)] = DYN if free_as_dyn else part
                elif id(known) in done:
                    done[id(part)] = done[id(known)]
                else:
                    waiting.append(known)
                continue
            missing = [inner for inner in part.parameters if id(inner) not in done]
            if missing:
                waiting.extend(missing)
                continue
            parts = tuple([done[id(inner)] for inner in part.parameters])
            if all(map(operator.is_, parts, part.parameters)):
                done[id(part)] = part
                continue
            done[id(part)] = bounded(Type(part.kind, part.name, parts, part.nullable))
        return done[id(kind)]
