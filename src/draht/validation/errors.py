"""What can be wrong with an object, field by field.

Owns `FieldError`, the report in which the rules collect them, and how two sets of rules that overlap become one list.
It doesn't know any rule.

Upstream judges an object twice: by rules written by hand and by rules declared beside the types. Where both find the
same thing, the hand-written error is marked as covered and is left out, unless the declared rules didn't find it after
all. The declared errors follow the others. Source: ``k8s.io/apiserver/pkg/registry/rest/validate.go`` and
``k8s.io/apimachinery/pkg/api/validate/errors.go`` at v0.37.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from draht.api.printable import printable

__all__ = ["FieldError", "Kind", "Report", "one_of"]

Kind = Literal[
    "Required", "Invalid", "NotSupported", "NotFound", "Duplicate", "Forbidden", "TooLong", "TooMany", "InternalError"
]
"""Upstream's types of field errors, without ``FieldValue`` in front."""

_SHOWN: Final = 60
"""How many characters of a value a message shows."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong with one field.

    Args:
        path: The field, as Kubernetes writes it: ``spec.devices[3].attributes[index].int``.
        kind: What sort of thing it is.
        message: What must be, as the rest of a sentence that begins with the value.
        value: The value that is refused, where showing it helps.
        hint: The next step, where one is known.
        picture: Of an expression: what is wrong with it, with carets.
    """

    path: str
    kind: Kind
    message: str
    value: Any = None
    hint: str | None = None
    picture: str | None = None

    @property
    def text(self) -> str:
        """The message with the value before it."""
        return self.message if self.value is None else f"{_shown(self.value)} {self.message}"

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.text}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)[:_SHOWN]
    text = str(value)
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "…"
    return f'"{printable(text)}"'


@dataclass(frozen=True, slots=True)
class _Entry:
    error: FieldError
    origin: str
    """The rule, where upstream compares by it."""
    marked: bool
    """Of a hand-written rule: covered by a declared one. Of a declared rule: it may replace a hand-written one."""


@final
class Report:
    """Collects what rules find, those written by hand and those declared, and puts both together."""

    __slots__ = ("_declared", "_written")

    def __init__(self) -> None:
        self._written: list[_Entry] = []
        self._declared: list[_Entry] = []

    def add(
        self,
        kind: Kind,
        path: str,
        message: str,
        value: Any = None,
        *,
        origin: str = "",
        covered: bool = False,
        hint: str | None = None,
        picture: str | None = None,
    ) -> None:
        """What a rule written by hand found."""
        self._written.append(_Entry(FieldError(path, kind, message, value, hint, picture), origin, covered))

    def declare(
        self, kind: Kind, path: str, message: str, value: Any = None, *, origin: str = "", replaces: bool = True
    ) -> None:
        """What a declared rule found; ``replaces`` is upstream's level "beta"."""
        self._declared.append(_Entry(FieldError(path, kind, message, value), origin, replaces))

    def required(self, path: str, message: str = "a value is required", **marks: Any) -> None:
        """A value is missing."""
        self.add("Required", path, message, **marks)

    def invalid(self, path: str, value: Any, message: str, **marks: Any) -> None:
        """A value isn't what it must be."""
        self.add("Invalid", path, message, value, **marks)

    def each_invalid(self, path: str, value: Any, messages: Iterable[str], **marks: Any) -> None:
        """A value that several rules refuse."""
        for message in messages:
            self.add("Invalid", path, message, value, **marks)

    def too_long(self, path: str, limit: int, **marks: Any) -> None:
        """A text has more bytes than it may have."""
        self.add("TooLong", path, f"must have at most {limit} bytes", **marks)

    def too_many(self, path: str, count: int, limit: int, **marks: Any) -> None:
        """A list or map has more entries than it may have."""
        self.add("TooMany", path, f"must have at most {limit} entries, not {count}", **marks)

    def duplicate(self, path: str, value: Any, **marks: Any) -> None:
        """A list has something twice that it may have once."""
        self.add("Duplicate", path, "is there twice", value, **marks)

    def not_supported(self, path: str, value: Any, supported: Iterable[str], **marks: Any) -> None:
        """A value isn't one of those that there are."""
        self.add("NotSupported", path, one_of(supported), value, **marks)

    def forbidden(self, path: str, message: str, **marks: Any) -> None:
        """A value may not be there."""
        self.add("Forbidden", path, message, **marks)

    @property
    def has_written(self) -> bool:
        """Whether rules written by hand have found anything so far."""
        return bool(self._written)

    def errors(self) -> tuple[FieldError, ...]:
        """Everything that was found, in upstream's order."""
        replaced = {
            (entry.error.kind, entry.error.path, entry.origin)
            for entry in self._declared
            if entry.marked and (entry.origin or entry.error.kind != "Invalid")
        }
        # Upstream, too, drops what hand-written rules say twice in the same words, and not what declared ones do.
        kept: dict[tuple[str, str, str], FieldError] = {}
        for entry in self._written:
            error = entry.error
            if not entry.marked or (error.kind, error.path, entry.origin) not in replaced:
                kept.setdefault((error.kind, error.path, error.text), error)
        return (*kept.values(), *(entry.error for entry in self._declared))


def one_of(supported: Iterable[str]) -> str:
    """Which values there are."""
    return "must be one of " + ", ".join(supported)
