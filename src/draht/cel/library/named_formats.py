"""The formats that ``format.named()`` knows, and what they say of a text that doesn't have them.

Owns the checks of k8s.io/apiserver v0.37.2 ``pkg/cel/library/format.go`` and of what it uses: apimachinery's names,
kube-openapi's ``strfmt``. The messages are values that expressions see, so they are upstream's.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final, final

from draht.cel.library.url_syntax import request_uri_problem
from draht.cel.types import Type, object_type

__all__ = ["FORMAT_TYPE", "NAMED_FORMATS", "NamedFormat"]

FORMAT_TYPE: Final = object_type("kubernetes.NamedFormat")

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$"
_TIME: Final = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"

_LABEL_RE: Final = re.compile(_LABEL)
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN)
_LABEL_1035_RE: Final = re.compile(_LABEL_1035)
_KEY_RE: Final = re.compile(_KEY)
_UUID_RE: Final = re.compile(_UUID[4:].strip("^$"), re.IGNORECASE | re.ASCII)
_TIME_RE: Final = re.compile(_TIME.strip("^$"))
_BASE64_RE: Final = re.compile(_BASE64)
_DATE_RE: Final = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")

_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


@final
@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format; equal to another of the same name."""

    cel_type: ClassVar[Type] = FORMAT_TYPE
    cel_unhashable: ClassVar[bool] = True

    name: str
    problems: Callable[[str], list[str]] = field(compare=False)
    """What is wrong with a text; empty for nothing."""
    pattern_length: int = field(compare=False)
    """Length of the regular expression that a check is charged for."""

    def __str__(self) -> str:
        return self.name


def _too_long(text: str, most: int, unit: str) -> list[str]:
    if len(text.encode("utf-8", "surrogateescape")) > most:
        return [f"must be no more than {most} {unit}"]
    return []


def _mismatch(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _label(text: str) -> list[str]:
    problems = _too_long(text, _MAX_LABEL, "characters")
    if not _LABEL_RE.fullmatch(text):
        if _SUBDOMAIN_RE.fullmatch(text):
            problems.append("must not contain dots")
        else:
            problems.append(_mismatch(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return problems


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    problems = _too_long(text, _MAX_SUBDOMAIN, unit)
    if not _SUBDOMAIN_RE.fullmatch(text):
        problems.append(_mismatch(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035(text: str) -> list[str]:
    problems = _too_long(text, _MAX_LABEL, "characters")
    if not _LABEL_1035_RE.fullmatch(text):
        problems.append(_mismatch(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _as_prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of a text to which something will be appended: it may end in a hyphen."""

    def problems(text: str) -> list[str]:
        if len(text) > 1 and text.endswith("-"):
            # Upstream cuts one byte more than the hyphen.
            kept = text.encode("utf-8", "surrogateescape")[:-2]
            text = kept.decode("utf-8", "surrogateescape") + "a"
        return check(text)

    return problems


def _qualified_name(text: str) -> list[str]:
    mismatch = _mismatch(_KEY_RULE, _KEY, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {mismatch} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash:
        found = _subdomain(prefix, "bytes") if prefix else ["must be non-empty"]
        problems = [f"prefix part {problem}" for problem in found]
    if not name:
        problems.append("name part must be non-empty")
    else:
        problems += [f"name part {problem}" for problem in _too_long(name, _MAX_LABEL, "bytes")]
    if not _KEY_RE.fullmatch(name):
        problems.append(f"name part {mismatch}")
    return problems


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, _MAX_LABEL, "bytes")
    if text and not _KEY_RE.fullmatch(text):
        problems.append(_mismatch(_VALUE_RULE, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return problems


def _uri(text: str) -> list[str]:
    problem = request_uri_problem(text)
    return [] if problem is None else [problem]


def _uuid(text: str) -> list[str]:
    return [] if _UUID_RE.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if _BASE64_RE.fullmatch(text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    match = _DATE_RE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    # Go knows a year 0, which Python doesn't; it is a leap year like the year 400.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 400, month)[1]


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    parts = text.lower().split("t")
    match = _TIME_RE.fullmatch(parts[1]) if len(parts) > 1 and _is_date(parts[0]) else None
    # What follows a second "t" is not looked at.
    if match is None or match[1] > "23" or match[2] > "59" or match[3] > "59":
        return ["invalid datetime"]
    return []


NAMED_FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _as_prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_label_1035), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    # As long as the pattern for URLs of the library that upstream once used.
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _uuid, len(_UUID)),
    "byte": NamedFormat("byte", _byte, 84),
    "date": NamedFormat("date", _date, len(_TIME)),
    "datetime": NamedFormat("datetime", _datetime, len(_TIME)),
}
"""The formats by the names that expressions use."""
