"""A terminal for a container that runc starts: receive it, connect it to the user's, restore the user's afterwards.

runc makes a pseudo-terminal inside the container and sends its other end over a Unix socket (``--console-socket``).
What goes in and out is copied by two threads; they don't know when the container ends, so `Terminal.close` waits for
what is left to be printed.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import socket
import struct
import sys
import tempfile
import termios
import threading
import tty
from pathlib import Path
from types import TracebackType
from typing import Any

from draht.host.engine import EngineError

__all__ = ["ConsoleSocket", "Terminal"]

_DRAIN = 5.0
"""Seconds that output may still take after the container has ended."""

_DEADLINE = 10.0


class ConsoleSocket:
    """Where runc sends the terminal; a context manager that leaves no file behind.

    Its directory is a new one below the system's temporary directory: a socket's path has at most 107 characters, which
    a state directory may exceed.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="draht-console-")
        self.path = Path(self._directory.name, "console")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(os.fsencode(self.path))
        self._socket.listen(1)
        self._socket.settimeout(_DEADLINE)

    def __enter__(self) -> ConsoleSocket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._directory.cleanup()

    def receive(self) -> int:
        """The file descriptor of the terminal; runc has sent it when ``runc create`` returns.

        Raises:
            EngineError: Nothing came.
        """
        try:
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(_DEADLINE)
                _, ancillary, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(4))
        except OSError:
            raise EngineError("runc sent no terminal") from None
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(data) >= 4:
                return array.array("i", data[:4])[0]
        raise EngineError("runc sent no terminal")


class Terminal:
    """The user's stdin and stdout connected to a container's terminal while the context lasts.

    Args:
        master: The container's terminal; closed at the end.
        interactive: Pass stdin on.
    """

    def __init__(self, master: int, *, interactive: bool) -> None:
        self._master = master
        self._interactive = interactive
        self._saved: Any = None
        self._output = threading.Thread(target=self._copy_out, daemon=True)
        self._input = threading.Thread(target=self._copy_in, daemon=True)

    def __enter__(self) -> Terminal:
        self.resize()
        if self._interactive and os.isatty(0):
            self._saved = termios.tcgetattr(0)
            tty.setraw(0, termios.TCSANOW)
        self._output.start()
        if self._interactive:
            self._input.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.join(_DRAIN)
        if self._saved is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, self._saved)
        if not self._input.is_alive():
            os.close(self._master)

    def resize(self) -> None:
        """Give the container's terminal the size of the user's."""
        for fd in (0, 1, 2):
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(fd, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
                return

    def _copy_out(self) -> None:
        sys.stdout.flush()
        # EIO: the last process that had the terminal open is gone.
        with contextlib.suppress(OSError):
            while data := os.read(self._master, 65536):
                _write(1, data)

    def _copy_in(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(0, 65536):
                _write(self._master, data)
            # End of input reaches a program on a terminal as its end-of-file character.
            _write(self._master, b"\x04")


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
