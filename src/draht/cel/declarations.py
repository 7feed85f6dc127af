"""What an environment declares: functions with their overloads, variables, types, macros.

Owns the nouns with which a library describes a function once: its types for the checker, its code for the compiler and
its price for the cost estimator stand side by side. It doesn't know any function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from draht.cel.macros import Macro
    from draht.cel.sizes import CallCost, Operand
    from draht.cel.types import Type

__all__ = ["Actual", "Environment", "Estimate", "Function", "Library", "Overload"]


class Estimate(Protocol):
    """The price of a call before it runs, from what is known of the sizes of its operands."""

    def __call__(self, operands: tuple[Operand, ...], /) -> CallCost | None:
        """Cost and size of the result; None means what the language charges for any call."""


Actual = Callable[..., int]
"""The price of a call that ran: ``actual(result, *arguments) -> cost``; the receiver is the first argument."""


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    Args:
        id: Upstream's name of the overload (cel-go ``common/overloads`` and the Kubernetes libraries).
        parameters: Types of the arguments; for a member function the receiver is the first.
        result: Type of the result.
        call: The code, called with the arguments' values; raises `draht.cel.errors.EvaluationError`. None where the
            compiler makes code of its own (``_&&_``, ``_?_:_`` …).
        member: Called as ``receiver.function(…)``.
        estimate: The price before a call; None: what the language charges for any call.
        actual: The price after a call; None: what the language charges for any call.
        guarded: Whether the arguments' types are compared with the parameters before a call whose types the checker
            doesn't know; without, the code looks itself (cel-go ``DisableTypeGuards``).
    """

    id: str
    parameters: tuple[Type, ...]
    result: Type
    call: Callable[..., Any] | None = None
    member: bool = False
    estimate: Estimate | None = None
    actual: Actual | None = None
    guarded: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """A function and its overloads, in upstream's order."""

    name: str
    overloads: tuple[Overload, ...]


@dataclass(frozen=True, slots=True)
class Library:
    """What belongs together and is switched on together."""

    name: str
    functions: tuple[Function, ...] = ()
    macros: tuple[Macro, ...] = ()
    types: Mapping[str, Type] = field(default_factory=dict)
    """Names that stand for a type in an expression (``type(x) == net.IP``)."""
    constants: Mapping[str, tuple[Type, Any]] = field(default_factory=dict)
    messages: Mapping[str, Type] = field(default_factory=dict)
    """Names with which a literal ``name{field: value}`` can be written → its type."""
    fields: Mapping[str, Mapping[str, Type]] = field(default_factory=dict)
    """Name of a message → its fields."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything an expression may name. Immutable; made once and shared."""

    functions: Mapping[str, Function]
    macros: Mapping[tuple[str, int, bool], Macro]
    """(name, number of arguments, or -1 for any; called on a receiver) → macro."""
    variables: Mapping[str, Type]
    types: Mapping[str, Type]
    fields: Mapping[str, Mapping[str, Type]]
    """Name of an object type → its fields."""
    constants: Mapping[str, tuple[Type, Any]] = field(default_factory=dict)
    messages: Mapping[str, Type] = field(default_factory=dict)
    """Name of what literals ``name{field: value}`` make → its type; object types need not be named here."""

    @classmethod
    def of(
        cls,
        libraries: Iterable[Library],
        *,
        variables: Mapping[str, Type] | None = None,
        fields: Mapping[str, Mapping[str, Type]] | None = None,
    ) -> Environment:
        """The environment with these libraries; overloads of one name are put together in the libraries' order."""
        functions: dict[str, Function] = {}
        macros: dict[tuple[str, int, bool], Macro] = {}
        types: dict[str, Type] = {}
        constants: dict[str, tuple[Type, Any]] = {}
        messages: dict[str, Type] = {}
        known_fields: dict[str, Mapping[str, Type]] = {}
        for library in libraries:
            for function in library.functions:
                known = functions.get(function.name)
                overloads = (known.overloads if known else ()) + function.overloads
                functions[function.name] = Function(function.name, overloads)
            macros.update({(macro.name, macro.arguments, macro.member): macro for macro in library.macros})
            types.update(library.types)
            constants.update(library.constants)
            messages.update(library.messages)
            known_fields.update(library.fields)
        known_fields.update(fields or {})
        return cls(functions, macros, variables or {}, types, known_fields, constants, messages)
