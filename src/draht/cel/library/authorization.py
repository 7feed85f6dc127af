"""The functions with which other expressions of Kubernetes ask the authorizer.

Owns their declarations (k8s.io/apiserver v0.37.2 ``pkg/cel/library/authz.go``). A selector has no ``authorizer``, so
none of them can ever be called; but they are part of the environment, and ``dyn(x).group("apps")`` compiles upstream
and costs what it costs.
"""

from __future__ import annotations

from typing import Any, Final

from draht.cel.declarations import Actual, Estimate, Function, Library, Overload
from draht.cel.library.charges import actual_size, one, one_unit
from draht.cel.sizes import LIST_COST, STRING_FACTOR, STRUCT_COST, CallCost, Cost, Operand, Size
from draht.cel.types import BOOL, STRING, Type, object_type
from draht.cel.values import no_such_overload

__all__ = ["LIBRARY"]

_AUTHORIZER: Final = object_type("kubernetes.authorization.Authorizer")
_PATH_CHECK: Final = object_type("kubernetes.authorization.PathCheck")
_GROUP_CHECK: Final = object_type("kubernetes.authorization.GroupCheck")
_RESOURCE_CHECK: Final = object_type("kubernetes.authorization.ResourceCheck")
_DECISION: Final = object_type("kubernetes.authorization.Decision")

_CHECK_UNITS: Final = 350_000
"""So much that an expression can ask the authorizer twice."""
_PER_CHARACTER: Final = 0.5
"""Requirements per character of a selector: the shortest has two characters."""


def _check_estimate(_operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(Cost.fixed(_CHECK_UNITS))


def _checked(_result: Any, *_arguments: Any) -> int:
    return _CHECK_UNITS


def _selector_cost(length: Size) -> Cost:
    requirements = length.scaled(_PER_CHARACTER).scaled(float(LIST_COST + STRUCT_COST))
    return Cost.fixed(LIST_COST) + length.scaled(STRING_FACTOR) + requirements


def _selector_estimate(operands: tuple[Operand, ...]) -> CallCost:
    return CallCost(_selector_cost(operands[1].size))


def _selected(_result: Any, *arguments: Any) -> int:
    return _selector_cost(Size.fixed(actual_size(arguments[1]))).most


def _method(name: str, *signatures: tuple[str, tuple[Type, ...], Type]) -> Function:
    def call(*arguments: Any) -> Any:
        raise no_such_overload(name, *arguments)

    estimate: Estimate = one_unit
    actual: Actual = one
    if name == "check":
        estimate, actual = _check_estimate, _checked
    elif name.endswith("Selector"):
        estimate, actual = _selector_estimate, _selected
    return Function(
        name,
        tuple(
            Overload(id_, parameters, result, call, member=True, estimate=estimate, actual=actual)
            for id_, parameters, result in signatures
        ),
    )


LIBRARY: Final = Library(
    "kubernetes.authz",
    (
        _method("path", ("authorizer_path", (_AUTHORIZER, STRING), _PATH_CHECK)),
        _method("group", ("authorizer_group", (_AUTHORIZER, STRING), _GROUP_CHECK)),
        _method("serviceAccount", ("authorizer_serviceaccount", (_AUTHORIZER, STRING, STRING), _AUTHORIZER)),
        _method("resource", ("groupcheck_resource", (_GROUP_CHECK, STRING), _RESOURCE_CHECK)),
        _method("subresource", ("resourcecheck_subresource", (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK)),
        _method("namespace", ("resourcecheck_namespace", (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK)),
        _method("name", ("resourcecheck_name", (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK)),
        _method(
            "check",
            ("pathcheck_check", (_PATH_CHECK, STRING), _DECISION),
            ("resourcecheck_check", (_RESOURCE_CHECK, STRING), _DECISION),
        ),
        _method("errored", ("decision_errored", (_DECISION,), BOOL)),
        _method("error", ("decision_error", (_DECISION,), STRING)),
        _method("allowed", ("decision_allowed", (_DECISION,), BOOL)),
        _method("reason", ("decision_reason", (_DECISION,), STRING)),
        _method("fieldSelector", ("authorizer_fieldselector", (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK)),
        _method("labelSelector", ("authorizer_labelselector", (_RESOURCE_CHECK, STRING), _RESOURCE_CHECK)),
    ),
)
