"""Selectors and derived attributes: expressions about one device, compiled once and kept.

Owns the way from a text to something that can be asked: parse, check, judge literals, estimate the cost, compile. An
error of one evaluation is an answer, not an exception, because a device that a selector can't judge is a case of its
own: upstream ends the whole allocation there. Source: k8s.io/dynamic-resource-allocation v0.37.2 ``cel/compile.go``.

How long a text may be and what it may cost is the API server's rule, so it is checked in `draht.validation`. The cost
of an evaluation is bounded here: expressions whose estimate doesn't keep below the limit are metered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, Final, final

from draht.api.resource.device import DeviceAttribute
from draht.api.semver import Version
from draht.cel.ast import Expr
from draht.cel.checker import check
from draht.cel.cost import estimate
from draht.cel.depth import SHALLOW, run_deep
from draht.cel.device import Device, Features, device_environment, input_size, value_type
from draht.cel.errors import CompileError, EvaluationError, Issue
from draht.cel.folding import fold
from draht.cel.hints import at_run_time, missing_key
from draht.cel.mentions import Mentions, mentions_of
from draht.cel.parser import parse
from draht.cel.program import Program
from draht.cel.reference import Checked
from draht.cel.sizes import Cost
from draht.cel.source import Source
from draht.cel.types import ANY, BOOL, DYN, INT, STRING, Type
from draht.cel.validators import validate
from draht.cel.values import SEMVER, Map, Optional, type_name

__all__ = ["MAX_COST", "DerivedAttribute", "Selector", "compile_derived", "compile_selector", "unwrapped"]

MAX_COST: Final = 1_000_000
"""Units that one evaluation may cost; about a tenth of a second of upstream's time."""
_KEPT: Final = 1024

_SCALARS: Final = frozenset({BOOL, INT, STRING, ANY, DYN, SEMVER})


class _Expression:
    """What selectors and derived attributes have in common."""

    __slots__ = ("__dict__", "_constants", "_program", "checked", "cost", "features", "text")

    def __init__(self, text: str, features: Features, checked: Checked, source: Source) -> None:
        environment = device_environment(features)
        self._constants = fold(checked, source)
        self.text = text
        self.features = features
        self.checked = checked
        """The syntax tree with its types."""
        self.cost: Cost = estimate(checked, input_size(features))
        """The least and most that an evaluation can cost; ``most`` is what the API server judges by."""
        self._program = Program(checked, environment, self._constants)

    @cached_property
    def mentions(self) -> Mentions:
        """What it reads: devices that are equal in that have the same outcome."""
        return mentions_of(self.checked.expr)

    def part(self, expr: Expr, path: tuple[str, ...] | None = None) -> Program:
        """The program of a part of the tree; with a path, as a function of what is found there in the device."""
        checked = replace(self.checked, expr=expr)
        return Program(checked, device_environment(self.features), self._constants, part=path)

    def value(self, device: Device) -> Any:
        """The value for a device, of whatever type.

        Raises:
            EvaluationError: Evaluation fails.
        """
        if device.defect is not None:
            raise device.defect
        return self.computed(device)

    def computed(self, device: Device) -> Any:
        """The value for a device, even if a part of it that isn't read is defective.

        Raises:
            EvaluationError: Evaluation fails.
        """
        if self.cost.most > MAX_COST:
            value, _ = self._program.measure(device, MAX_COST)
            if isinstance(value, EvaluationError):
                raise value
            return value
        return self._program.evaluate(device)

    def measure(self, device: Device, limit: int = MAX_COST) -> tuple[Any, int]:
        """The value for a device, or the error, and what the evaluation cost."""
        if device.defect is not None:
            return device.defect, 0
        return self._program.measure(device, limit)


@final
class Selector(_Expression):
    """Whether a device is meant. Made by `compile_selector`; immutable and safe to share."""

    __slots__ = ("_run",)

    def __init__(self, text: str, features: Features, checked: Checked, source: Source) -> None:
        super().__init__(text, features, checked, source)
        plain = self._program.plain
        self._run = plain if plain is not None and self.cost.most <= MAX_COST else self.value

    def evaluate(self, device: Device) -> bool | EvaluationError:
        """The answer for a device; what went wrong, if it can't be answered."""
        defect = device.defect
        if defect is not None:
            return defect
        try:
            value = self._run(device)
        except EvaluationError as error:
            error.hint = error.hint or self._hint(error, device)
            return error
        except RecursionError:
            # The caller stands deep in its own stack.
            return run_deep(SHALLOW, lambda: self.evaluate(device))
        if value is True or value is False:
            return value
        return _answer(value)

    def _hint(self, error: EvaluationError, device: Device) -> str | None:
        """What to do about an error, for somebody who sees this device."""
        if error.kind == "no-such-key":
            for key in sorted(self.mentions.keys):
                domains = device.entries[key.map]
                if key.whole or key.id not in error.message or _has(domains.entries.get(key.domain), key.id):
                    continue
                other = next((domain for domain, inner in domains.items() if _has(inner, key.id)), None)
                return missing_key(key.map, key.domain, key.id, other)
        return at_run_time(error.kind, error.message)

    def measure(self, device: Device, limit: int = MAX_COST) -> tuple[Any, int]:
        """The answer for a device, or the error, and what the evaluation cost."""
        value, cost = super().measure(device, limit)
        if type(value) is not bool and not isinstance(value, EvaluationError):
            value = _answer(value)
        return value, cost

    def matches(self, device: Device) -> bool:
        """The answer for a device.

        Raises:
            EvaluationError: It can't be answered.
        """
        answer = self.evaluate(device)
        if isinstance(answer, EvaluationError):
            raise answer
        return answer

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"


