"""A root file system directory as a docker image, made once for each state of its content.

docker can't run a directory. The image's tag is derived from what the directory holds (paths, types, modes, owners,
sizes, modification times, link targets, as rsync and make judge), so an unchanged directory is imported once and a
changed one again; the older image of the same directory is then dropped. It follows no mount into another file system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from draht.host.engine import EngineError
from draht.host.engines.command import Command, first_sentence

__all__ = ["fingerprint", "import_rootfs", "write_tar"]

REPOSITORY = "draht-rootfs"
"""Repository of the images; the tag is the fingerprint."""

LABEL = "draht.dev/rootfs"
"""Label of such an image with the directory's path."""


def import_rootfs(docker: Command, rootfs: str) -> str:
    """The image of a directory, imported now if docker doesn't have it.

    Raises:
        EngineError: The directory can't be read, or docker refuses the import.
    """
    directory = Path(os.path.realpath(rootfs))
    image = f"{REPOSITORY}:{fingerprint(directory)}"
    if docker.run("image", "inspect", "--format", "{{.Id}}", image).status == 0:
        return image
    _import(docker, directory, image)
    _drop_older(docker, directory, image)
    return image


def fingerprint(directory: Path) -> str:
    """32 hexadecimal digits that change when the directory's content does.

    Raises:
        EngineError: It can't be read.
    """
    digest = hashlib.sha256(os.fsencode(directory))
    for path, info in _walk(directory):
        target = str(path.readlink()) if stat.S_ISLNK(info.st_mode) else ""
        # A directory's size and time change with mount points that an engine once made in it.
        moving = (0, 0) if stat.S_ISDIR(info.st_mode) else (info.st_size, info.st_mtime_ns)
        facts = (str(path.relative_to(directory)), info.st_mode, info.st_uid, info.st_gid, *moving, target)
        digest.update(repr(facts).encode(errors="surrogateescape"))
    return digest.hexdigest()[:32]


def write_tar(directory: Path, out: IO[bytes]) -> None:
    """Write the directory's content as a tar stream with numeric owners; sockets are left out.

    Raises:
        EngineError: It can't be read.
        OSError: `out` can't be written.
    """
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for path, info in _walk(directory):
            if not stat.S_ISSOCK(info.st_mode):
                archive.add(path, arcname=str(path.relative_to(directory)), recursive=False, filter=_numeric)


def _numeric(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uname = member.gname = ""
    return member


def _walk(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All entries below a directory on its own file system, sorted, without following links."""

    def refuse(error: OSError) -> None:
        raise EngineError(
            f"the root file system can't be read: {os.strerror(error.errno or 0).lower()}", where=str(error.filename)
        )

    try:
        device = directory.stat().st_dev
        for parent, directories, files in os.walk(directory, onerror=refuse):
            directories.sort()
            for name in sorted([*directories, *files]):
                path = Path(parent, name)
                info = path.lstat()
                if stat.S_ISDIR(info.st_mode) and info.st_dev != device:
                    directories.remove(name)
                yield path, info
    except OSError as error:
        refuse(error)


def _import(docker: Command, directory: Path, image: str) -> None:
    command = docker.argv("import", "--change", f'LABEL {LABEL}="{directory}"', "-", image)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=docker.environ,
        )
    except OSError as error:
        raise EngineError(f"{docker.path} can't be executed: {os.strerror(error.errno or 0).lower()}") from None
    with process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            # docker that gives up closes the pipe; its own words come from stderr below.
            with contextlib.suppress(BrokenPipeError), process.stdin:
                write_tar(directory, process.stdin)
        except BaseException:
            process.kill()
            raise
        complaint = first_sentence(process.stderr.read(65536).decode(errors="replace"))
    if process.returncode != 0:
        raise EngineError(
            f"docker can't import the root file system: {complaint or f'exit status {process.returncode}'}",
            where=str(directory),
        )


def _drop_older(docker: Command, directory: Path, image: str) -> None:
    """Remove earlier images of the same directory; those that containers still use stay."""
    listed = docker.run(
        "image", "ls", "--filter", f"label={LABEL}={directory}", "--format", "{{.Repository}}:{{.Tag}}"
    )  # fmt: skip
    for older in listed.stdout.split():
        if older != image and older.startswith(f"{REPOSITORY}:"):
            docker.run("image", "rm", older)
