"""Container images without a registry: Debian's static busybox as an OCI layout that containerd imports.

Owns the images that every node has. They differ in how their containers end. A process with the id 1 doesn't die of
SIGTERM unless it handles it, and a shell or ``sleep`` doesn't, so pods of the first image are killed at once when they
are to stop, and a test needn't wait for half a minute; those of the second get the usual signal and the usual time.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import busybox

__all__ = ["BUSYBOX", "BUSYBOX_SIGTERM", "PAUSE", "USE_CASES", "write_archive"]

PAUSE = "draht.test/pause:1"
"""Holds a pod's namespaces."""
BUSYBOX = "draht.test/busybox:1"
"""The image of test pods. Its containers are killed at once when they are to stop."""
BUSYBOX_SIGTERM = "draht.test/busybox:sigterm"
"""The same; its containers are asked to stop with SIGTERM, for tests of that."""
USE_CASES = "docker.io/library/busybox:1.36"
"""The same as the first under the name that the use cases' manifests have, which nobody can fetch here."""

SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""As in images of distributions; vendors' tools are mounted to ``/usr/bin``."""

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIGURATION = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def write_archive(path: Path) -> None:
    """Write an archive with all images; OCI image layout 1.0.0.

    Raises:
        FileNotFoundError: There is no busybox on this machine.
    """
    with tarfile.open(path, "w") as archive:
        layout = _Layout(archive)
        layer = layout.add(LAYER, _layer())
        configurations: dict[str, dict[str, Any]] = {
            PAUSE: {"Entrypoint": ["/bin/sleep", "2147483647"]},
            BUSYBOX: {"Cmd": ["/bin/sh"], "StopSignal": "SIGKILL"},
            BUSYBOX_SIGTERM: {"Cmd": ["/bin/sh"]},
            USE_CASES: {"Cmd": ["/bin/sh"], "StopSignal": "SIGKILL"},
        }
        for name, configuration in configurations.items():
            layout.add_image(name, layer, {"Env": [f"PATH={SEARCHED}"], **configuration})
        layout.finish()


def _layer() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w") as layer:
            layer.add(busybox.make_rootfs(Path(scratch)), arcname=".")
        return written.getvalue()


class _Layout:
    """An OCI image layout that is being written into a tar archive."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive
        self._manifests: list[dict[str, Any]] = []
        self._written: set[str] = set()

    def add(self, media_type: str, content: bytes) -> dict[str, Any]:
        """Write a blob; its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._written:
            self._write(f"blobs/sha256/{digest}", content)
            self._written.add(digest)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_image(self, name: str, layer: dict[str, Any], configuration: dict[str, Any]) -> None:
        """Write an image of one layer."""
        described = {
            "architecture": _architecture(),
            "os": "linux",
            "config": configuration,
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        }
        config = self.add(CONFIGURATION, json.dumps(described).encode())
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}
        descriptor = self.add(MANIFEST, json.dumps(manifest).encode())
        tag = name.rpartition(":")[2]
        names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
        self._manifests.append({**descriptor, "annotations": names})

    def finish(self) -> None:
        """Write the index."""
        self._write("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": self._manifests}
        self._write("index.json", json.dumps(index).encode())

    def _write(self, name: str, content: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self._archive.addfile(entry, io.BytesIO(content))


def _architecture() -> str:
    """The machine's architecture in Go's words."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
