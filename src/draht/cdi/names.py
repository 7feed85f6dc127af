"""Names of vendors, classes and devices, and the qualified name ``vendor/class=device``.

Owns the grammar and nothing else. The rules are those of the Go library's ``pkg/parser`` v1.1.2, which is laxer than
SPEC.md: it limits no length and wants no DNS form.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from draht.cdi.errors import DeviceNameError

__all__ = [
    "QualifiedName",
    "check_class",
    "check_device_name",
    "check_vendor",
    "is_qualified_name",
    "parse_qualified_name",
    "qualified_name",
    "spec_file_name",
    "split_kind",
    "transient_spec_file_name",
]

QUALIFIER = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
DEVICE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_QUALIFIED = re.compile(
    f"(?P<vendor>{QUALIFIER.pattern})/(?P<class>{QUALIFIER.pattern})=(?P<name>{DEVICE_NAME.pattern})"
)

_QUALIFIER_RULE = "it starts with a letter, ends with a letter or digit, and has letters, digits, '_', '-', '.' between"
_DEVICE_RULE = "it starts and ends with a letter or digit, and has letters, digits, '_', '-', '.', ':' between"


class QualifiedName(NamedTuple):
    """A device name with its kind; ``str()`` gives ``vendor/class=name``."""

    vendor: str
    class_: str
    name: str

    @property
    def kind(self) -> str:
        """``vendor/class``."""
        return f"{self.vendor}/{self.class_}"

    def __str__(self) -> str:
        return f"{self.vendor}/{self.class_}={self.name}"


def qualified_name(vendor: str, class_: str, name: str) -> str:
    """``vendor/class=name``; the parts are not checked."""
    return f"{vendor}/{class_}={name}"


def is_qualified_name(name: str) -> bool:
    """Whether a text is a qualified device name."""
    return _QUALIFIED.fullmatch(name) is not None


def parse_qualified_name(name: str) -> QualifiedName:
    """The parts of a qualified device name.

    Raises:
        DeviceNameError: It isn't one; the message says which part is missing or wrong.
    """
    found = _QUALIFIED.fullmatch(name)
    if found is not None:
        return QualifiedName(found["vendor"], found["class"], found["name"])
    qualifier, equals, device = name.partition("=")
    vendor, class_ = split_kind(qualifier)
    if name.startswith("/") or not equals or not vendor or not device:
        raise DeviceNameError(
            f"{name!r} is not a qualified device name", hint="write it as vendor/class=name, like nvidia.com/gpu=0"
        )
    try:
        check_vendor(vendor)
        check_class(class_)
        check_device_name(device)
    except DeviceNameError as error:
        raise DeviceNameError(f"{error.message} in {name!r}", hint=error.hint) from None
    raise AssertionError(f"the grammar and its parts disagree about {name!r}")


def split_kind(kind: str) -> tuple[str, str]:
    """Vendor and class of a kind; without both of them ``("", kind)``."""
    vendor, slash, class_ = kind.partition("/")
    return (vendor, class_) if slash and vendor and class_ else ("", kind)


def check_vendor(vendor: str) -> None:
    """Raise `DeviceNameError` unless the vendor follows the rules."""
    _check("vendor", vendor, QUALIFIER, _QUALIFIER_RULE)


def check_class(class_: str) -> None:
    """Raise `DeviceNameError` unless the class follows the rules."""
    _check("class", class_, QUALIFIER, _QUALIFIER_RULE)


def check_device_name(name: str) -> None:
    """Raise `DeviceNameError` unless the device name (without its kind) follows the rules."""
    _check("device name", name, DEVICE_NAME, _DEVICE_RULE)


def spec_file_name(vendor: str, class_: str) -> str:
    """The usual file name, without extension, of the one spec of a kind."""
    return f"{vendor}-{class_}"


def transient_spec_file_name(vendor: str, class_: str, transient_id: str) -> str:
    """The usual file name, without extension, of a spec that lives as long as something with that id."""
    return f"{vendor}-{class_}_{transient_id.replace('/', '_')}"


def _check(what: str, text: str, rule: re.Pattern[str], hint: str) -> None:
    if not text:
        raise DeviceNameError(f"the {what} is empty", hint=hint)
    if rule.fullmatch(text) is None:
        raise DeviceNameError(f"{text!r} is not a {what}", hint=hint)
