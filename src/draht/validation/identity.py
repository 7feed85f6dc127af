"""Names of drivers, pools, devices, classes, counters, attributes and capacities.

Owns the formats that ``resource.k8s.io`` has for what it names itself, with the marks by which hand-written and
declared rules of the same thing are told (``pkg/apis/resource/validation`` and ``pkg/api/validate/strfmt.go`` at
v1.37.2).
"""

from __future__ import annotations

from typing import Any

from draht.validation import names
from draht.validation.errors import Report
from draht.validation.limits import DRIVER_NAME_BYTES, ID_BYTES, POOL_NAME_BYTES, QUALIFIED_NAME_BYTES

__all__ = [
    "check_class_name",
    "check_device_name",
    "check_driver",
    "check_full_name",
    "check_pool",
    "check_qualified_name",
    "check_uuid",
    "declare_class_name",
    "declare_driver",
    "declare_full_name",
    "declare_label",
    "declare_pool",
    "declare_uuid",
    "truncated",
]

_LONG = "format=k8s-long-name"
_LONG_CASELESS = "format=k8s-long-name-caseless"
_SHORT = "format=k8s-short-name"
_POOL = "format=k8s-resource-pool-name"
_FULL = "format=k8s-resource-fully-qualified-name"
_UUID = "format=k8s-uuid"


def check_driver(report: Report, driver: str, path: str, *, covered: bool = False) -> None:
    """A driver's name: a DNS subdomain in any case, at most 63 bytes.

    Args:
        report: Takes what is wrong.
        driver: The name.
        path: Its field.
        covered: Whether the field has declared rules, too.
    """
    if not driver:
        report.required(path, covered=covered)
        return
    if names.byte_length(driver) > DRIVER_NAME_BYTES:
        report.too_long(path, DRIVER_NAME_BYTES, origin="maxLength" if covered else "", covered=covered)
    messages = names.subdomain(names.lowered(driver))
    report.each_invalid(path, driver, messages, origin=_LONG_CASELESS if covered else "", covered=covered)


def declare_driver(report: Report, driver: str, path: str) -> None:
    """The declared rules of a driver's name."""
    if not driver:
        report.declare("Required", path, "a value is required")
        return
    for message in names.subdomain(driver, caseless=True):
        report.declare("Invalid", path, message, driver, origin=_LONG_CASELESS)
    if len(driver) > DRIVER_NAME_BYTES:
        report.declare("TooLong", path, f"must have at most {DRIVER_NAME_BYTES} characters", origin="maxLength")


def check_pool(report: Report, pool: str, path: str, *, covered: bool = False) -> None:
    """A pool's name: DNS subdomains with slashes between them."""
    if not pool:
        report.required(path, covered=covered)
        return
    if names.byte_length(pool) > POOL_NAME_BYTES:
        report.too_long(path, POOL_NAME_BYTES, origin=_POOL, covered=covered)
    for part in pool.split("/"):
        report.each_invalid(path, part, names.subdomain(part), origin=_POOL, covered=covered)


def declare_pool(report: Report, pool: str, path: str) -> None:
    """The declared rules of a pool's name."""
    if not pool:
        report.declare("Required", path, "a value is required")
        return
    if names.byte_length(pool) > POOL_NAME_BYTES:
        report.declare("TooLong", path, names.too_long(POOL_NAME_BYTES), origin=_POOL)
    for part in pool.split("/"):
        for message in names.subdomain(part) if part else ["must not have an empty part between slashes"]:
            report.declare("Invalid", path, message, part or pool, origin=_POOL)


def check_device_name(report: Report, name: str, path: str, **marks: Any) -> None:
    """A name that is a DNS label: of a device, a request, a counter."""
    report.each_invalid(path, name, names.label(name), origin=_SHORT, **marks)


def declare_label(report: Report, name: str, path: str, *, replaces: bool = True) -> None:
    """The declared rule of a DNS label."""
    for message in names.label(name):
        report.declare("Invalid", path, message, name, origin=_SHORT, replaces=replaces)


