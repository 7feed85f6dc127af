"""What a selector sees of a device, and the environment in which selectors are written.

Owns the variable ``device``: driver, attributes, capacity, whether it may be allocated several times. Names without a
domain belong to the driver's. A domain that a device lacks is an empty map when it is looked up, but isn't there for
``in`` and loops. An attribute that can't be read (no value, a version that is none) makes every evaluation fail,
whatever the selector asks for. Source: k8s.io/dynamic-resource-allocation v0.37.2 ``cel/compile.go``, and the base
environment of k8s.io/apiserver v0.37.2 ``pkg/cel/environment``.

It knows nothing of pools, slices and claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, final

from draht.api.errors import DrahtError
from draht.api.quantity import Quantity
from draht.api.resource.device import Device as WireDevice
from draht.api.resource.device import DeviceAttribute, DeviceCapacity
from draht.api.semver import Version
from draht.cel.declarations import Environment, Library
from draht.cel.errors import EvaluationError
from draht.cel.library import kubernetes_lists
from draht.cel.library.kubernetes import BASE, BASE_OF_1_34, BINDINGS
from draht.cel.sizes import Size
from draht.cel.types import ANY, BOOL, DYN, STRING, Type, map_of, object_type
from draht.cel.values import MISSING, QUANTITY, Map

__all__ = [
    "DEVICE",
    "Device",
    "Features",
    "StringMap",
    "attribute_value",
    "device_environment",
    "input_size",
    "value_type",
]

DEVICE: Final = object_type("kubernetes.DRADevice")

MAX_DOMAIN_LENGTH: Final = 63
MAX_ID_LENGTH: Final = 32
MAX_DRIVER_LENGTH: Final = 63
MAX_VALUE_LENGTH: Final = 64
MAX_ENTRIES: Final = 32
"""Attributes and capacities of a device together, so also domains and ids."""


@dataclass(frozen=True, slots=True)
class Features:
    """The feature gates that change what a selector may say.

    Args:
        list_attributes: DRAListTypeAttributes: attributes may be lists, and there is ``includes``.
        consumable_capacity: DRAConsumableCapacity: there is ``device.allowMultipleAllocations``.
        stored: Judge as for an object that is stored already: everything that any version knows is allowed, whatever
            the gates. Schedulers do; an API server that is asked to create an object doesn't.
    """

    list_attributes: bool = True
    consumable_capacity: bool = True
    stored: bool = True


def value_type(features: Features) -> Type:
    """The declared type of an attribute's value; a selector may have this type instead of bool."""
    return DYN if features.stored or features.list_attributes else ANY


