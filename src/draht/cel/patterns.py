"""Regular expressions of users, compiled once: RE2's language in google-re2, in time linear in the text.

Go's ``regexp`` and RE2 are the same language by the same author, up to limits; what only one of them takes is told
here. This is the only module in which patterns that people write are run.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # google-re2 ships no types

from draht.cel.errors import EvaluationError

__all__ = ["compiled", "found"]

_KEPT: Final = 1024
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=_KEPT)
def compiled(pattern: str) -> Any:
    """The pattern, ready to use: has ``search``, ``finditer`` and what else google-re2 gives.

    Raises:
        EvaluationError: The text is no regular expression.
    """
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else "invalid"
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError(f"error parsing regexp: {reason[:200]}") from None


def found(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text.

    Raises:
        EvaluationError: The pattern is no regular expression.
    """
    # Bytes, because nobody asks where: positions in text would have to be counted.
    return compiled(pattern).search(text.encode("utf-8", "surrogatepass")) is not None
