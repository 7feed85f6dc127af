"""A selector taken apart: the conditions that ``&&`` joins, and what each of them looks at.

For explanations. A person who asks why no device matches wants to know which condition failed, and what the devices
have instead; evaluation alone says "false". It decides nothing: the verdict is the selector's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from draht.cel.ast import Call, Expr, Identifier, Literal, Select
from draht.cel.conjuncts import conjuncts
from draht.cel.device import Device, Features, device_environment
from draht.cel.errors import CELError, CompileError, EvaluationError
from draht.cel.parser import parse_text
from draht.cel.selector import Selector, compile_selector

__all__ = ["Condition", "conditions"]

_ORDER: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_MEMBERS: Final = {"isGreaterThan": "_>_", "isLessThan": "_<_"}
_FLIPPED: Final = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_"}
_KEPT: Final = 256


@dataclass(frozen=True)
class Condition:
    """One condition of a selector.

    Args:
        text: As it is written.
        selector: The condition alone.
        relation: ``_==_``, ``_>=_`` and so on where it compares something of the device with a constant, else None.
        subject: What of the device it compares, as it is written; empty where it doesn't.
    """

    text: str
    selector: Selector
    relation: str | None = None
    subject: str = ""

    def holds(self, device: Device) -> bool | EvaluationError:
        """The answer for a device, or why there is none."""
        return self.selector.evaluate(device)

    def value(self, device: Device) -> Any:
        """What the device has where the condition looks; None if it has nothing there or nothing is compared."""
        if self._subject is None:
            return None
        try:
            return self.selector.part(self._subject).evaluate(device)
        except CELError:
            return None

    @cached_property
    def _subject(self) -> Expr | None:
        found = _comparison(self.selector.checked.expr)
        return found[1] if found else None


@lru_cache(maxsize=_KEPT)
def conditions(text: str, features: Features = Features()) -> tuple[Condition, ...]:  # noqa: B008 - it is immutable
    """The conditions of a selector in the order of the text; the selector itself where ``&&`` joins nothing.

    Raises:
        CompileError: The text is no selector.
    """
    whole = compile_selector(text, features)
    parsed = parse_text(text, device_environment(features).macros)
    found = []
    for part, _ in conjuncts(parsed.expr):
        words = " ".join(parsed.text_of(part).split())
        try:
            selector = compile_selector(words, features)
        except CompileError:
            # A part that only compiles within the whole; then the whole is the one condition.
            return (Condition(" ".join(text.split()), whole),)
        comparison = _comparison(part)
        relation, subject = comparison or (None, None)
        found.append(Condition(words, selector, relation, parsed.text_of(subject) if subject is not None else ""))
    return tuple(found)


def _comparison(expr: Expr) -> tuple[str, Expr] | None:
    """Relation and the device's side of a comparison with a constant; ``compareTo`` and its likes are seen through."""
    if not isinstance(expr, Call):
        return None
    left: Expr
    right: Expr
    if expr.target is not None and expr.function in _MEMBERS and len(expr.args) == 1:
        left, right, relation = expr.target, expr.args[0], _MEMBERS[expr.function]
    elif expr.function in _ORDER | {"_==_"} and len(expr.args) == 2:
        left, right, relation = expr.args[0], expr.args[1], expr.function
        if isinstance(left, Call) and left.function == "compareTo" and left.target is not None:
            if not (isinstance(right, Literal) and right.value == 0):
                return None
            right, left = left.args[0], left.target
    else:
        return None
    if _reads(left) and not _reads(right):
        return relation, left
    if _reads(right) and not _reads(left):
        return _FLIPPED.get(relation, relation), right
    return None


def _reads(expr: Expr) -> bool:
    """Whether it is a path into the device; anything that computes is taken for a constant only without one."""
    waiting: list[Expr] = [expr]
    while waiting:
        each = waiting.pop()
        match each:
            case Identifier():
                if each.name.lstrip(".") == "device":
                    return True
            case Select():
                waiting.append(each.operand)
            case Call():
                waiting += [*each.args, *([each.target] if each.target is not None else [])]
            case _:
                continue
    return False
