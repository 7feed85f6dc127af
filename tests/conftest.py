"""Fixtures that every topic may use: what is expensive to start is started once per run.

Where something a fixture needs is missing, its tests are skipped with one line, or fail where ``CI`` is set; see
`requirements.require`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import busybox
import cluster_programs
import engines
import gotoolchain
import leftovers
import oracle_client
import private_docker
from cluster.cluster import Cluster
from cluster.network import CNI_PROGRAMS
from requirements import require


@pytest.fixture(scope="session")
def oracle() -> Iterator[oracle_client.Oracle]:
    """The running oracle around upstream's Go libraries."""
    try:
        program = oracle_client.build()
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise
    running = oracle_client.Oracle(program)
    yield running
    running.close()


@pytest.fixture(scope="session")
def busybox_rootfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system with a static busybox, for containers without an image."""
    require(shutil.which("busybox"), "no busybox on this machine (Debian package busybox-static)")
    return busybox.make_rootfs(tmp_path_factory.mktemp("rootfs"))


@pytest.fixture(scope="session")
def engine_programs() -> dict[str, Path]:
    """The container engines built from source: dockerd, containerd, its shim, runc and docker, by name."""
    try:
        return engines.ensure()
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise


@pytest.fixture(scope="session")
def dockerd(engine_programs: dict[str, Path]) -> Iterator[private_docker.Docker]:
    """A private docker engine that reads CDI specs; ends with the run, and ends what a killed run has left."""
    require(os.geteuid() == 0, "dockerd needs root")
    leftovers.sweep_dead_runs()
    docker = private_docker.start(engine_programs)
    yield docker
    docker.stop()


@pytest.fixture(scope="session")
def docker_image(dockerd: private_docker.Docker, busybox_rootfs: Path) -> str:
    """Name of an image in the private docker engine, made from `busybox_rootfs`."""
    dockerd.import_image(busybox_rootfs, "draht-test:busybox")
    return "draht-test:busybox"


@pytest.fixture(scope="session")
def cluster_needs() -> None:
    """What clusters with nodes need; see `Cluster.up`."""
    require(os.geteuid() == 0, "nodes of a cluster need root")
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    for command, package in (
        ("runc", "runc"),
        ("ip", "iproute2"),
        ("busybox", "busybox-static"),
        ("openssl", "openssl"),
    ):
        require(shutil.which(command, path=path), f"no {command} on this machine (Debian package {package})")
    require(CNI_PROGRAMS.is_dir(), "no CNI plugins on this machine (Debian package containernetworking-plugins)")
    try:
        cluster_programs.ensure()
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise


@pytest.fixture(scope="session")
def cluster(cluster_needs: None) -> Iterator[Cluster]:
    """A real Kubernetes with two nodes and the features that are on by default; for tests marked ``cluster``."""
    running = Cluster.up(f"t{os.getpid()}")
    yield running
    running.down()