@final
class DerivedAttribute(_Expression):
    """A value computed from a device. Made by `compile_derived`; immutable and safe to share."""

    __slots__ = ()

    def evaluate(self, device: Device) -> Any:
        """The value for a device: bool, int, str, `Version`, or a tuple of one of these; or what went wrong."""
        try:
            return _derived(self.value(device))
        except EvaluationError as error:
            return error

    def attribute(self, device: Device) -> DeviceAttribute | EvaluationError:
        """The value as an attribute of the device, or what went wrong; an empty list is one without members set."""
        value = self.evaluate(device)
        if isinstance(value, EvaluationError):
            return value
        match value:
            case bool():
                return DeviceAttribute(bool_=value)
            case int():
                return DeviceAttribute(int_=value)
            case str():
                return DeviceAttribute(string=value)
            case Version():
                return DeviceAttribute(version=str(value))
            case (bool(), *_):
                return DeviceAttribute(bools=value)
            case (int(), *_):
                return DeviceAttribute(ints=value)
            case (Version(), *_):
                return DeviceAttribute(versions=tuple(map(str, value)))
            case _:
                return DeviceAttribute(strings=value)

    def __repr__(self) -> str:
        return f"DerivedAttribute({self.text!r})"


def _has(domain: Any, name: str) -> bool:
    return isinstance(domain, Map) and name in domain.entries


def _answer(value: Any) -> bool | EvaluationError:
    """The answer in a value that isn't just a bool; upstream takes it out of an optional."""
    inner = unwrapped(value)
    if type(inner) is bool:
        return inner
    return EvaluationError(
        f"CEL result of type {type_name(value)} could not be converted to bool",
        kind="not-bool",
        hint="compare the value with something, such as == true",
    )


def unwrapped(value: Any) -> Any:
    """What is in an optional that holds something; anything else as it is."""
    while type(value) is Optional and value.has_value:
        value = value.value
    return value


def _derived(value: Any) -> Any:
    """Source: ``valToDeviceAttribute``; the name of a type passes for a string there."""
    if type(value) is list or type(value) is tuple:
        elements = tuple(map(_derived_element, value))
        for index, element in enumerate(elements):
            if type(element) is not type(elements[0]):
                expected = type_name(elements[0])
                raise EvaluationError(
                    f"expected list element at index {index} to be {expected}, got {type_name(element)}"
                )
        return elements
    return _derived_element(value)


def _derived_element(value: Any) -> Any:
    value = unwrapped(value)
    if type(value) in {bool, int, str, Version}:
        return value
    if type(value) is Type:
        return value.name
    raise EvaluationError(f"unsupported CEL return type: {type_name(value)}")


def _checked(text: str, features: Features) -> tuple[Checked, Source]:
    environment = device_environment(features)
    source = Source(text)
    checked = check(parse(text, environment.macros), environment, source)
    validate(checked, environment, source)
    return checked, source


def _refuse_type(checked: Checked, source: Source, message: str) -> CompileError:
    line, column = source.place(checked.expr.at)
    return CompileError(source.text, (Issue(f"{message}, not {checked.output}", line, column),))


@lru_cache(maxsize=_KEPT)
def compile_selector(text: str, features: Features = Features()) -> Selector:  # noqa: B008 - it is immutable
    """The selector of a text; the last ones asked for are kept.

    Raises:
        CompileError: With everything that is wrong with it.
    """
    checked, source = _checked(text, features)
    if checked.output != BOOL and checked.output != value_type(features):
        raise _refuse_type(checked, source, "must evaluate to bool or the unknown type")
    return Selector(text, features, checked, source)


@lru_cache(maxsize=_KEPT)
def compile_derived(text: str, features: Features = Features()) -> DerivedAttribute:  # noqa: B008 - it is immutable
    """The derived attribute of a text; the last ones asked for are kept.

    Raises:
        CompileError: With everything that is wrong with it.
    """
    checked, source = _checked(text, features)
    lists = features.stored or features.list_attributes
    output = checked.output
    element = output.parameters[0] if lists and output.kind == "list" else output
    if output not in _SCALARS and element not in _SCALARS:
        wanted = "must evaluate to a primitive scalar (string, integer, boolean, semver)"
        raise _refuse_type(checked, source, f"{wanted} or a list of these scalars" if lists else wanted)
    return DerivedAttribute(text, features, checked, source)
