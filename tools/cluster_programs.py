"""The programs of a real Kubernetes cluster, built from the Go modules in ``tests/cluster/programs``.

Owns which programs make a cluster and in which versions: Kubernetes itself, etcd, kwok for simulated nodes, and the
containerd that `engines` builds too. It exists because what draht claims about Kubernetes is proven on Kubernetes.
Nothing is installed: the programs lie in the build cache. How they are started is ``tests/cluster``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import engines
import go_programs
from go_programs import Module

__all__ = ["MODULES", "OLDER", "Version", "ensure", "is_built"]

HOME = Path(__file__).resolve().parents[1] / "tests" / "cluster" / "programs"

Version = Literal["1.37", "1.33"]
"""A minor release of Kubernetes that a cluster can be made of."""


def _kubernetes(directory: str) -> Module:
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
    return Module(
        HOME / directory,
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        # Without them servers and clients say v0.0.0, and kubectl warns about the distance.
        versions={
            "k8s.io/component-base/version.gitVersion": "k8s.io/kubernetes",
            "k8s.io/client-go/pkg/version.gitVersion": "k8s.io/kubernetes",
        },
        prefix="v",
    )


KUBERNETES: dict[Version, Module] = {"1.37": _kubernetes("kubernetes"), "1.33": _kubernetes("kubernetes-1.33")}
MODULES = (
    KUBERNETES["1.37"],
    Module(HOME / "etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Module(HOME / "kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
    engines.CONTAINERD,
)
"""What a cluster of the newest version needs."""
OLDER = (KUBERNETES["1.33"],)
"""What clusters of older versions need besides."""


def ensure(version: Version = "1.37", say: Callable[[str], None] = go_programs.silent) -> dict[str, Path]:
    """The programs of a cluster by name; builds those that aren't in the cache yet.

    Raises:
        gotoolchain.GoMissingError: There is no Go toolchain that is new enough.
        gotoolchain.GoBuildError: A program doesn't compile.
    """
    others = [module for module in MODULES if module not in KUBERNETES.values() and module is not engines.CONTAINERD]
    built = go_programs.ensure("cluster", [KUBERNETES[version], *others], say)
    return built | go_programs.ensure("engine", [engines.CONTAINERD], say)


def is_built(version: Version) -> bool:
    """Whether that Kubernetes is in the cache; building it takes minutes."""
    return go_programs.is_built("cluster", KUBERNETES[version])
