"""The kubectl command against one cluster, whatever the machine's own configuration says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cluster.errors import ClusterError, CommandError

__all__ = ["Kubectl"]


class Kubectl:
    """The kubectl of the cluster's own release.

    Attributes:
        program: The command.
    """

    def __init__(self, program: Path, directory: Path) -> None:
        self.program = program
        self._kubeconfig = directory / "kubeconfig"
        self._cache = directory / "kubectl-cache"

    def __call__(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - it's what subprocess calls it
        check: bool = True,
        timeout: float = 60.0,
        kubeconfig: Path | None = None,
    ) -> str:
        """What ``kubectl ARGUMENTS`` writes.

        Args:
            arguments: Of kubectl.
            input: What it reads.
            check: Whether a failure is an error; else what it wrote is returned, with what it complained about.
            timeout: Seconds until it counts as failed.
            kubeconfig: Whose identity it uses; the administrator's if not given.

        Raises:
            CommandError: It failed.
            ClusterError: It didn't end in time.
        """
        command = [
            str(self.program),
            f"--kubeconfig={kubeconfig or self._kubeconfig}",
            f"--cache-dir={self._cache}",
            *arguments,
        ]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "KUBERC": "off"},
                input=input if input is not None else "",
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"`kubectl {' '.join(arguments)}` didn't end within {timeout:.0f} s") from error
        if done.returncode == 0:
            return done.stdout
        if check:
            raise CommandError(["kubectl", *arguments], done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr
