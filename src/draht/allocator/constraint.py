"""Constraints between the devices of a claim: an attribute that all must have in common, or none may share.

Owns what is equal to what, and the tables that turn a constraint into bit masks over a row. Values are compared by type
and content; versions as strings, as upstream does. With list attributes a value is a set: a match needs an element that
all devices have, distinct devices have no element in common. Without the feature a list is a value of unknown type,
which upstream accepts alone only (and after which distinctAttribute still accepts others).

It doesn't know how the search goes; it is told one device after the other through immutable states.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from draht.api.resource import DeviceAttribute

__all__ = ["ABSENT", "Constraint", "ConstraintKind", "ConstraintTable", "elements", "pattern"]

ABSENT = -1
"""In a pattern: the device doesn't have the attribute, or (with list attributes) none of a known type."""


class ConstraintKind(Enum):
    """What a constraint asks for."""

    MATCH = "matchAttribute"
    DISTINCT = "distinctAttribute"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint of a claim.

    Args:
        kind: Match or distinct.
        attribute: Fully qualified name.
        requests: References it is about; empty means all requests of the claim.
    """

    kind: ConstraintKind
    attribute: str
    requests: frozenset[str]

    def applies(self, reference: str) -> bool:
        """Whether it is about the devices of ``request`` or ``request/subrequest``."""
        return not self.requests or reference in self.requests or reference.partition("/")[0] in self.requests


def elements(attribute: DeviceAttribute, lists: bool) -> tuple[tuple[str, Any], ...]:
    """The typed elements of a value; one for a scalar, none for a type that isn't known."""
    scalars: tuple[tuple[str, Any], ...]
    if lists:
        for kind, values in (
            ("int", attribute.ints),
            ("bool", attribute.bools),
            ("string", attribute.strings),
            ("version", attribute.versions),
        ):
            if values:
                return tuple((kind, value) for value in values)
        scalars = (("int", attribute.int_), ("bool", attribute.bool_))
        scalars += (("string", attribute.string), ("version", attribute.version))
    else:
        scalars = (("string", attribute.string), ("int", attribute.int_))
        scalars += (("bool", attribute.bool_), ("version", attribute.version))
    for kind, value in scalars:
        if value is not None:
            return ((kind, value),)
    return ()


def pattern(values: Sequence[Any], lists: bool) -> tuple[Any, ...]:
    """For each device `ABSENT` or the numbers of its elements, numbered as they are met.

    Args:
        values: A column of `Pool.attribute`; of a pair the qualified attribute counts.
        lists: Whether list attributes are on.
    """
    texts = _texts(values)
    if texts is not None:
        first = {text: (number,) for number, text in enumerate(dict.fromkeys(texts))}
        return tuple([first[text] for text in texts])
    numbers: dict[tuple[str, Any], int] = {}
    result: list[Any] = []
    for value in values:
        attribute = value[0] if isinstance(value, tuple) else value
        found = () if attribute is None else elements(attribute, lists)
        if attribute is None or (lists and not found):
            result.append(ABSENT)
        else:
            result.append(tuple(sorted({numbers.setdefault(element, len(numbers)) for element in found})))
    return tuple(result)


def _texts(values: Sequence[Any]) -> list[str] | None:
    """The values where all are plain strings, the usual case."""
    texts = []
    for value in values:
        # A list beside the string, which no API server accepts, is what counts where lists are on.
        if (
            value is None
            or isinstance(value, tuple)
            or value.string is None
            or value.ints
            or value.bools
            or value.strings
        ):
            return None
        if value.versions or value.int_ is not None or value.bool_ is not None:
            return None
        texts.append(value.string)
    return texts


