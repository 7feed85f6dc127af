"""Container engines newer than Debian's, built from the Go modules in ``tests/engines``.

Owns which programs are built and how: dockerd with the containerd, shim and runc below it, and the docker client. They
exist because docker's CDI support can only be proven by a real dockerd and Debian 12 has none that reads CDI. Nothing
is installed: the programs lie in the build cache under a key made from the modules' lock files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import buildcache
import gotoolchain

__all__ = ["MODULES", "PROGRAMS", "Program", "ensure"]

HOME = Path(__file__).resolve().parents[1] / "tests" / "engines"


@dataclass(frozen=True)
class Program:
    """One program, the module that pins it, and what its build needs."""

    name: str
    module: str
    package: str
    arguments: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=lambda: {"CGO_ENABLED": "0"})
    version_variable: str | None = None


PROGRAMS = (
    Program(
        "dockerd",
        "dockerd",
        "github.com/moby/moby/v2/cmd/dockerd",
        version_variable="github.com/moby/moby/v2/dockerversion.Version",
    ),
    Program(
        "containerd",
        "containerd",
        "github.com/containerd/containerd/v2/cmd/containerd",
        version_variable="github.com/containerd/containerd/v2/version.Version",
    ),
    Program("containerd-shim-runc-v2", "containerd", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
    # Without libseccomp runc refuses every container that has a seccomp profile, and dockerd always sets one.
    Program("runc", "runc", "github.com/opencontainers/runc", ("-tags", "seccomp"), {"CGO_ENABLED": "1"}),
    # The client's module has no go.mod of its own, so Go would compile it as the language of 2021.
    Program(
        "docker",
        "docker",
        "github.com/docker/cli/cmd/docker",
        ("-gcflags=github.com/docker/cli/...=-lang=go1.26",),
        version_variable="github.com/docker/cli/cli/version.Version",
    ),
)
MODULES = tuple(HOME / name for name in ("dockerd", "containerd", "runc", "docker"))


def silent(line: str) -> None:
    """Say nothing."""


def ensure(say: Callable[[str], None] = silent) -> dict[str, Path]:
    """The built programs by name; builds those that aren't in the cache yet.

    Raises:
        gotoolchain.GoMissingError: There is no Go toolchain that is new enough.
        gotoolchain.GoBuildError: A program doesn't compile.
    """
    built: dict[str, Path] = {}
    for module in MODULES:
        programs = [program for program in PROGRAMS if program.module == module.name]
        key = buildcache.digest([*module.rglob("go.*"), *module.rglob("*.go")], *map(repr, programs))

        def build_into(directory: Path, module: Path = module, programs: list[Program] = programs) -> None:
            for program in programs:
                say(f"engine {program.name}: not built yet; building it")
                _build(module, program, directory / program.name)

        directory = buildcache.entry(f"engine-{module.name}", key, build_into, keep=2)
        built.update({program.name: directory / program.name for program in programs})
    return built


def _build(module: Path, program: Program, target: Path) -> None:
    flags = "-s -w"
    if program.version_variable:
        flags += f" -X {program.version_variable}={_pinned_version(module, program.package)}"
    gotoolchain.build(
        module, program.package, target, arguments=["-ldflags", flags, *program.arguments], variables=program.variables
    )


def _pinned_version(module: Path, package: str) -> str:
    for path, version in re.findall(r"^\s*(?:require )?(\S+) v(\S+)", (module / "go.mod").read_text(), re.MULTILINE):
        if package.startswith(f"{path}/"):
            return str(version).removesuffix("+incompatible")
    raise ValueError(f"{module}/go.mod doesn't pin {package}")
