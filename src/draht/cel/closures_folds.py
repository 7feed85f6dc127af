"""Code of comprehensions: what ``all``, ``exists``, ``exists_one``, ``map``, ``filter`` and ``cel.bind`` have become.

The shapes that the macros make have loops of their own; any other fold takes the general one, in which an error is a
value of the accumulator until something hides it. A variable lives in a slot of the frame. What ``cel.bind`` names is
computed when it is first used, or never. Source: cel-go v0.29.2 ``interpreter/interpretable.go`` (``evalFold``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, final

from draht.cel.closures_logic import Closure
from draht.cel.errors import AbortError, EvaluationError
from draht.cel.values import Map, no_such_overload, type_name

__all__ = ["UNSET", "Failure", "Slots", "bind", "every", "fold", "lazy", "mapped", "only_one", "some", "variable"]

UNSET: Final[Any] = object()
"""In the slot of a value that nobody has asked for yet."""


@final
class Failure:
    """An error that waits in a slot until the slot is read."""

    __slots__ = ("error",)

    def __init__(self, error: EvaluationError) -> None:
        self.error = error


Slots = tuple[int, int | None]
"""Slot of the loop variable, and of the second one."""


def variable(slot: int) -> Closure:
    """The loop variable."""
    return lambda frame: frame[slot]


def lazy(slot: int, initial: Closure) -> Closure:
    """What `bind` named: computed at the first use, then kept."""

    def used(frame: Any) -> Any:
        value = frame[slot]
        if value is UNSET:
            try:
                value = frame[slot] = initial(frame)
            except AbortError:
                raise
            except EvaluationError as error:
                frame[slot] = Failure(error)
                raise
        elif type(value) is Failure:
            raise value.error
        return value

    return used


def bind(slot: int, result: Closure) -> Closure:
    """``cel.bind``: the result, in which the slot is read through `lazy`."""

    def bound(frame: Any) -> Any:
        frame[slot] = UNSET
        return result(frame)

    return bound


def _elements(value: Any) -> Iterable[Any]:
    kind = type(value)
    if kind is list or kind is tuple:
        return value  # type: ignore[no-any-return]  # just compared
    if isinstance(value, Map):
        return value.keys()
    raise EvaluationError(f"can't iterate over a value of type {type_name(value)}", kind="no-such-overload")


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    kind = type(value)
    if kind is list or kind is tuple:
        return enumerate(value)
    if isinstance(value, Map):
        return value.items()
    raise EvaluationError(f"can't iterate over a value of type {type_name(value)}", kind="no-such-overload")


def _steps(frame: Any, range_: Any, slots: Slots) -> Iterable[None]:
    """Sets the variables for one element after the other."""
    first, second = slots
    if second is None:
        for element in _elements(range_):
            frame[first] = element
            yield
    else:
        for key, element in _pairs(range_):
            frame[first] = key
            frame[second] = element
            yield


def every(over: Closure, slots: Slots, predicate: Closure) -> Closure:
    """``all``: an element that fails the predicate decides, whatever errors came before it."""
    return _decided(over, slots, predicate, decisive=False)


def some(over: Closure, slots: Slots, predicate: Closure) -> Closure:
    """``exists``: an element that satisfies the predicate decides, whatever errors came before it."""
    return _decided(over, slots, predicate, decisive=True)


def _decided(over: Closure, slots: Slots, predicate: Closure, *, decisive: bool) -> Closure:
    undecided = not decisive

    def decided(frame: Any) -> bool:
        failure: EvaluationError | None = None
        for _ in _steps(frame, over(frame), slots):
            try:
                value = predicate(frame)
            except AbortError:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decisive:
                return not undecided
            if value is not undecided and failure is None:
                failure = no_such_overload("_||_" if decisive else "_&&_", value)
        if failure is not None:
            raise failure
        return undecided

    return decided


def only_one(over: Closure, slots: Slots, predicate: Closure) -> Closure:
    """``exists_one``: any error is one of the whole; of several, the last."""

    def counted(frame: Any) -> bool:
        count = 0
        failure: EvaluationError | None = None
        for _ in _steps(frame, over(frame), slots):
            value = _decision(predicate, frame)
            if value is True:
                count += 1
            elif value is not False:
                failure = value
        if failure is not None:
            raise failure
        return count == 1

    return counted


def mapped(over: Closure, slots: Slots, predicate: Closure | None, element: Closure) -> Closure:
    """``map``, ``filter`` and ``transformList``: a list of one element for each that satisfies the predicate.

    Of several errors, the last one of the predicate counts, else the first one of an element.
    """

    def collected(frame: Any) -> list[Any]:
        values = []
        failure: EvaluationError | None = None
        for _ in _steps(frame, over(frame), slots):
            if predicate is not None:
                decided = _decision(predicate, frame)
                if decided is not True:
                    failure = decided if decided is not False else failure
                    continue
            value = _attempt(element, frame)
            if type(value) is Failure:
                failure = failure or value.error
            else:
                values.append(value)
        if failure is not None:
            raise failure
        return values

    return collected


def _decision(predicate: Closure, frame: Any) -> bool | EvaluationError:
    """What a predicate says, or why it says nothing."""
    value = _attempt(predicate, frame)
    if value is True or value is False:
        return value
    return value.error if type(value) is Failure else no_such_overload("_?_:_", value)


def _attempt(closure: Closure, frame: Any) -> Any:
    try:
        return closure(frame)
    except AbortError:
        raise
    except EvaluationError as error:
        return Failure(error)


def fold(over: Closure, slots: Slots, accumulator: int, condition: Closure, step: Closure, result: Closure) -> Closure:
    """Any fold; the accumulator is read through `lazy`."""

    def folded(frame: Any) -> Any:
        frame[accumulator] = UNSET
        for _ in _steps(frame, over(frame), slots):
            if _attempt(condition, frame) is False:
                break
            frame[accumulator] = _attempt(step, frame)
        return result(frame)

    return folded