@lru_cache(maxsize=8)
def device_environment(features: Features) -> Environment:
    """Everything a selector may name."""
    libraries = (*(BASE if features.stored else BASE_OF_1_34), BINDINGS)
    if not features.stored and not features.list_attributes:
        libraries = tuple(_without_includes(library) for library in libraries)
    fields = {
        "driver": STRING,
        "attributes": map_of(STRING, map_of(STRING, value_type(features))),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    if features.stored or features.consumable_capacity:
        fields["allowMultipleAllocations"] = BOOL
    return Environment.of(libraries, variables={"device": DEVICE}, fields={DEVICE.name: fields})


def _without_includes(library: Library) -> Library:
    if library is not kubernetes_lists.LIBRARY:
        return library
    return replace(library, functions=tuple(f for f in library.functions if f is not kubernetes_lists.INCLUDES))


_ATTRIBUTE_SIZE: Final = Size(0, MAX_VALUE_LENGTH)
_SIZES: Final[dict[tuple[str, ...], Size]] = {
    ("device",): Size(0, 0),
    ("device", "driver"): Size(0, MAX_DRIVER_LENGTH),
    ("device", "allowMultipleAllocations"): Size(0, 1),
    **{
        ("device", field, *rest): size
        for field in ("attributes", "capacity")
        for rest, size in (
            ((), Size(0, MAX_ENTRIES)),
            (("@keys",), Size(0, MAX_DOMAIN_LENGTH)),
            (("@values",), Size(0, MAX_ENTRIES)),
            (("@values", "@keys"), Size(0, MAX_ID_LENGTH)),
        )
    },
    ("device", "attributes", "@values", "@values"): _ATTRIBUTE_SIZE,
    ("device", "capacity", "@values", "@values"): Size(0, 0),
}
_ITEMS: Final = frozenset({"@items", "@values"})


def input_size(features: Features) -> Any:
    """How large parts of the input can be, for `draht.cel.cost.estimate`."""
    return _full_size if features.stored or features.consumable_capacity else _size_without_multiple


def _full_size(path: tuple[str, ...]) -> Size | None:
    path = tuple(["@values" if part in _ITEMS else part for part in path])
    found = _SIZES.get(path)
    if found is None and len(path) == 4 and path[:3] == ("device", "attributes", "@values") and path[3] != "@keys":
        # Any name below a domain is an attribute.
        return _ATTRIBUTE_SIZE
    return found


def _size_without_multiple(path: tuple[str, ...]) -> Size | None:
    return None if path == ("device", "allowMultipleAllocations") else _full_size(path)


class StringMap(Map):
    """A map whose keys are strings; anything else just isn't there."""

    __slots__ = ()

    def entry(self, key: Any) -> Any:
        """See `Map.entry`; never raises."""
        return self.entries.get(key, MISSING) if type(key) is str else MISSING


@final
class _Domains(StringMap):
    """Domain → id → value; a domain that isn't there is found empty."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        found = self.entry(key)
        return _NOTHING if found is MISSING else found


_NOTHING: Final = StringMap({})


@lru_cache(maxsize=4096)
def _version(text: str) -> Version:
    return Version(text)


def attribute_value(attribute: DeviceAttribute) -> Any:
    """The value that expressions see; lists before single values, as upstream takes them.

    Raises:
        DrahtError: No member is set, or a version is none.
    """
    if attribute.ints or attribute.bools or attribute.strings:
        return attribute.ints or attribute.bools or attribute.strings
    if attribute.versions:
        return tuple(map(_version, attribute.versions))
    if attribute.int_ is not None:
        return attribute.int_
    if attribute.bool_ is not None:
        return attribute.bool_
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return _version(attribute.version)
    raise DrahtError("the attribute has no value", hint="set exactly one of int, bool, string, version or a list")


@final
class Device(Map):
    """One device as the variable ``device``; immutable. What it holds is read when it is first asked for.

    Args:
        driver: The driver's name.
        attributes: The device's attributes by their names, with or without domain.
        capacity: The device's capacities by their names.
        allow_multiple: Whether it may be allocated several times.
    """

    __slots__ = ("allow_multiple", "attributes", "capacity", "defect", "driver")

    defect: EvaluationError | None
    """Why no expression can be evaluated on the device, if none can."""

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute],
        capacity: Mapping[str, DeviceCapacity],
        *,
        allow_multiple: bool = False,
    ) -> None:
        # ``entries`` and ``defect`` are left out: `__getattr__` makes both when one is missed.
        self.driver = driver
        self.attributes = attributes
        self.capacity = capacity
        self.allow_multiple = allow_multiple

    @classmethod
    def of(cls, driver: str, device: WireDevice) -> Device:  # type: ignore[override]  # a device isn't made of items
        """The device of a ResourceSlice of this driver."""
        allow = bool(device.allow_multiple_allocations)
        return cls(driver, device.attributes, device.capacity, allow_multiple=allow)

    def __getattr__(self, name: str) -> Any:
        if name not in {"entries", "defect"}:
            raise AttributeError(name)
        self.defect = None
        self.entries = {
            "driver": self.driver,
            "allowMultipleAllocations": self.allow_multiple,
            "attributes": self._domains(self.attributes, attribute_value),
            "capacity": self._domains(self.capacity, _amount),
        }
        return getattr(self, name)

    def _domains(self, named: Mapping[str, Any], value_of: Callable[[Any], Any]) -> _Domains:
        domains: dict[Any, Any] = {}
        own: dict[Any, Any] = {}
        qualified: list[tuple[str, Any]] = []
        for name, wire in named.items():
            try:
                value = value_of(wire)
            except DrahtError as error:
                self.defect = self.defect or EvaluationError(f"attribute {name}: {error.message}", hint=error.hint)
                continue
            if "/" in name:
                qualified.append((name, value))
            else:
                own[name] = value
        if own:
            domains[self.driver] = StringMap(own)
        # Of two of the same name, the one that says its domain counts; upstream leaves it to chance.
        for name, value in qualified:
            domain, _, id_ = name.partition("/")
            inner = domains.get(domain)
            if inner is None:
                inner = domains[domain] = StringMap({})
            inner.entries[id_] = value
        return _Domains(domains)


def _amount(capacity: DeviceCapacity) -> Quantity:
    return Quantity.from_wire(capacity.value)
