"""docker: a client of a daemon that may be elsewhere, off, too old, or told not to read CDI.

Where the rules come from: ``--device vendor/class=name`` came with docker 25 behind ``features.cdi``, which is on by
default since 28.2; the daemon's spec directories are in ``docker info``. docker has no ``--rootfs``: a directory is
imported as an image once for each state of its content (`draht.host.engines.rootfs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from draht.api.finding import Finding
from draht.cdi import is_qualified_name
from draht.host.engine import Container, ContainerRequest, EngineError, EngineInfo, Node
from draht.host.engines.client import ClientEngine, container_from
from draht.host.engines.command import Command, Outcome
from draht.host.engines.rootfs import import_rootfs
from draht.host.engines.versions import DOCKER_CDI_DEFAULT, docker_cdi_version, release

__all__ = ["Docker"]

_CDI_ON = 'set {"features": {"cdi": true}} in /etc/docker/daemon.json and restart docker'


class Docker(ClientEngine):
    """docker through its client; which daemon that means is the client's business (``DOCKER_HOST``, contexts).

    Args:
        path: The executable.
        environ: Environment of the client; None is that of this process.
    """

    name = "docker"

    def __init__(self, path: str, *, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(Command(self.name, path, environ=environ))

    @cached_property
    def _daemon(self) -> Mapping[str, Any]:
        """``docker info``; raises if the daemon doesn't answer."""
        outcome = self.command.run("info", "--format", "{{json .}}")
        answer = self.command.decode("describe itself", outcome.stdout) if outcome.stdout.strip() else {}
        if not isinstance(answer, dict):
            raise EngineError("docker can't describe itself: its answer is not an object")
        errors = answer.get("ServerErrors") or ()
        if outcome.status != 0 or errors or not answer.get("ServerVersion"):
            reason = Outcome(1, "", str(errors[0])).complaint if errors else outcome.complaint
            raise EngineError(f"the docker daemon does not answer: {reason}", hint="start it: `systemctl start docker`")
        return answer

    @cached_property
    def _api_version(self) -> str:
        return self.command.must("tell its version", "version", "--format", "{{.Server.APIVersion}}").strip()

    def info(self) -> EngineInfo:
        """See `draht.host.engine.Engine.info`."""
        path = self.command.path
        try:
            daemon, api_version = self._daemon, self._api_version
        except EngineError as error:
            refused = "permission denied" in error.message
            problem = Finding(
                kind="docker-not-allowed" if refused else "docker-daemon-silent",
                severity="broken",
                message=error.message,
                fix="join the group `docker` (it means root), or use sudo" if refused else str(error.hint or ""),
                where="docker",
            )
            return EngineInfo(name=self.name, version=None, path=path, cdi_version=None, problems=(problem,))
        version = str(daemon.get("ServerVersion"))
        cdi_version, source = docker_cdi_version(api_version)
        directories = tuple(str(one) for one in daemon.get("CDISpecDirs") or ())
        problems = []
        if cdi_version is None:
            problems.append(
                Finding(
                    kind="engine-without-cdi",
                    severity="broken",
                    message=f"docker {version} reads no CDI specs",
                    fix="install docker 25 or newer",
                    where="docker",
                )
            )
        elif not directories:
            by_default = (release(api_version) or (0, 0)) >= DOCKER_CDI_DEFAULT
            problems.append(
                Finding(
                    kind="docker-cdi-off",
                    severity="broken",
                    message=f"docker {version} has CDI "
                    + ("switched off" if by_default else "off, which is its default"),
                    fix=_CDI_ON,
                    where="docker",
                )
            )
        return EngineInfo(
            name=self.name,
            version=version,
            path=path,
            cdi_version=cdi_version,
            cdi_source=source,
            spec_directories=directories,
            rootless=any("name=rootless" in str(option) for option in daemon.get("SecurityOptions") or ()),
            problems=tuple(problems),
        )

    def source(self, request: ContainerRequest, *, pull: bool) -> list[str]:
        """The image, pulled with visible progress, or the image made of the root file system."""
        if request.rootfs is not None:
            image = import_rootfs(self.command, request.rootfs)
        else:
            image = str(request.image)
            if pull and self.command.run("image", "inspect", "--format", "{{.Id}}", image).status != 0:
                self.command.visible(f"pull the image {image}", "pull", image)
        return ["--pull", "never", image]

    def limits(self, request: ContainerRequest) -> list[str]:  # noqa: ARG002 — the daemon's own limits apply
        """Nothing: the daemon gives what it has itself."""
        return []

    def ready(self, container_id: str) -> None:
        """Nothing: docker has no step between create and start."""

    def is_missing(self, outcome: Outcome) -> bool:
        """Docker says ``No such container``."""
        return "no such container" in outcome.stderr.lower()

    def details(self, inspected: Mapping[str, Any]) -> Container:
        """See `ClientEngine.details`."""
        return container_from(self.name, inspected, cdi_names=_cdi_names, device_nodes=_device_nodes)

    def hint(self, complaint: str) -> str | None:
        """The next step for complaints that people meet with CDI."""
        if "could not select device driver" in complaint:
            return _CDI_ON
        if "CDI device injection failed" in complaint or "unresolvable CDI device" in complaint:
            directories = [str(one) for one in self._daemon.get("CDISpecDirs") or ()]
            return f"docker reads CDI specs from {' and '.join(directories) or 'nowhere'}; see `draht cdi dirs`"
        return None


def _cdi_names(inspected: Mapping[str, Any]) -> list[str]:
    """CDI names of ``--device``, and what ``--gpus`` asks for in CDI's words.

    ``--gpus`` selects by the ids that NVIDIA's specs use as device names (index or UUID); a count selects any, so the
    answer that can't be wrong is ``all``.
    """
    names: list[str] = []
    for request in _list(_mapping(inspected.get("HostConfig")).get("DeviceRequests")):
        ids = [str(one) for one in _list(request.get("DeviceIDs"))]
        if request.get("Driver") == "cdi":
            names += [one for one in ids if is_qualified_name(one)]
        elif any("gpu" in _list_of(option) for option in request.get("Capabilities") or ()):
            names += [f"nvidia.com/gpu={one}" for one in ids] or ["nvidia.com/gpu=all"]
    return names


def _device_nodes(inspected: Mapping[str, Any]) -> list[Node]:
    return [
        Node(path=str(device.get("PathInContainer", "")), host_path=str(device.get("PathOnHost") or "") or None)
        for device in _list(_mapping(inspected.get("HostConfig")).get("Devices"))
    ]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list_of(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else []


def _list(value: object) -> list[Any]:
    """The items of a list that are objects or strings; nothing for anything else."""
    return [item for item in _list_of(value) if isinstance(item, Mapping | str)]
