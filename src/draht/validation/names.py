"""What names, labels and identifiers may look like.

Owns the formats that Kubernetes has for names (``k8s.io/apimachinery/pkg/api/validate/content`` at v0.37), each as a
function from a value to everything that is wrong with it. It doesn't know which field has which format.
"""

from __future__ import annotations

import re
from typing import Final

from draht.validation.limits import LABEL_BYTES, SUBDOMAIN_BYTES

__all__ = [
    "byte_length",
    "c_identifier",
    "condition_reason",
    "extended_resource",
    "is_extended_resource",
    "label",
    "label_key",
    "label_value",
    "lowered",
    "masked_prefix",
    "path_segment",
    "subdomain",
    "too_long",
    "uuid",
]

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_RE: Final = re.compile(_LABEL)
_SUBDOMAIN_RE: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
# Go's (?i) also takes the long s and the Kelvin sign for the letters that they fold to.
_CASELESS = r"[a-zA-Z0-9\u017f\u212a](?:[-a-zA-Z0-9\u017f\u212a]*[a-zA-Z0-9\u017f\u212a])?"
_CASELESS_RE: Final = re.compile(rf"{_CASELESS}(?:\.{_CASELESS})*")
_LABEL_KEY_RE: Final = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_C_IDENTIFIER_RE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REASON_RE: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_UUID_RE: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_BORDERS = "and begin and end with a letter or digit"
_LABEL_KEY_MESSAGE = f"must consist of letters, digits, '-', '_' and '.', {_BORDERS}"


def byte_length(value: str) -> int:
    """Bytes in UTF-8, in which upstream counts."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


def too_long(limit: int) -> str:
    """The message for a name of more than these bytes."""
    return f"must have at most {limit} bytes"


def lowered(value: str) -> str:
    """Lower case as Go has it, one character for one, as far as ASCII comes out."""
    return value.translate(_LOWER) if not value.isascii() else value.lower()


_LOWER: Final = {**{ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}, 0x212A: "k", 0x130: "i"}


def masked_prefix(value: str) -> str:
    """A ``generateName`` as it is judged: a hyphen at its end is no fault."""
    return value[:-2] + "a" if len(value) > 1 and value.endswith("-") else value


def path_segment(value: str, *, prefix: bool = False) -> list[str]:
    """What can stand between the slashes of a URL, or begin it: the least that every name must be."""
    found = [f"must not have {mark!r} in it" for mark in "/%" if mark in value]
    if not prefix and value in (".", ".."):
        found.append("must not be . or ..")
    return found


def label(value: str) -> list[str]:
    """A DNS label: ``gpu-0``."""
    found = [too_long(LABEL_BYTES)] if byte_length(value) > LABEL_BYTES else []
    if not _LABEL_RE.fullmatch(value):
        if _SUBDOMAIN_RE.fullmatch(value):
            found.append("must not contain dots")
        else:
            found.append(f"must consist of lower-case letters, digits and '-', {_BORDERS}")
    return found


def subdomain(value: str, *, caseless: bool = False) -> list[str]:
    """A DNS subdomain: ``gpu.example.com``."""
    found = [too_long(SUBDOMAIN_BYTES)] if byte_length(value) > SUBDOMAIN_BYTES else []
    if caseless:
        if not _CASELESS_RE.fullmatch(value):
            found.append(f"must consist of letters, digits, '-' and '.', {_BORDERS}")
    elif not _SUBDOMAIN_RE.fullmatch(value):
        found.append(f"must consist of lower-case letters, digits, '-' and '.', {_BORDERS}")
    return found


def label_key(value: str) -> list[str]:
    """The key of a label: ``example.com/tier`` or ``tier``."""
    found = []
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return ["must have at most one slash, between a DNS subdomain and a name"]
    if slash:
        if not prefix:
            found.append("must have a DNS subdomain before the slash")
        else:
            found += [f"before the slash {message}" for message in subdomain(prefix)]
    if not name:
        found.append("must have a name" + (" behind the slash" if slash else ""))
    elif byte_length(name) > LABEL_BYTES:
        found.append(f"the name {too_long(LABEL_BYTES)}")
    if not _LABEL_KEY_RE.fullmatch(name):
        found.append(f"the name {_LABEL_KEY_MESSAGE}")
    return found


def label_value(value: str) -> list[str]:
    """The value of a label; it may be empty."""
    found = [too_long(LABEL_BYTES)] if byte_length(value) > LABEL_BYTES else []
    if value and not _LABEL_KEY_RE.fullmatch(value):
        found.append(_LABEL_KEY_MESSAGE)
    return found


def c_identifier(value: str) -> list[str]:
    """An identifier of C: ``driverVersion``."""
    if _C_IDENTIFIER_RE.fullmatch(value):
        return []
    return ["must consist of letters, digits and '_' and not begin with a digit"]


def condition_reason(value: str) -> list[str]:
    """The reason of a condition: ``DriverReady``."""
    if _REASON_RE.fullmatch(value):
        return []
    return ["must begin with a letter, go on with letters, digits, '_', ',' and ':', and not end with ',' or ':'"]


def uuid(value: str) -> list[str]:
    """A UUID in the form that Kubernetes writes."""
    if _UUID_RE.fullmatch(value):
        return []
    return ["must be a UUID with lower-case digits: xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"]


def is_extended_resource(name: str) -> bool:
    """Whether an extended resource may be called so, as the scheduler asks."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not label_key(f"requests.{name}")


def extended_resource(name: str) -> list[str]:
    """An extended resource: ``example.com/gpu``."""
    found = []
    if "/" not in name:
        found.append("must have a domain, a slash and a name, like example.com/gpu")
    elif "kubernetes.io/" in name:
        found.append("must not have the domain kubernetes.io")
    if name.startswith("requests."):
        found.append('must not begin with "requests."')
    found += label_key(f"requests.{name}")
    return found