def check_class_name(report: Report, name: str, path: str, *, covered: bool = False) -> None:
    """The name of a DeviceClass: a DNS subdomain."""
    if not name:
        report.required(path, covered=covered)
        return
    report.each_invalid(path, name, names.subdomain(name), origin=_LONG, covered=covered)


def declare_class_name(report: Report, name: str, path: str) -> None:
    """The declared rules of a DeviceClass's name."""
    if not name:
        report.declare("Required", path, "a value is required")
        return
    for message in names.subdomain(name):
        report.declare("Invalid", path, message, name, origin=_LONG)


def check_qualified_name(report: Report, name: str, path: str, **marks: Any) -> None:
    """The name of an attribute or capacity: an identifier, after a domain and a slash or without.

    A name with more than one slash is accepted, as upstream accepts it.
    """
    domain, slash, id_ = name.partition("/")
    if "/" in id_:
        return
    if slash:
        if not domain:
            report.invalid(path, "", "must have a domain before the slash", **marks)
        elif not marks:
            check_driver(report, domain, path)
        else:
            if names.byte_length(domain) > DRIVER_NAME_BYTES:
                report.too_long(path, DRIVER_NAME_BYTES, **marks)
            report.each_invalid(path, domain, names.subdomain(names.lowered(domain)), **marks)
        if not id_:
            report.invalid(path, "", "must have a name behind the slash", **marks)
            return
    _check_id(report, id_ if slash else domain, path, **marks)


def _check_id(report: Report, id_: str, path: str, **marks: Any) -> None:
    if names.byte_length(id_) > ID_BYTES:
        report.too_long(path, ID_BYTES, **marks)
    report.each_invalid(path, id_, names.c_identifier(id_), **marks)


def check_full_name(report: Report, name: str, path: str, *, covered: bool = False) -> None:
    """The name of an attribute with its domain."""
    check_qualified_name(report, name, path, origin=_FULL, covered=covered)
    if "/" not in name:
        report.invalid(path, name, "must have a domain before it: <domain>/<name>", origin=_FULL, covered=covered)


def declare_full_name(report: Report, name: str, path: str, *, replaces: bool = True) -> None:
    """The declared rules of an attribute's name with its domain."""
    for kind, message, value in _full_name_faults(name):
        report.declare(kind, path, message, value, origin=_FULL, replaces=replaces)


def _full_name_faults(name: str) -> list[tuple[Any, str, str | None]]:
    domain, slash, id_ = name.partition("/")
    faults: list[tuple[Any, str, str | None]] = []
    if "/" in id_:
        return faults
    if slash:
        if not domain:
            faults.append(("Invalid", "must have a domain before the slash", ""))
        else:
            if names.byte_length(domain) > DRIVER_NAME_BYTES:
                faults.append(("TooLong", names.too_long(DRIVER_NAME_BYTES), None))
            faults += [("Invalid", message, domain) for message in names.subdomain(domain)]
        if not id_:
            faults.append(("Invalid", "must have a name behind the slash", ""))
            return faults
    else:
        id_ = domain
    if names.byte_length(id_) > ID_BYTES:
        faults.append(("TooLong", names.too_long(ID_BYTES), None))
    faults += [("Invalid", message, id_) for message in names.c_identifier(id_)]
    if not slash:
        faults.append(("Invalid", "must have a domain before it: <domain>/<name>", name))
    return faults


def check_uuid(report: Report, value: str, path: str) -> None:
    """A UUID; the declared rule says the same."""
    report.each_invalid(path, value, names.uuid(value), origin=_UUID, covered=True)


def declare_uuid(report: Report, value: str, path: str) -> None:
    """The declared rule of a UUID."""
    for message in names.uuid(value):
        report.declare("Invalid", path, message, value, origin=_UUID)


def truncated(key: str, limit: int = QUALIFIED_NAME_BYTES) -> str:
    """A key of a map as upstream writes it into a path: too long a one loses its middle."""
    if names.byte_length(key) <= limit:
        return key
    remaining = limit - 3
    data = key.encode("utf-8", "surrogatepass")
    return (data[: (remaining + 1) // 2] + b"..." + data[len(data) - remaining // 2 :]).decode("utf-8", "replace")
