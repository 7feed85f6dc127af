"""Code that pays for every step as it goes, for expressions whose price isn't bounded beforehand.

The same meaning as the plain closures, with the charges at the places where upstream observes a step: a path pays one
unit for its variable and one for each step that was applied, a call its price once its arguments are there. The meter
is in a slot of the frame. Source: cel-go v0.29.2 ``interpreter/runtimecost.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from draht.cel.closures_logic import Closure
from draht.cel.closures_paths import Step, check_key, index, present
from draht.cel.declarations import Overload
from draht.cel.errors import AbortError, EvaluationError
from draht.cel.tracking import QUALIFIER, call_price
from draht.cel.values import MISSING, NONE, Optional

__all__ = ["METER", "call", "charged", "path"]

METER = 1
"""The slot of the meter."""


def charged(closure: Closure, units: int) -> Closure:
    """Pays when it is through, whether it failed or not."""

    def paid(frame: Any) -> Any:
        try:
            value = closure(frame)
        except AbortError:
            raise
        except EvaluationError:
            frame[METER].add(units)
            raise
        frame[METER].add(units)
        return value

    return paid


def path(root: Closure, steps: Sequence[Step], *, bare: bool = False) -> Closure:
    """See `draht.cel.closures_paths.path`; pays for the steps, not for the root."""
    kept = tuple(steps)
    tests = kept[-1].test and not bare
    absent = False if tests else NONE

    def followed(frame: Any) -> Any:
        value = root(frame)
        optional = False
        if type(value) is Optional:
            value = value.value
            if value is MISSING:
                return absent
            optional = True
        add = frame[METER].add
        for step in kept:
            key = step.key
            if step.computed is not None:
                try:
                    key = step.computed(frame)
                    check_key(key)
                except AbortError:
                    raise
                except EvaluationError:
                    # Upstream counts the step it couldn't name, unless an optional one.
                    if not optional and not step.optional:
                        add(QUALIFIER)
                    raise
            optional = optional or step.optional
            if step.test and (tests or not optional):
                # Behind a question mark only steps that lead somewhere count.
                counts = not optional
                try:
                    found = present(value, key) is not MISSING
                except EvaluationError:
                    add(QUALIFIER * counts)
                    raise
                add(QUALIFIER * (found or counts))
                return found
            if optional:
                value = present(value, key)
                if value is MISSING:
                    return absent
                add(QUALIFIER)
                continue
            try:
                value = index(value, key)
            except EvaluationError:
                add(QUALIFIER)
                raise
            add(QUALIFIER)
        return Optional(value) if optional else value

    return followed


def call(
    function: Callable[..., Any],
    name: str,
    overloads: Sequence[Overload],
    arguments: Sequence[Closure],
    *,
    stops: bool,
) -> Closure:
    """A call that pays its price once its arguments are there.

    Args:
        function: The code.
        name: The function's name.
        overloads: Those that the checker left.
        arguments: Code of the arguments.
        stops: The first argument that fails ends the call; else all are evaluated.
    """
    kept = tuple(arguments)
    priced = tuple(overloads)

    def called(frame: Any) -> Any:
        values: list[Any] = []
        failure: EvaluationError | None = None
        for argument in kept:
            try:
                values.append(argument(frame))
            except AbortError:
                raise
            except EvaluationError as error:
                failure = failure or error
                values.append(error)
                if stops:
                    break
        result: Any = failure
        if failure is None:
            try:
                result = function(*values)
            except AbortError:
                raise
            except EvaluationError as error:
                result = failure = error
        if len(values) == len(kept):
            frame[METER].add(call_price(name, priced, values, result))
        if failure is not None:
            raise failure
        return result

    return called
