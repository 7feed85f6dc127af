"""Waiting for an attached container: signals go to it, its exit status comes back.

Owns the loop that every adapter shares. Signals are blocked and taken with ``sigtimedwait``, not with handlers: that
loses none, needs no thread, and tells apart what the terminal sent to the whole foreground process group (the child has
it already) from what was sent to draht alone (must be forwarded).

It doesn't know what a container is; a target is something that a signal can be sent to.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

from draht.host.engine import EngineError

__all__ = ["FORWARDED", "blocked_signals", "exit_status", "run_attached", "spawn", "wait"]

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)

SI_KERNEL = 0x80
"""``si_code`` of a signal that the kernel sent: Ctrl-C, Ctrl-\\, a resized or closed terminal (sigaction(2))."""

_POLL = 1.0
"""Seconds after which the child is looked at again even if its SIGCHLD was merged with another's."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@contextlib.contextmanager
def blocked_signals() -> Iterator[None]:
    """Block what `wait` takes; afterwards the mask is as it was."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def spawn(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Start a child that shares stdio and process group, with no signal blocked or ignored; return its pid.

    Raises:
        EngineError: It can't be executed.
    """
    try:
        return os.posix_spawn(
            argv[0], list(argv), dict(os.environ if environ is None else environ), setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )  # fmt: skip
    except OSError as error:
        raise EngineError(f"{argv[0]} can't be executed: {os.strerror(error.errno or 0).lower()}") from None


def exit_status(wait_status: int) -> int:
    """The status a shell would show: 128+n after signal n."""
    code = os.waitstatus_to_exitcode(wait_status)
    return 128 - code if code < 0 else code


def wait(pid: int, forward: Callable[[int], None], *, terminal_reaches_child: bool) -> int:
    """Wait for a child with signals blocked (`blocked_signals`), forwarding what arrives; return its wait status.

    Args:
        pid: A child of this process.
        forward: Sends one signal on; called for each of `FORWARDED` that arrives.
        terminal_reaches_child: The child is in our process group, so what the terminal sends has reached it already.
    """
    awaited = {*FORWARDED, signal.SIGCHLD}
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return status
        received = signal.sigtimedwait(awaited, _POLL)
        if received is None or received.si_signo == signal.SIGCHLD:
            continue
        if terminal_reaches_child and received.si_code == SI_KERNEL:
            continue
        forward(received.si_signo)


def run_attached(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Run a client that is attached to a container and proxies signals; return its wait status.

    Raises:
        EngineError: It can't be executed.
    """
    with blocked_signals():
        pid = spawn(argv, environ)

        def forward(number: int) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

        return wait(pid, forward, terminal_reaches_child=True)
