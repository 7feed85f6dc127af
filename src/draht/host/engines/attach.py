"""Waiting for an attached container: signals go to it, its exit status comes back.

Owns the loop that every adapter shares. Signals are blocked and taken with ``sigtimedwait``, not with handlers: that
loses none and needs no thread. A client runs in a session of its own, so that what the terminal sends to the foreground
group reaches draht alone and the container exactly once; clients differ too much in what they do with signals (docker's
`start --attach` ends at the first SIGINT and leaves the container running). A process may read from and set a terminal
that is not its controlling one, so stdin and raw mode work as before.

It doesn't know what a container is; a target is something that a signal can be delivered to.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from draht.host.engine import EngineError

__all__ = ["FORWARDED", "blocked_signals", "exit_status", "run_attached", "send", "wait"]

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)

_TAKEN = frozenset({*FORWARDED, signal.SIGCHLD, signal.SIGTSTP})

_POLL = 1.0
"""Seconds after which the child is looked at again even if its SIGCHLD was merged with another's."""

_RETRY = 0.05
"""Seconds until a signal that came before the container ran is tried again."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


@contextlib.contextmanager
def blocked_signals() -> Iterator[None]:
    """Block what `wait` takes; afterwards the mask is as it was."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def exit_status(wait_status: int) -> int:
    """The status a shell would show: 128+n after signal n."""
    code = os.waitstatus_to_exitcode(wait_status)
    return 128 - code if code < 0 else code


def send(pid: int, number: int) -> None:
    """Send a signal to a child that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait(pid: int, deliver: Callable[[int], bool], *, suspend: bool = False) -> int:
    """Wait for a child with signals blocked (`blocked_signals`); return its wait status.

    Args:
        pid: A child of this process.
        deliver: Sends one signal on; False means "not yet", and it is called again until it says True. Signals keep
            their order.
        suspend: Stop the child, too, when the user suspends draht (Ctrl-Z).
    """
    pending: deque[int] = deque()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return status
        received = signal.sigtimedwait(_TAKEN, _RETRY if pending else _POLL)
        if received is not None and received.si_signo == signal.SIGTSTP:
            _suspend(pid if suspend else None)
        elif received is not None and received.si_signo != signal.SIGCHLD:
            pending.append(received.si_signo)
        while pending and deliver(pending[0]):
            pending.popleft()


def run_attached(
    argv: Sequence[str], deliver: Callable[[int], bool], environ: Mapping[str, str] | None = None
) -> int:  # fmt: skip
    """Run a client that is attached to a container; return its wait status.

    Args:
        argv: The client's command line; the first word is a path.
        deliver: Sends one signal to the container, see `wait`; SIGWINCH goes to the client, which knows the terminal.
        environ: Environment of the client; None is that of this process.

    Raises:
        EngineError: It can't be executed.
    """
    with blocked_signals():
        try:
            pid = os.posix_spawn(
                argv[0],
                list(argv),
                dict(os.environ if environ is None else environ),
                setsid=True,
                setsigmask=(),
                setsigdef=_IGNORED_BY_PYTHON,
            )
        except OSError as error:
            raise EngineError(f"{argv[0]} can't be executed: {os.strerror(error.errno or 0).lower()}") from None

        def forward(number: int) -> bool:
            if number != signal.SIGWINCH:
                return deliver(number)
            send(pid, number)
            return True

        return wait(pid, forward, suspend=True)


def _suspend(child: int | None) -> None:
    """What Ctrl-Z does to a foreground job, until the shell continues it; nothing where no shell could."""
    if os.getsid(0) == os.getpgrp():
        return
    if child is not None:
        send(child, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGSTOP)
    if child is not None:
        send(child, signal.SIGCONT)
