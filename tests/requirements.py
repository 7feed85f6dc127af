"""How a test says that it needs something which this machine may not have.

Skipping in silence is how a suite rots: a person sees one line per skipped test, and where ``CI`` is set the test
fails.
"""

from __future__ import annotations

import os

import pytest

__all__ = ["in_ci", "require"]


def in_ci() -> bool:
    """Whether this run has to be complete."""
    return os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}


def require(condition: object, reason: str) -> None:
    """Skip the test unless the condition holds; fail it instead where ``CI`` is set.

    Args:
        condition: Anything with a truth value.
        reason: What is missing, in one line.
    """
    __tracebackhide__ = True
    if condition:
        return
    if in_ci():
        pytest.fail(f"can't run: {reason}", pytrace=False)
    pytest.skip(reason)
