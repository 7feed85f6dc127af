"""A finding: something about this machine that a person should know, with what to do about it.

Owns the value only. Engines, ownership, the node and `draht doctor` produce findings; nothing here decides what follows
from one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["SEVERITIES", "Finding", "Severity"]

Severity = Literal["broken", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("broken", "warning", "note")
"""From worst to mildest: *broken* stops `draht run` (on a node of Kubernetes: pods with claims), *warning* stops or
degrades some of it, *note* explains."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing found.

    Attributes:
        kind: Stable identifier in kebab-case, such as ``docker-cdi-off``; programs match on it.
        severity: See `SEVERITIES`.
        message: One sentence, lower case, without a trailing full stop.
        fix: The next step, as an instruction; empty only for notes that need none.
        where: The file, directory, socket or engine it is about.
    """

    kind: str
    severity: Severity
    message: str
    fix: str = ""
    where: str | None = None
