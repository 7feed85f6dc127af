"""Container engines newer than Debian's, built from the Go modules in ``tests/engines``.

Owns which programs are built and how: dockerd with the containerd, shim and runc below it, and the docker client. They
exist because docker's CDI support can only be proven by a real dockerd and Debian 12 has none that reads CDI; the nodes
of the test cluster run on the same containerd. Nothing is installed: the programs lie in the build cache.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import go_programs
from go_programs import Module

__all__ = ["CONTAINERD", "MODULES", "ensure"]

HOME = Path(__file__).resolve().parents[1] / "tests" / "engines"

CONTAINERD = Module(
    HOME / "containerd",
    {
        name: f"github.com/containerd/containerd/v2/cmd/{name}"
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    },
    versions={"github.com/containerd/containerd/v2/version.Version": "github.com/containerd/containerd/v2"},
)
MODULES = (
    Module(
        HOME / "dockerd",
        {"dockerd": "github.com/moby/moby/v2/cmd/dockerd"},
        versions={"github.com/moby/moby/v2/dockerversion.Version": "github.com/moby/moby/v2"},
    ),
    CONTAINERD,
    # Without libseccomp runc refuses every container that has a seccomp profile, and dockerd always sets one.
    Module(HOME / "runc", {"runc": "github.com/opencontainers/runc"}, ("-tags", "seccomp"), {"CGO_ENABLED": "1"}),
    # The client's module has no go.mod of its own, so Go would compile it as the language of 2021.
    Module(
        HOME / "docker",
        {"docker": "github.com/docker/cli/cmd/docker"},
        ("-gcflags=github.com/docker/cli/...=-lang=go1.26",),
        versions={"github.com/docker/cli/cli/version.Version": "github.com/docker/cli"},
    ),
)


def ensure(say: Callable[[str], None] = go_programs.silent) -> dict[str, Path]:
    """The built programs by name; builds those that aren't in the cache yet.

    Raises:
        gotoolchain.GoMissingError: There is no Go toolchain that is new enough.
        gotoolchain.GoBuildError: A program doesn't compile.
    """
    return go_programs.ensure("engine", MODULES, say)
