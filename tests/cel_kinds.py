"""The kinds of evaluation errors (`draht.cel.errors.ErrorKind`), told from upstream's texts.

Owns the table. Upstream's errors have no codes, and draht's texts differ on purpose: they are for people.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["kind_of_upstream"]

UPSTREAM: Final = (
    (r"^no such key", "no-such-key"),
    (r"cost limit exceeded", "cost-limit"),
    (r"could not be converted to bool|should have been a bool", "not-bool"),
    (r"no such overload|expected iterable type|comprehension range type", "no-such-overload"),
    (r"overflow|range error", "overflow"),
    (r"division by zero|divide by zero|modulus by zero", "division"),
    (r"type conversion error|unsupported field type|invalid UTF-8", "conversion"),
    (r"^index out of bounds|^unsupported index|^invalid index", "index"),
)


def kind_of_upstream(text: str) -> str:
    """The kind of upstream's error."""
    for pattern, kind in UPSTREAM:
        if re.search(pattern, text):
            return kind
    return "other"
