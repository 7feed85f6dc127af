"""On a machine that has only Python, make and git, one command is enough; the second time it sets up nothing."""

from __future__ import annotations

import os
import re
import subprocess
import time

import pytest

import fresh_machine
from requirements import require

pytestmark = [pytest.mark.machine, pytest.mark.timeout(1800)]


def said_by(machine: fresh_machine.FreshMachine, command: str, user: str) -> str:
    """The output of a command on the machine; a failure shows it."""
    try:
        return machine.run(command, user=user, timeout=900)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"`{command}` ended with status {error.returncode}:\n{error.output}", pytrace=False)


@pytest.mark.parametrize(("suite", "user"), [("bookworm", "root"), ("trixie", "somebody")])
def test_one_command_is_enough(suite: str, user: str) -> None:
    """``make demo`` works on Debian 12 as root and on Debian 13 with sudo; a second time it sets up nothing.

    So does the fast part of the tests, with the Go toolchain that it brings along.
    """
    require(os.geteuid() == 0, "making a fresh machine needs root")
    try:
        with fresh_machine.fresh_machine(suite) as machine:
            if user != "root":
                machine.add_user(user)
            begin = time.monotonic()
            first = said_by(machine, "make demo", user)
            print(f"make demo on a fresh {suite}: {time.monotonic() - begin:.0f} s")
            assert re.search(r"^set-up: Debian package podman: missing", first, re.MULTILINE)
            assert "All hardware is simulated; the containers and what they see are real." in first
            assert "set-up" not in said_by(machine, "make demo", user)

            begin = time.monotonic()
            # Some fast tests need root (a small disk, a second user); a person with sudo sees them skipped.
            checked = said_by(machine, "CI=true make check" if user == "root" else "make check", user)
            print(f"make check on a fresh {suite}: {time.monotonic() - begin:.0f} s")
            assert "set-up: Go toolchain: none that is new enough" in checked
            assert re.search(r"^\d+ passed", checked, re.MULTILINE)
    except fresh_machine.MachineError as error:
        require(False, str(error))
