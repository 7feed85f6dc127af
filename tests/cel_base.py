"""Evaluates expressions without a device in Kubernetes' base environment, and compares with what upstream says.

Owns what counts as a difference between two answers: the verdict, both ends of the estimated cost, the value with its
type or the kind of the error, and the actual cost. It doesn't know where expressions come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cel_difference import sorted_typed, typed
from cel_kinds import kind_of_upstream
from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.declarations import Environment
from draht.cel.errors import CompileError, EvaluationError
from draht.cel.folding import fold
from draht.cel.library.kubernetes import BASE, BINDINGS
from draht.cel.parser import parse_text
from draht.cel.program import Program
from draht.cel.validators import validate
from draht.cel.values import Map
from oracle_client import Oracle

__all__ = ["LIMIT", "answer", "ask", "differences", "evaluate"]

LIMIT: Final = 1_000_000
_ENVIRONMENT: Final = Environment.of((*BASE, BINDINGS))
_NO_INPUT: Final = Map({})


def answer(expression: str) -> dict[str, Any]:
    """What draht says, in the form of the oracle's ``cel.base``."""
    try:
        parsed = parse_text(expression, _ENVIRONMENT.macros)
        checked = check(parsed.expr, _ENVIRONMENT, parsed.source)
        validate(checked, _ENVIRONMENT, parsed.source)
        constants = fold(checked, parsed.source)
    except CompileError as refused:
        return {"refused": str(refused)}
    cost = estimate(checked, lambda path: None)
    program = Program(checked, _ENVIRONMENT, constants)
    value, units = program.measure(_NO_INPUT, LIMIT)
    found = {"least": cost.least, "most": cost.most, "cost": units}
    if isinstance(value, EvaluationError):
        return {**found, "error": value.kind, "message": value.message}
    return {**found, "value": sorted_typed(typed(value)), "plain": sorted_typed(typed(program.evaluate(_NO_INPUT)))}


def evaluate(expression: str) -> Any:
    """The value of an expression in the form of `typed`, or ``("error", kind)``, or ``("refused", why)``."""
    found = answer(expression)
    if "refused" in found:
        return ("refused", found["refused"])
    return ("error", found["error"]) if "error" in found else found["value"]


def ask(oracle: Oracle, expressions: Sequence[str]) -> list[dict[str, Any]]:
    """What upstream says, one answer for each expression."""
    answers = oracle.call("cel.base", deadline=300, expressions=list(expressions))
    assert isinstance(answers, list)
    return answers


def differences(expression: str, theirs: Mapping[str, Any]) -> list[str]:
    """In what draht's answer differs from upstream's, one line each."""
    ours = answer(expression)
    if ("refused" in ours) != ("refused" in theirs):
        return [f"verdict: draht {ours.get('refused', 'yes')}, upstream {theirs.get('refused', 'yes')}"]
    if "refused" in ours:
        return []
    found = [
        f"{name} estimated cost: draht {ours[name]}, upstream {theirs[name]}"
        for name in ("least", "most")
        if ours[name] != theirs[name]
    ]
    if ("error" in ours) != ("error" in theirs):
        return [*found, f"draht {_outcome(ours)}, upstream {_outcome(theirs)}"]
    if "error" in ours:
        kind = kind_of_upstream(theirs["error"])
        if ours["error"] != kind:
            found.append(f"kind of error: draht {_outcome(ours)}, upstream {kind}: {theirs['error']}")
        return found
    expected = sorted_typed(theirs["value"])
    if ours["value"] != expected:
        found.append(f"value: draht {ours['value']}, upstream {expected}")
    if ours["plain"] != ours["value"]:
        found.append(f"value without counting costs: {ours['plain']}, with: {ours['value']}")
    if ours["cost"] != theirs.get("cost"):
        found.append(f"actual cost: draht {ours['cost']}, upstream {theirs.get('cost')}")
    return found


def _outcome(found: Mapping[str, Any]) -> str:
    if "error" in found:
        return f"{found['error']} ({found.get('message', '')})"
    return str(found["value"])
