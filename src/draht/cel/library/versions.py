"""Semantic versions in expressions: ``semver("1.2.3")`` and what can be asked of them.

Owns k8s.io/apiserver v0.37.2 ``pkg/cel/library/semverlib.go`` in version 1, which can normalize. The versions
themselves are `draht.api.semver`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from draht.api.semver import Version, VersionError
from draht.cel.declarations import Function, Library, Overload
from draht.cel.errors import EvaluationError
from draht.cel.library.charges import one, one_unit, scan, scanned
from draht.cel.types import BOOL, INT, STRING, Type
from draht.cel.values import SEMVER

__all__ = ["LIBRARY"]

_TWO_63: Final = 1 << 63


def _read(text: str, normalize: bool) -> Version:
    return Version.normalized(text) if normalize else Version(text)


def _semver(text: str, normalize: bool = False) -> Version:
    try:
        return _read(text, normalize)
    except VersionError as error:
        raise EvaluationError(error.message, hint=error.hint) from None


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _read(text, normalize)
    except VersionError:
        return False
    return True


def _int64(number: int) -> int:
    # Upstream puts its uint64 into an int64 as it is.
    return number - 2 * _TWO_63 if number >= _TWO_63 else number


def _major(version: Version) -> int:
    return _int64(version.major)


def _minor(version: Version) -> int:
    return _int64(version.minor)


def _patch(version: Version) -> int:
    return _int64(version.patch)


def _is_greater_than(a: Version, b: Version) -> bool:
    return a.compare(b) > 0


def _is_less_than(a: Version, b: Version) -> bool:
    return a.compare(b) < 0


def _compare_to(a: Version, b: Version) -> int:
    return a.compare(b)


def _method(id_: str, call: Callable[..., Any], result: Type, *parameters: Type) -> Overload:
    return Overload(id_, (SEMVER, *parameters), result, call, member=True, estimate=one_unit, actual=one)


def _reader(id_: str, call: Callable[..., Any], result: Type, *parameters: Type) -> Overload:
    return Overload(id_, (STRING, *parameters), result, call, estimate=scan, actual=scanned)


LIBRARY: Final = Library(
    "kubernetes.Semver",
    (
        Function(
            "semver",
            (
                _reader("string_to_semver", _semver, SEMVER),
                _reader("string_bool_to_semver", _semver, SEMVER, BOOL),
            ),
        ),
        Function(
            "isSemver",
            (
                _reader("is_semver_string", _is_semver, BOOL),
                _reader("is_semver_string_bool", _is_semver, BOOL, BOOL),
            ),
        ),
        Function("isGreaterThan", (_method("semver_is_greater_than", _is_greater_than, BOOL, SEMVER),)),
        Function("isLessThan", (_method("semver_is_less_than", _is_less_than, BOOL, SEMVER),)),
        Function("compareTo", (_method("semver_compare_to", _compare_to, INT, SEMVER),)),
        Function("major", (_method("semver_major", _major, INT),)),
        Function("minor", (_method("semver_minor", _minor, INT),)),
        Function("patch", (_method("semver_patch", _patch, INT),)),
    ),
)