@final
class ConstraintTable:
    """A constraint over the positions of a row, as masks.

    A *source* is where values come from: the devices' own attributes are one, every derived attribute that shadows them
    is another. Nearly always there is one source.

    The state of a constraint is immutable and hashable. With one source and pairwise comparison it is the mask of
    positions that are still allowed: a chosen device narrows it to ``state & share[position]`` (match) or
    ``state & ~share[position]`` (distinct). Otherwise it is opaque; use `allowed` and `after`, which work for all.

    Attributes:
        constraint: What it asks for.
        match: Whether all must share a value, rather than none.
        initial: The state before the first device.
        simple: One source and pairwise: states are masks.
        pairwise: Whether comparing with each chosen device alone is enough; not so where a match has to find an element
            common to all in lists.
        ordered: Whether the order in which devices are chosen may matter (values of unknown type under
            distinctAttribute); everything that skips by symmetry has to keep away then.
        share: For one source, by position: the mask of positions with an element in common, prepared so that the rules
            above are right for unknown types too.
    """

    __slots__ = (
        "_elements",
        "_holders",
        "_present",
        "_unknown",
        "constraint",
        "initial",
        "match",
        "ordered",
        "pairwise",
        "share",
        "simple",
    )

    initial: Hashable

    def __init__(self, constraint: Constraint, sources: Sequence[Sequence[Any]]) -> None:
        """Make the tables.

        Args:
            constraint: What it asks for.
            sources: For each source a pattern; equal elements have equal numbers in all of them.
        """
        self.constraint = constraint
        self.match = constraint.kind is ConstraintKind.MATCH
        holders: list[dict[int, int]] = []
        present: list[int] = []
        unknown: list[int] = []
        longest = 1
        for values in sources:
            masks: dict[int, int] = {}
            here = odd = 0
            bit = 1
            for value in values:
                if value != ABSENT:
                    here |= bit
                    if not value:
                        odd |= bit
                    elif len(value) > longest:
                        longest = len(value)
                    for number in value:
                        masks[number] = masks.get(number, 0) | bit
                bit <<= 1
            holders.append(masks)
            present.append(here)
            unknown.append(odd)
        self._elements = tuple(tuple(values) for values in sources)
        self._holders = tuple(holders)
        self._present = tuple(present)
        self._unknown = tuple(unknown)
        self.pairwise = not (self.match and longest > 1)
        self.simple = self.pairwise and len(sources) == 1
        self.ordered = not self.match and any(unknown)
        self.share: tuple[int, ...] = ()
        if self.simple:
            cache: dict[Any, int] = {}
            share = []
            for value in self._elements[0]:
                mask = cache.get(value)
                if mask is None:
                    mask = cache[value] = self._sharing(value, 0)
                share.append(mask)
            self.share = tuple(share)
            self.initial = present[0]
        elif self.pairwise:
            self.initial = tuple(present)
        else:
            self.initial = None

    def numbers(self, source: int) -> tuple[tuple[int, ...], ...]:
        """By position, the numbers of a value's elements; none where it is missing or of unknown type."""
        return tuple([() if value == ABSENT else value for value in self._elements[source]])

    def allowed(self, state: Hashable, source: int) -> int:
        """The mask of positions that may be chosen next for a request with this source."""
        if isinstance(state, int):
            return state
        if isinstance(state, tuple):
            mask = state[source]
            assert isinstance(mask, int)
            return mask
        if state is None:
            return self._present[source]
        assert isinstance(state, frozenset)
        holders = self._holders[source]
        mask = 0
        for number in state:
            mask |= holders.get(number, 0)
        return mask

    def after(self, state: Hashable, source: int, position: int) -> Hashable:
        """The state after a device that was allowed has been chosen."""
        if isinstance(state, int):
            return state & self.share[position] if self.match else state & ~self.share[position]
        value = self._elements[source][position]
        if isinstance(state, tuple):
            if self.match:
                return tuple(mask & self._sharing(value, target) for target, mask in enumerate(state))
            return tuple(mask & ~self._sharing(value, target) for target, mask in enumerate(state))
        if state is None:
            return frozenset(value)
        assert isinstance(state, frozenset)
        return state.intersection(value)

    def lacks(self, source: int) -> int:
        """The mask of positions whose device can't be chosen at all, for want of the attribute."""
        return ((1 << len(self._elements[source])) - 1) & ~self._present[source]

    def _sharing(self, value: Any, target: int) -> int:
        if value == ABSENT:
            return 0
        # After any device, one of unknown type is refused by both kinds.
        mask = 0 if self.match else self._unknown[target]
        holders = self._holders[target]
        for number in value:
            mask |= holders.get(number, 0)
        return mask
