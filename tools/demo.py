"""The demonstration behind ``make demo``: twelve use cases of GPUs on Kubernetes, each in real containers.

Owns the root file system in which the containers run, so that no image has to be pulled; everything else is
``draht demo``, which a person can call as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import busybox

DRAHT = Path(sys.executable).parent / "draht"


def main() -> None:
    """Entry point of the script; arguments are passed on."""
    if os.geteuid() != 0:
        sys.exit("demo: containers with device nodes need root\nhint: `make demo` uses sudo by itself")
    with tempfile.TemporaryDirectory(prefix="draht-demo-") as scratch:
        rootfs = Path(scratch) / "rootfs"
        rootfs.mkdir()
        busybox.make_rootfs(rootfs)
        done = subprocess.run([DRAHT, "demo", "--rootfs", rootfs, *sys.argv[1:]], check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
