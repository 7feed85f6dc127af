"""Expressions of selectors and derived attributes, as the allocator sees them.

The language is `draht.cel`'s. Here is what an allocation needs of it: compiling without raising, the verdict about a
device as a value, and which attributes and capacities it depends on, so that devices with equal values are asked once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from draht.allocator.features import Features
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


@dataclass(frozen=True, slots=True)
class _Broken:
    """An expression that doesn't compile."""

    problem: Exception
    attributes: frozenset[str] = frozenset()
    capacities: frozenset[str] = frozenset()
    everything: bool = False

    def test(self, driver: str, device: Device) -> bool | Exception:  # noqa: ARG002 - the protocol fixes the arguments
        return self.problem

    def derive(self, driver: str, device: Device) -> DeviceAttribute | Exception:  # noqa: ARG002 - as above
        return self.problem


def compile_expression(text: str, features: Features) -> Expression:
    """Compile a selector; what doesn't compile is an expression with a `problem`."""
    return _selector(text, features.list_type_attributes, features.consumable_capacity)


def compile_derivation(text: str, features: Features) -> Derivation:
    """Compile a derived attribute; what doesn't compile is a derivation with a `problem`."""
    return _derivation(text, features.list_type_attributes, features.consumable_capacity)


@lru_cache(maxsize=_CACHED)
def _selector(text: str, lists: bool, shared: bool) -> Expression:
    raise NotImplementedError


@lru_cache(maxsize=_CACHED)
def _derivation(text: str, lists: bool, shared: bool) -> Derivation:
    raise NotImplementedError


_ = Any
