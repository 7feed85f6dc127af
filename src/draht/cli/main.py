"""The ``draht`` command: finds a sub-command's module only when it is called, so that start-up stays short.

Owns the list of commands and the one place where an error becomes text and an exit status. A `DrahtError` becomes
``error: …`` and ``hint: …`` on stderr; anything else is a defect of draht and keeps its traceback.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from importlib import import_module

import click

from draht import __version__
from draht.api.errors import DrahtError
from draht.api.printable import printable, printable_lines

COMMANDS = {
    "allocate": "Decide which devices pods and claims get.",
    "cdi": "Look at, check, change and apply CDI specs.",
    "cel": "Check selectors and try them on devices.",
    "demo": "Run the twelve use cases in real containers.",
    "devices": "Show the GPUs and NICs of this machine, a profile or a cluster.",
    "doctor": "Check this machine, or a node of Kubernetes.",
    "explain": "Say why a pod or claim doesn't fit.",
    "node": "Serve this node's devices to Kubernetes.",
    "ps": "Show who holds which GPU on this machine.",
    "release": "End a hold and give its GPUs back.",
    "run": "Run a container with GPUs of this machine.",
    "validate": "Check manifests as kube-apiserver would, without a cluster.",
}
"""Command name → one line of help. The command is the function of that name in ``draht.cli.<name>``."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used, not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"draht.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; that the reader of its output went away (`draht … | head`) is no error, unlike in click."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_stdout()
            ctx.exit(0)
        except KeyboardInterrupt:
            # click would say "Aborted!" and end with 1, which means "no" in several commands.
            ctx.exit(128 + signal.SIGINT)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="draht")
def draht() -> None:
    """Carry GPUs from the hardware to the workload."""


def report(error: DrahtError) -> None:
    """Print an error for a person on stderr."""
    text = str(error)
    if error.where and text.startswith(error.where):
        # Names in it come from files, and a line of its own could look like another error.
        text = printable(error.where) + text[len(error.where) :]
    click.echo(f"error: {printable_lines(text)}", err=True)
    if error.hint:
        click.echo(f"hint: {printable_lines(error.hint)}", err=True)


def main() -> None:
    """Entry point of the ``draht`` script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the terminal's encoding lacks is shown escaped, as on stderr.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        draht.main(standalone_mode=True)
    except DrahtError as error:
        report(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        _discard_stdout()
        report(DrahtError(str(error.strerror).lower(), where=error.filename, hint="make some room and run it again"))
        sys.exit(1)


def _discard_stdout() -> None:
    """Let what is left in the buffers vanish instead of failing again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
