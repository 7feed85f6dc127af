"""Errors of the test cluster: one sentence, then the evidence."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["ClusterError", "CommandError"]


class ClusterError(Exception):
    """A cluster can't be made or something in it failed; the message ends with the log of what failed."""


class CommandError(ClusterError):
    """A command against the cluster failed.

    Attributes:
        stdout: What it wrote.
        stderr: What it complained about.
        status: Its exit status.
    """

    def __init__(self, command: Sequence[str], status: int, stdout: str, stderr: str) -> None:
        super().__init__(f"`{' '.join(command)}` ended with status {status}: {stderr.strip() or stdout.strip()}")
        self.stdout = stdout
        self.stderr = stderr
        self.status = status
