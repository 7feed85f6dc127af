"""CEL expressions of selectors and derived attributes: they must compile, and not cost too much.

Owns how an expression's issues become field errors. Expressions are judged as new ones: what an API server of 1.37
accepts in an object that is created, which is less than what it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from draht.api.resource import DeviceSelector
from draht.cel.device import Features
from draht.cel.errors import CompileError
from draht.cel.selector import compile_derived, compile_selector
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.limits import EXPRESSION_BYTES, EXPRESSION_COST, SELECTORS
from draht.validation.lists import check_list, declare_too_many
from draht.validation.names import byte_length

__all__ = ["Expressions", "check_selectors", "declare_selectors"]

_TOO_COMPLEX = "could cost more than an expression may"
_CHEAPER = "bound what it iterates over, or compare fewer strings"


@dataclass(slots=True)
class Expressions:
    """Judges expressions and adds up what the derived attributes of a claim cost.

    Args:
        gates: The features that are on.
        stored: They are there already and were good when they came: an update that leaves them isn't refused for them.
    """

    gates: Gates
    stored: bool = False
    derived_cost: int = field(default=0)

    @property
    def _features(self) -> Features:
        return Features(
            list_attributes=self.gates.list_type_attributes,
            consumable_capacity=self.gates.consumable_capacity,
            stored=False,
        )

    def check(self, report: Report, text: str, path: str, *, derived: bool = False) -> None:
        """Judge an expression."""
        if self.stored:
            return
        if byte_length(text) > EXPRESSION_BYTES:
            report.too_long(path, EXPRESSION_BYTES)
            return
        make = compile_derived if derived else compile_selector
        try:
            cost = make(text, self._features).cost.most
        except CompileError as error:
            first = error.issues[0]
            more = f" (and {len(error.issues) - 1} more)" if len(error.issues) > 1 else ""
            message = f"{first.line}:{first.column}: {first.message}{more}"
            report.add("Invalid", path, message, hint=first.hint, picture=error.picture())
            return
        if derived:
            self.derived_cost += cost
        if cost > EXPRESSION_COST:
            report.forbidden(path, f"{_TOO_COMPLEX}: {cost:,} of {EXPRESSION_COST:,}", hint=_CHEAPER)


def check_selectors(report: Report, selectors: tuple[DeviceSelector, ...], path: str, expressions: Expressions) -> None:
    """Judge the selectors of a request or class."""

    def check(selector: DeviceSelector, place: str) -> None:
        if selector.cel is None:
            report.required(f"{place}.cel")
        else:
            expressions.check(report, selector.cel.expression, f"{place}.cel.expression")

    check_list(report, selectors, path, check, limit=SELECTORS)


def declare_selectors(report: Report, selectors: tuple[DeviceSelector, ...], path: str) -> None:
    """The declared rule of selectors: how many there may be."""
    declare_too_many(report, path, len(selectors), SELECTORS)
