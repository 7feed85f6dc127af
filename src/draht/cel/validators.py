"""What Kubernetes refuses in a typed expression by looking at its literals.

Owns the validators of the Kubernetes environment: durations, timestamps and patterns that are written out must be some,
the elements of a literal list or map must have one type, and ``format`` must fit its arguments. Source: cel-go v0.29.2
``cel/validator.go``, k8s.io/apiserver v0.37.2 ``pkg/cel/environment/base.go``.

They look at calls by name only, as upstream does: the first argument of any ``matches`` must be a pattern, though in
``matches(text, pattern)`` it is the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from draht.cel.ast import Call, Expr, ListLiteral, Literal, MapLiteral
from draht.cel.declarations import Environment
from draht.cel.dispatch import call_overloads
from draht.cel.errors import CompileError, EvaluationError, Issue
from draht.cel.gotime import parse_duration, parse_timestamp
from draht.cel.library.formatting import format_problem
from draht.cel.patterns import compiled
from draht.cel.reference import Checked
from draht.cel.source import Source
from draht.cel.types import Type
from draht.cel.walk import children, descendants

__all__ = ["validate"]

_PARSERS: Final[dict[str, Callable[[str], object]]] = {"duration": parse_duration, "timestamp": parse_timestamp}
_EXEMPT: Final = "format"
"""The function whose arguments, at any depth, may be lists of mixed types."""


def validate(checked: Checked, environment: Environment, source: Source) -> None:
    """Look at the literals of an expression.

    Raises:
        CompileError: With everything that is wrong, in the order of the text.
    """
    validation = _Validation(checked, environment, source)
    waiting: list[tuple[Expr, bool]] = [(checked.expr, False)]
    while waiting:
        node, exempt = waiting.pop()
        validation.visit(node, exempt=exempt)
        exempt = exempt or (isinstance(node, Call) and node.function == _EXEMPT)
        waiting.extend((child, exempt) for child in children(node))
    if validation.issues:
        raise CompileError(source.text, tuple(sorted(validation.issues, key=lambda issue: (issue.line, issue.column))))


class _Validation:
    def __init__(self, checked: Checked, environment: Environment, source: Source) -> None:
        self.issues: list[Issue] = []
        self._checked = checked
        self._environment = environment
        self._source = source

    def _refuse(self, node: Expr, message: str, hint: str | None = None) -> None:
        line, column = self._source.place(node.at)
        self.issues.append(Issue(message, line, column, hint))

    def visit(self, node: Expr, *, exempt: bool) -> None:
        match node:
            case Call():
                self._call(node)
            case ListLiteral() if not exempt:
                optional = [index in node.optional for index in range(len(node.elements))]
                self._homogeneous(zip(node.elements, optional, strict=True), first_only=True)
            case MapLiteral() if not exempt:
                self._homogeneous([(entry.key, False) for entry in node.entries])
                self._homogeneous([(entry.value, entry.optional) for entry in node.entries])
            case _:
                pass

    def _call(self, node: Call) -> None:
        problem = format_problem(node, self._checked.types)
        if problem is not None:
            self._refuse(next(part for part in descendants(node) if part.id == problem[0]), problem[1])
        if not node.args or not isinstance(node.args[0], Literal):
            return
        literal = node.args[0]
        try:
            if node.function in _PARSERS:
                overloads = self._environment.functions[node.function].overloads
                call_overloads(node.function, overloads, (literal.value,))
            elif node.function == "matches" and isinstance(literal.value, str):
                compiled(literal.value)
        except EvaluationError as error:
            self._refuse(literal, _reason(node.function, literal.value) or error.message, error.hint)

    def _homogeneous(self, nodes: Iterable[tuple[Expr, bool]], *, first_only: bool = False) -> None:
        first: Type | None = None
        for node, optional in nodes:
            kind = self._checked.types[node.id]
            if optional:
                if not kind.parameters:
                    # Upstream's validator crashes here, so nobody can store such an expression.
                    self._refuse(node, f"an optional is needed behind the question mark, not {kind.for_people()}")
                    return
                kind = kind.parameters[0]
            if first is None:
                first = kind
            elif kind != first:
                self._refuse(
                    node,
                    f"all elements must have one type; {first.for_people()} stands before this {kind.for_people()}",
                    "dyn(…) around each element allows a mixture",
                )
                if first_only:
                    return


def _reason(function: str, value: object) -> str | None:
    """Why a text is no duration or timestamp; upstream only says that it is none."""
    try:
        if isinstance(value, str) and function in _PARSERS:
            _PARSERS[function](value)
    except ValueError as error:
        return str(error)
    return None
