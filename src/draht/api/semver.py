"""Semantic versions as Kubernetes' dynamic resource allocation reads and orders them.

Driver and firmware versions are device attributes; selectors compare them. Three readings exist upstream, and all are
here because they differ:

- `Version(text)`: what a selector sees. ``github.com/blang/semver/v4`` v4.0.0 ``Parse``, with its 64-bit limits.
- `Version.normalized`: CEL's ``semver(x, true)``, which forgives a leading ``v``, missing parts and leading zeros.
- `is_valid_attribute`: what the API server lets into a ResourceSlice (v1.37.2 ``pkg/apis/resource/validation``): the
  grammar of semver.org without a limit on the numbers, but at most 64 characters. A version of it with a number above
  2^64-1 is stored, and then no selector can read it.

Precedence is that of Semantic Versioning 2.0.0, item 11; build metadata takes no part in it.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final, final

from draht.api.errors import DrahtError

__all__ = ["MAX_ATTRIBUTE_LENGTH", "Version", "VersionError", "is_valid_attribute"]

MAX_ATTRIBUTE_LENGTH: Final = 64
"""Most characters (bytes) of a version attribute."""

_MAX_UINT64: Final = 2**64 - 1
_SHOWN: Final = 40

_NUMBER = r"(0|[1-9][0-9]*+)"
_IDENTIFIERS = r"([0-9A-Za-z-]++(?>(?:\.[0-9A-Za-z-]++)*))"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?>(?:-{_IDENTIFIERS})?)(?>(?:\+{_IDENTIFIERS})?)")


class VersionError(DrahtError):
    """A text is no semantic version."""


@final
@total_ordering
class Version:
    """A semantic version; equality, order and hash ignore build metadata.

    Immutable. ``str`` gives the version back with its build metadata.

    Raises:
        VersionError: The text is no semantic version, or one of its numbers has more than 64 bits.
    """

    __slots__ = ("_build", "_key", "_prerelease")

    _prerelease: tuple[str, ...]
    _build: tuple[str, ...]
    # Numbers sort before words, and a version without pre-release after all with one.
    _key: tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text)
        if match is None:
            raise VersionError(
                f"{_shown(text)} is no semantic version",
                hint="write major.minor.patch without leading zeros, such as 1.2.3 or 1.2.3-rc.1",
            )
        major, minor, patch, prerelease, build = match.groups()
        self._prerelease = tuple(prerelease.split(".")) if prerelease is not None else ()
        self._build = tuple(build.split(".")) if build is not None else ()
        self._key = (
            _number(major, text),
            _number(minor, text),
            _number(patch, text),
            prerelease is None,
            tuple(_identifier(part, text) for part in self._prerelease),
        )

    @classmethod
    def normalized(cls, text: str) -> Version:
        """Read a version that may start with ``v``, lack minor and patch, or have leading zeros in its three numbers.

        Raises:
            VersionError: It is no version all the same, or is short and has a pre-release or build metadata.
        """
        parts = text.removeprefix("v").split(".", 2)
        for index, part in enumerate(parts):
            if len(part) > 1:
                bare = part.lstrip("0")
                # The zero of "0-rc.1" is the number itself.
                parts[index] = bare if bare and bare[0] in "0123456789" else f"0{bare}"
        if len(parts) < 3 and ("-" in parts[-1] or "+" in parts[-1]):
            raise VersionError(
                f"{_shown(text)} has a pre-release or build metadata but no patch number",
                hint="write all three numbers, such as 1.2.0-rc.1",
            )
        parts += ["0"] * (3 - len(parts))
        try:
            return cls(".".join(parts))
        except VersionError as error:
            raise VersionError(f"{_shown(text)} is no version", hint=error.hint) from None

    @property
    def major(self) -> int:
        """The first number."""
        return self._key[0]

    @property
    def minor(self) -> int:
        """The second number."""
        return self._key[1]

    @property
    def patch(self) -> int:
        """The third number."""
        return self._key[2]

    @property
    def prerelease(self) -> tuple[str, ...]:
        """The identifiers after the hyphen."""
        return self._prerelease

    @property
    def build(self) -> tuple[str, ...]:
        """The identifiers after the plus sign."""
        return self._build

    def compare(self, other: Version) -> int:
        """-1, 0 or 1 as this precedes, equals or follows the other."""
        return (self._key > other._key) - (self._key < other._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key == other._key

    def __lt__(self, other: Version) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        text = f"{self._key[0]}.{self._key[1]}.{self._key[2]}"
        if self._prerelease:
            text += "-" + ".".join(self._prerelease)
        if self._build:
            text += "+" + ".".join(self._build)
        return text

    def __repr__(self) -> str:
        return f"Version({str(self)!r})"


def is_valid_attribute(text: str) -> bool:
    """Whether the API server accepts the text as the version attribute of a device."""
    if len(text) > MAX_ATTRIBUTE_LENGTH:
        return False
    match = _VERSION.fullmatch(text)
    return match is not None and not any(_has_leading_zero(part) for part in (match[4] or "").split("."))


def _has_leading_zero(identifier: str) -> bool:
    return len(identifier) > 1 and identifier[0] == "0" and identifier.isdigit()


def _number(digits: str, text: str) -> int:
    # The length first: a megabyte of digits must not be converted to be refused.
    if len(digits) > 20 or int(digits) > _MAX_UINT64:
        raise VersionError(f"{_shown(text)} has a number above 2^64-1", hint="shorten the number")
    return int(digits)


def _identifier(part: str, text: str) -> tuple[int, int, str]:
    if not part.isdigit():
        return (1, 0, part)
    if _has_leading_zero(part):
        raise VersionError(
            f"{_shown(text)} has a numeric pre-release part with a leading zero", hint="drop the leading zero"
        )
    return (0, _number(part, text), "")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
