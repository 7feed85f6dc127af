"""Expressions of selectors and derived attributes, as the allocator sees them.

The language is `draht.cel`'s. Here is what an allocation needs of it: compiling without raising, the verdict about a
device as a value, and which attributes and capacities it depends on, so that devices with equal values are asked once.

Expressions are judged as stored ones: whatever was accepted once is understood, whichever features are on, as
upstream's scheduler does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from draht.cel.device import Device as CELDevice
from draht.cel.errors import CELError
from draht.cel.selector import DerivedAttribute, Selector, compile_derived, compile_selector

if TYPE_CHECKING:
    from draht.api.resource import Device, DeviceAttribute

__all__ = ["Derivation", "Expression", "compile_derivation", "compile_expression"]

_CACHED = 4096


class Expression(Protocol):
    """A compiled selector."""

    @property
    def attributes(self) -> frozenset[str]:
        """Fully qualified names of the attributes that it mentions."""
        ...

    @property
    def capacities(self) -> frozenset[str]:
        """Fully qualified names of the capacities that it mentions."""
        ...

    @property
    def everything(self) -> bool:
        """Whether it looks at a device in a way that depends on all of it."""
        ...

    @property
    def problem(self) -> Exception | None:
        """Why it doesn't compile."""
        ...

    @property
    def selector(self) -> Selector | None:
        """The compiled selector, for whoever asks it about many devices at once."""
        ...

    def test(self, driver: str, device: Device) -> bool | Exception:
        """The verdict about a device; an error is a value of its own, not false."""
        ...


class Derivation(Protocol):
    """A compiled derived attribute."""

    @property
    def attributes(self) -> frozenset[str]:
        """Fully qualified names of the attributes that it mentions."""
        ...

    @property
    def capacities(self) -> frozenset[str]:
        """Fully qualified names of the capacities that it mentions."""
        ...

    @property
    def everything(self) -> bool:
        """Whether it looks at a device in a way that depends on all of it."""
        ...

    @property
    def problem(self) -> Exception | None:
        """Why it doesn't compile."""
        ...

    def derive(self, driver: str, device: Device) -> DeviceAttribute | Exception:
        """The attribute of a device, or why it has none."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Broken:
    """An expression that doesn't compile."""

    problem: Exception
    attributes: frozenset[str] = frozenset()
    capacities: frozenset[str] = frozenset()
    everything: bool = False
    selector: None = None

    def test(self, driver: str, device: Device) -> bool | Exception:  # noqa: ARG002 - the protocol fixes the arguments
        return self.problem

    def derive(self, driver: str, device: Device) -> DeviceAttribute | Exception:  # noqa: ARG002 - as above
        return self.problem


@dataclass(frozen=True, slots=True, eq=False)
class _Compiled:
    """An expression that compiles, with its answers about devices."""

    compiled: Selector | DerivedAttribute
    attributes: frozenset[str]
    capacities: frozenset[str]
    everything: bool
    problem: Exception | None = None

    @property
    def selector(self) -> Selector | None:
        return self.compiled if isinstance(self.compiled, Selector) else None

    def test(self, driver: str, device: Device) -> bool | Exception:
        assert isinstance(self.compiled, Selector)
        return self.compiled.evaluate(CELDevice.of(driver, device))

    def derive(self, driver: str, device: Device) -> DeviceAttribute | Exception:
        assert isinstance(self.compiled, DerivedAttribute)
        return self.compiled.attribute(CELDevice.of(driver, device))


@lru_cache(maxsize=_CACHED)
def compile_expression(text: str) -> Expression:
    """Compile a selector; what doesn't compile is an expression with a `problem`."""
    try:
        return _compiled(compile_selector(text))
    except CELError as error:
        return _Broken(error)


@lru_cache(maxsize=_CACHED)
def compile_derivation(text: str) -> Derivation:
    """Compile a derived attribute; what doesn't compile is a derivation with a `problem`."""
    try:
        return _compiled(compile_derived(text))
    except CELError as error:
        return _Broken(error)


def _compiled(compiled: Selector | DerivedAttribute) -> _Compiled:
    mentions = compiled.mentions
    keys = [key for key in mentions.keys if not key.whole]
    return _Compiled(
        compiled,
        frozenset(f"{key.domain}/{key.id}" for key in keys if key.map == "attributes"),
        frozenset(f"{key.domain}/{key.id}" for key in keys if key.map == "capacity"),
        mentions.everything or any(key.whole for key in mentions.keys),
    )
