"""The demonstration behind ``make demo``: GPUs of a simulated DGX H100 in real containers, through CDI.

Shows the machine, two containers that hold different GPUs at the same time as they see themselves from inside, a third
that is refused with the reason, and that nothing is left at the end. It only calls the ``draht`` command, as a person
would, and ends with an error if what it shows isn't so; a test runs it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import busybox

DRAHT = Path(sys.executable).parent / "draht"
PROFILE = "dgx-h100"
PATIENCE = 60
"""Seconds for a container to start or end."""
READY = "(waiting)"
LOOK = f"""\
#!/bin/sh
# What this container sees of its GPUs; ends when it is asked to.
trap 'exit 0' TERM
echo "device nodes:"; ls -l /dev/nvidia* | sed 's/^/  /'
echo "mounts:"; grep -E 'nvidia|libcuda' /proc/mounts | awk '{{print "  " $2, substr($4, 1, 2)}}'
echo "environment:"; env | grep -E '^(NVIDIA|DRAHT)_' | cut -c 1-100 | sort | sed 's/^/  /'
echo "nvidia-smi -L:"; nvidia-smi -L | sed 's/^/  /'
echo "{READY}"
sleep {PATIENCE * 4} & wait
"""


class DemoError(Exception):
    """What the demonstration shows isn't as it should be."""


def show(title: str) -> None:
    """Print a heading."""
    print(f"\n\033[1m── {title}\033[0m" if sys.stdout.isatty() else f"\n── {title}", flush=True)


def draht(*arguments: str, echo: bool = True) -> subprocess.CompletedProcess[str]:
    """Call draht as a person would, and show what it says."""
    done = subprocess.run([DRAHT, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if echo:
        print(f"$ {shlex.join(['draht', *arguments])}\n{done.stdout}{done.stderr}", end="", flush=True)
    return done


def run_command(gpus: int, rootfs: Path) -> list[str]:
    """The arguments of draht up to the command; without a network, so that the machine needs no firewall tools."""
    options = ["--profile", PROFILE, "--gpus", str(gpus), "--network", "none", "--rootfs", str(rootfs)]
    return ["run", *options, "--"]


class Container:
    """One ``draht run`` in the foreground of its own, whose container tells what it sees and then waits."""

    def __init__(self, rootfs: Path, gpus: int) -> None:
        arguments = [*run_command(gpus, rootfs), "look"]
        print(f"$ {shlex.join(['draht', *arguments])}", flush=True)
        self.process = subprocess.Popen(
            [DRAHT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C reaches this demonstration, which then ends its containers in order
        )
        try:
            self.seen = self._listen()
        except BaseException:
            self.end()
            raise

    def _listen(self) -> list[str]:
        assert self.process.stdout is not None
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        try:
            seen = list(until_ready(self.process.stdout))
        finally:
            watchdog.cancel()
        if self.process.poll() is not None or not seen or seen[-1] != READY:
            raise DemoError("the container didn't start")
        return seen[:-1]

    def gpus(self) -> set[str]:
        """The GPU device nodes seen inside."""
        return set(re.findall(r"/dev/nvidia\d+", "\n".join(self.seen)))

    def end(self) -> int:
        """Send draht the signal that a service manager would send; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise DemoError("draht run didn't end after SIGTERM") from None


def until_ready(output: IO[str]) -> Iterator[str]:
    """Pass on and yield the lines of a container until it waits."""
    for line in output:
        yield line.rstrip("\n")
        if line.rstrip("\n") == READY:
            return
        print(f"  {line}", end="", flush=True)


def held() -> int:
    """How many holds `draht ps` lists."""
    listed = draht("ps", "-o", "json", echo=False)
    if listed.returncode != 0:
        raise DemoError(f"draht ps failed: {listed.stderr.strip()}")
    return len(json.loads(listed.stdout)["holds"])


def demonstrate(rootfs: Path) -> None:
    """Run the whole demonstration.

    Raises:
        DemoError: Something isn't as it should be.
    """
    before = held()
    show(f"The machine: a simulated {PROFILE}")
    if draht("devices", "--profile", PROFILE, "-o", "tree").returncode != 0:
        raise DemoError("the machine can't be shown")

    with contextlib.ExitStack() as containers:
        show("A container with five GPUs, seen from inside")
        first = Container(rootfs, 5)
        containers.callback(first.end)
        show("At the same time, a container with three GPUs")
        second = Container(rootfs, 3)
        containers.callback(second.end)
        if (len(first.gpus()), len(second.gpus())) != (5, 3):
            raise DemoError(f"they see {len(first.gpus())} and {len(second.gpus())} GPUs")
        if first.gpus() & second.gpus():
            raise DemoError("both see the same GPU")

        show("Who holds what")
        draht("ps")
        if held() != before + 2:
            raise DemoError("draht ps doesn't list both")

        show("A third container: refused, with the reason")
        third = draht(*run_command(1, rootfs), "true")
        if third.returncode == 0 or "0 of 8 free" not in third.stderr:
            raise DemoError("the third container wasn't refused because all GPUs are held")
        show("Both containers are asked to end")

    show("Everything is released")
    draht("ps")
    if held() != before:
        raise DemoError("something is still held")


def main() -> None:
    """Entry point of the script."""
    if os.geteuid() != 0:
        sys.exit("demo: containers with device nodes need root\nhint: `make demo` uses sudo by itself")
    with tempfile.TemporaryDirectory(prefix="draht-demo-") as scratch:
        rootfs = Path(scratch) / "rootfs"
        rootfs.mkdir()
        busybox.make_rootfs(rootfs)
        look = rootfs / "bin" / "look"
        look.write_text(LOOK)
        look.chmod(0o755)
        # Its own database: the GPUs of a profile are held per database, and somebody may be trying the same profile.
        os.environ.setdefault("DRAHT_STATE_DIR", str(Path(scratch) / "state"))
        try:
            demonstrate(rootfs)
        except DemoError as error:
            sys.exit(f"demo: {error}")


if __name__ == "__main__":
    main()
