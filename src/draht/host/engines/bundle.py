"""Bundle directories of the containers that runc starts for draht.

A bundle appears with its config.json in one rename, so whatever is found belongs to a hold, and is removed in any state
it can be left in. The root file system is an overlay over the user's directory: mount points and changes land in the
bundle, never in the directory. Where the kernel refuses overlays, the directory itself is mounted and changes stay.

It calls no runc.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from draht.host.engine import EngineError
from draht.host.engines.ocispec import ROOT

__all__ = ["Bundles"]

_MS_BIND = 4096
_MNT_DETACH = 2
_BUILDING = ".new-"
_LARGEST_CONFIG = 8 * 1024 * 1024


class Bundles:
    """The bundles below one directory.

    Args:
        directory: Made when the first bundle is.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._libc = ctypes.CDLL(None, use_errno=True)

    def path(self, container_id: str) -> Path:
        """Where the bundle of a container is, or would be."""
        return self.directory / container_id

    def ids(self) -> list[str]:
        """The containers that have a bundle, sorted."""
        try:
            return sorted(entry.name for entry in self.directory.iterdir() if not entry.name.startswith("."))
        except OSError:
            return []

    def config(self, container_id: str) -> dict[str, Any]:
        """The config.json of a bundle; empty if it can't be read."""
        return read_config(self.path(container_id))

    def create(self, container_id: str, config: Mapping[str, Any], lower: str) -> Path:
        """Make a bundle over a root file system.

        Raises:
            EngineError: There is one of that name, or it can't be written or mounted; then nothing is left.
        """
        place = self.path(container_id)
        building = self.directory / f"{_BUILDING}{os.getpid()}-{container_id}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._drop_abandoned()
            for part in (building, building / ROOT, building / "upper", building / "work"):
                part.mkdir(mode=0o755)
            (building / "config.json").write_text(json.dumps(config), encoding="utf-8")
            building.rename(place)
        except OSError as error:
            shutil.rmtree(building, ignore_errors=True)
            if error.errno in {errno.EEXIST, errno.ENOTEMPTY} and place.exists():
                raise EngineError(f"there is a container {container_id} already") from None
            raise EngineError(
                f"the container's bundle can't be written: {os.strerror(error.errno or 0).lower()}",
                where=str(self.directory),
                hint="see `draht doctor`; DRAHT_STATE_DIR chooses another place",
            ) from None
        try:
            self._mount_root(place, lower)
        except OSError as error:
            self.remove(container_id)
            raise EngineError(
                f"the root file system can't be mounted: {os.strerror(error.errno or 0).lower()}",
                where=lower,
                hint="runc needs root; podman can do it as a user",
            ) from None
        return place

    def remove(self, container_id: str) -> None:
        """Unmount and delete a bundle; idempotent.

        Raises:
            EngineError: Something of it is still there.
        """
        place = self.path(container_id)
        root = os.fsencode(place / ROOT)
        # Bind and overlay may lie on each other after a crash; EINVAL says that nothing is mounted any more.
        for _ in range(8):
            if self._libc.umount2(root, _MNT_DETACH) != 0:
                break
        try:
            # Where the user's own directory is still mounted, this fails instead of what follows deleting its files.
            # (`os.path.ismount` doesn't see a bind mount of the same file system.)
            (place / ROOT).rmdir()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise EngineError(
                f"the root file system of a container can't be unmounted: {os.strerror(error.errno or 0).lower()}",
                where=str(place / ROOT),
                hint="unmount it; nothing in it was removed",
            ) from None
        try:
            shutil.rmtree(place)
        except FileNotFoundError:
            return
        except OSError as error:
            raise EngineError(
                f"the container's bundle can't be removed: {os.strerror(error.errno or 0).lower()}", where=str(place)
            ) from None

    def _mount_root(self, place: Path, lower: str) -> None:
        parts = {"lowerdir": lower, "upperdir": str(place / "upper"), "workdir": str(place / "work")}
        options = ",".join(f"{key}={_escape(value)}" for key, value in parts.items())
        if self._mount("overlay", place / ROOT, "overlay", 0, options) == 0:
            return
        if self._mount(lower, place / ROOT, None, _MS_BIND, None) != 0:
            raise OSError(ctypes.get_errno(), "mount")

    def _mount(self, source: str, target: Path, kind: str | None, flags: int, options: str | None) -> int:
        encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
        result: int = self._libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
        return result

    def _drop_abandoned(self) -> None:
        """Delete what a draht that was killed in the middle of `create` has left."""
        for entry in self.directory.glob(f"{_BUILDING}*"):
            pid = entry.name.removeprefix(_BUILDING).partition("-")[0]
            if pid.isdecimal() and not Path("/proc", pid).exists():
                shutil.rmtree(entry, ignore_errors=True)


def read_config(bundle: Path) -> dict[str, Any]:
    """The config.json of any bundle directory; empty if it can't be read."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with (bundle / "config.json").open("rb") as file:
            config = json.loads(file.read(_LARGEST_CONFIG))
        if isinstance(config, dict):
            return config
    return {}


def _escape(path: str) -> str:
    """A path as overlayfs wants it in its options, where ``:`` and ``,`` separate."""
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
