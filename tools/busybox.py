"""A root file system for test containers: Debian's static busybox under the names of its applets, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

__all__ = ["make_rootfs"]


def make_rootfs(directory: Path) -> Path:
    """Fill an empty directory with a root file system of about 2 MB.

    Raises:
        FileNotFoundError: There is no busybox on this machine.
    """
    program = shutil.which("busybox", path="/bin:/usr/bin:/sbin:/usr/sbin")
    if program is None:
        raise FileNotFoundError("there is no busybox on this machine")
    for name in ("bin", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/lib", "var"):
        (directory / name).mkdir(parents=True)
    (directory / "tmp").chmod(0o1777)
    shutil.copy(program, directory / "bin" / "busybox")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    for applet in listed.split():
        if applet != "busybox":
            (directory / "bin" / applet).symlink_to("busybox")
    (directory / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (directory / "etc" / "group").write_text("root:x:0:\n")
    return directory
