"""Debian packages that a target needs and this machine lacks: named first, then installed.

Owns the list of packages with the reason for each, and how they are installed as root or with sudo. It touches nothing
where everything is there, and doesn't start services.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from failure import SetupError

__all__ = ["NEEDS", "Package", "ensure", "missing"]


@dataclass(frozen=True)
class Package:
    """A Debian package, why it is needed, and how its absence is seen without asking dpkg."""

    name: str
    reason: str
    present: Callable[[], bool]


def _command(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def _file(*paths: str) -> Callable[[], bool]:
    return lambda: any(Path(path).exists() for path in paths)


def _installed(package: str) -> Callable[[], bool]:
    return lambda: bool(list(Path("/var/lib/dpkg/info").glob(f"{package}.list")))


def _seccomp_headers() -> bool:
    if shutil.which("pkg-config") is None:
        return False
    asked = subprocess.run(["pkg-config", "--exists", "libseccomp"], check=False, stdin=subprocess.DEVNULL)
    return asked.returncode == 0


def _can_make_environments() -> bool:
    # Debian splits ensurepip from Python; uv needs neither.
    return any(importlib.util.find_spec(module) is not None for module in ("uv", "ensurepip"))


CERTIFICATES = Package(
    "ca-certificates", "Go fetches modules over TLS", _file("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem")
)
BUSYBOX = Package("busybox-static", "the root file system of demo and test containers", _installed("busybox-static"))
RUNC = Package("runc", "the runtime below podman and containerd, and an engine by itself", _command("runc"))
CONTAINERS = (BUSYBOX, Package("podman", "a container engine", _command("podman")), RUNC)

NEEDS: dict[str, tuple[Package, ...]] = {
    "environment": (
        Package(
            f"python{sys.version_info.major}.{sys.version_info.minor}-venv",
            "makes the virtual environment",
            _can_make_environments,
        ),
    ),
    "go": (CERTIFICATES,),
    "containers": CONTAINERS,
    "engines": (
        CERTIFICATES,
        Package("gcc", "builds runc", _command("gcc")),
        Package("libc6-dev", "builds runc", _file("/usr/include/stdlib.h")),
        Package("libseccomp-dev", "builds runc", _seccomp_headers),
        Package("pkg-config", "builds runc", _command("pkg-config")),
    ),
    "cluster": (
        CERTIFICATES,
        BUSYBOX,
        RUNC,
        Package("openssl", "makes the certificates of the test cluster", _command("openssl")),
        Package("iproute2", "makes the network of the test cluster", _command("ip")),
        Package("containernetworking-plugins", "connects pods of the test cluster", _file("/usr/lib/cni/bridge")),
    ),
    "machine": (Package("debootstrap", "makes the fresh machine of a test", _command("debootstrap")),),
}
"""Part of the set-up → packages it needs."""


def missing(parts: list[str]) -> list[Package]:
    """The packages that the parts need and the machine lacks, each once."""
    wanted = {package.name: package for part in parts for package in NEEDS.get(part, ())}
    return [package for package in wanted.values() if not package.present()]


def ensure(parts: list[str], say: Callable[[str], None]) -> None:
    """Install what is missing.

    Raises:
        SetupError: This isn't Debian or Ubuntu, there is no way to become root, or apt-get failed.
    """
    packages = missing(parts)
    if not packages:
        return
    names = [package.name for package in packages]
    if shutil.which("apt-get") is None:
        raise SetupError(
            f"not found: {', '.join(names)}", hint="this isn't Debian or Ubuntu: install them with your package manager"
        )
    for package in packages:
        say(f"Debian package {package.name}: missing, {package.reason}; installing it")
    prefix = _as_root()
    # Lists can be absent (a fresh machine) or name files that are gone. A third-party source that fails here must not
    # matter: whether the packages can be had, the installation itself tells.
    _apt([*prefix, "apt-get", "update", "-qq"], must_work=False)
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "--no-upgrade"]
    _apt([*prefix, "env", "DEBIAN_FRONTEND=noninteractive", *install, *names], must_work=True)
    still = [package.name for package in packages if not package.present()]
    if still:
        raise SetupError(f"installed, but not found: {', '.join(still)}", hint="check PATH and `dpkg --audit`")


def _as_root() -> list[str]:
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        raise SetupError("installing Debian packages needs root", hint="run this as root, or install sudo")
    return ["sudo"] if sys.stdin.isatty() else ["sudo", "--non-interactive"]


def _apt(command: list[str], *, must_work: bool) -> None:
    done = subprocess.run(
        command, stdin=None if sys.stdin.isatty() else subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if must_work and done.returncode != 0:
        tail = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise SetupError(f"apt-get failed:\n{tail}", hint="is another apt-get running, or the network missing?")
