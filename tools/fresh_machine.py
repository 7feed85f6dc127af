"""A machine that has never seen draht, to prove that one command sets everything up.

It is Debian's minimal system plus what the README asks for (python3, make, git), with a clone of this checkout's last
commit inside.
``python tools/fresh_machine.py [--suite trixie] [--user] COMMAND…`` runs a command in it, for example ``make demo``.

Owns making that system (debootstrap, once, kept in the build cache), the copy for one run, and the namespaces around
the command: its own processes and mounts, which all end with it. It shares the kernel, network and control groups of
the host, so it says nothing about those. Root only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import buildcache
import leftovers

__all__ = ["SUITES", "FreshMachine", "MachineError", "fresh_machine"]

ROOT = Path(__file__).resolve().parents[1]
SUITES = ("bookworm", "trixie")
"""Debian 12 and 13."""
BROUGHT = ("ca-certificates", "git", "make", "python3")
"""What the README tells a person to have."""
CHECKOUT = "/srv/draht"

# How this host reaches its package registries is a fact of the host, so a machine on it is told: nothing of it is
# known here but the names of the settings.
REGISTRY_VARIABLES = re.compile(
    r"(?i:.*_proxy)|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|CERT|TRUSTED_HOST|DEFAULT_TIMEOUT)|UV_(?:\w*INDEX\w*|NATIVE_TLS)"
    r"|GO(?:PROXY|SUMDB|NOSUMDB|NOPROXY|PRIVATE|INSECURE)|SSL_CERT_(?:FILE|DIR)|(?:REQUESTS|CURL)_CA_BUNDLE"
)
REGISTRY_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/apt/apt.conf.d",
    "/usr/local/share/ca-certificates",
)

ENTER = """
set -eu
mount --make-rprivate /
mount --bind "$1" "$1"  # pivot_root, which container runtimes use, wants a mount point
mount --rbind /sys "$1/sys"
mount --bind /dev "$1/dev"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$1/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$1/run"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
exec chroot "$1" /usr/bin/env -i "${@:3}" /bin/bash -c "$2"
"""


class MachineError(Exception):
    """The machine can't be made here; one line."""


class FreshMachine:
    """One copy of the minimal system; see `fresh_machine`."""

    def __init__(self, directory: Path, *, show: bool = False) -> None:
        self.directory = directory
        self.show = show

    def run(
        self, command: str, *, user: str = "root", variables: Sequence[str] = (), timeout: float | None = None
    ) -> str:
        """Run a shell command in the checkout; its output and errors, as they came, unless they are shown at once.

        Raises:
            subprocess.CalledProcessError: It failed; ``output`` holds what it said.
            subprocess.TimeoutExpired: It took longer than ``timeout`` seconds; nothing of it runs any more.
        """
        home = "/root" if user == "root" else f"/home/{user}"
        inner = f"cd {CHECKOUT} && {command}"
        if user != "root":
            inner = f"exec su --preserve-environment {user} --command {shlex.quote(inner)}"
        settings = [f"HOME={home}", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        settings += [f"{name}={value}" for name, value in os.environ.items() if REGISTRY_VARIABLES.fullmatch(name)]
        entering = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "bash", "-c"]
        done = subprocess.run(
            [*entering, ENTER, "enter", self.directory, inner, *settings, *variables],
            stdin=subprocess.DEVNULL,
            stdout=None if self.show else subprocess.PIPE,
            stderr=None if self.show else subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, command, done.stdout)
        return done.stdout or ""

    def add_user(self, name: str) -> None:
        """Add a person who may become root with sudo, without a password, and owns the checkout."""
        self.run(
            "apt-get update -qq && apt-get install -y -qq --no-install-recommends sudo && "
            f"useradd --create-home --shell /bin/bash {name} && "
            f"echo '{name} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{name} && chown -R {name}: {CHECKOUT}"
        )


@contextlib.contextmanager
def fresh_machine(suite: str, *, show: bool = False) -> Iterator[FreshMachine]:
    """A new machine of a Debian suite with the last commit of this checkout; removed at the end, or by the next run.

    Args:
        suite: One of `SUITES`.
        show: Pass on what commands print instead of returning it.

    Raises:
        MachineError: It can't be made on this host.
    """
    if os.geteuid() != 0:
        raise MachineError("making a fresh machine needs root")
    leftovers.sweep_dead_runs()
    base = _base(suite)
    directory = Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))
    leftovers.record(directory)
    try:
        machine = directory / "root"
        subprocess.run(["cp", "--archive", "--reflink=auto", base, machine], check=True)
        for name in REGISTRY_FILES:
            _copy(Path(name), machine / name.lstrip("/"))
        subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, machine / CHECKOUT.lstrip("/")], check=True)
        yield FreshMachine(machine, show=show)
    finally:
        leftovers.sweep(directory)
        leftovers.forget(directory)


def _base(suite: str) -> Path:
    if shutil.which("debootstrap") is None:
        raise MachineError("there is no debootstrap (Debian package debootstrap)")

    def bootstrap(directory: Path) -> None:
        done = subprocess.run(
            [
                "debootstrap",
                "--variant=minbase",
                f"--include={','.join(BROUGHT)}",
                suite,
                directory / "root",
                _mirror(),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise MachineError(f"debootstrap of {suite} failed: {(done.stdout + done.stderr).strip()[-300:]}")

    key = buildcache.digest([], suite, *BROUGHT)
    return buildcache.entry(f"machine-{suite}", key, bootstrap, keep=1) / "root"


def _mirror() -> str:
    """Where this host has its Debian packages from."""
    sources = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    for source in sources:
        if source.is_file():
            found = re.search(r"^[^#\n]*?(https?://\S+/debian)/?(?:\s|$)", source.read_text(), re.MULTILINE)
            if found:
                return found[1]
    raise MachineError("the sources of apt name no Debian mirror")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # a link of the minimal system may lead out of it
        shutil.copy(source, target)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(
        description="Run a command on a fresh Debian machine with a clone of this checkout."
    )
    parser.add_argument("--suite", choices=SUITES, default=SUITES[0])
    parser.add_argument("--user", action="store_true", help="run it as a user with sudo instead of root")
    parser.add_argument("command", nargs="+", help="a shell command; several run one after another on one machine")
    asked = parser.parse_args()
    try:
        with fresh_machine(asked.suite, show=True) as machine:
            if asked.user:
                machine.add_user("user")
            for command in asked.command:
                print(f"$ {command}", flush=True)
                machine.run(command, user="user" if asked.user else "root")
    except MachineError as error:
        sys.exit(f"fresh machine: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"fresh machine: `{error.cmd}` ended with status {error.returncode}")


if __name__ == "__main__":
    main()
