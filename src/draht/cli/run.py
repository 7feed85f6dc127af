"""``draht run``: a container with GPUs of this machine, or of a simulated one."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from draht.api.errors import DrahtError

if TYPE_CHECKING:
    from draht.hardware.inventory import Inventory
    from draht.host.claims import ClaimsAsk
    from draht.host.engine import Bind

__all__ = ["run"]

FAILED = 125
"""Exit status for draht's own failures; everything else is the container's (as podman and docker do it)."""


class _MisuseError(click.UsageError):
    """Wrong options, with the status of draht's own failures."""

    exit_code = FAILED


class _RunCommand(click.Command):
    """Options end at the image, ``--wait`` may stand without a value, and misuse has the status of a failure."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, self._with_values(args))
        except click.UsageError as error:
            raise _MisuseError(error.format_message(), ctx) from None

    def _with_values(self, args: Sequence[str]) -> list[str]:
        """``--wait`` alone becomes ``--wait=forever``; click would take the image for its value."""
        takes_value = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        done: list[str] = []
        rest = list(args)
        while rest and rest[0].startswith("-") and rest[0] != "--":
            word = rest.pop(0)
            done.append("--wait=forever" if word == "--wait" else word)
            if word in takes_value and word != "--wait" and rest:
                done.append(rest.pop(0))
        return done + rest


_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


def _seconds(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float:
    """``30s``, ``5m``, ``1h30m``, ``90``, ``forever``; nothing means not to wait."""
    if value is None:
        return 0.0
    if value == "forever":
        return math.inf
    found = _DURATION.fullmatch(value)
    if not value or found is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 30s, 5m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds


def _number(_ctx: click.Context, _option: click.Parameter, value: str | None) -> int | str:
    """A number of GPUs from 1 on, or ``all``; nothing is 0."""
    if value is None or value == "all":
        return value or 0
    if not re.fullmatch(r"[0-9]{1,4}", value) or int(value) == 0:
        raise click.BadParameter(f"{value!r} is not a number of GPUs from 1 on, or all")
    return int(value)


_HELP = """Run a container with GPUs of this machine.

Chooses free GPUs, holds them while the container lives, and gives them back when it ends. The exit status is the
container's; 125 means that draht itself failed.

\b
draht run --gpus 2 registry/image -- python train.py
draht run --profile dgx-h100 --gpus 1 --rootfs ./rootfs -- nvidia-smi
draht run --request 'model=H100,memory>=80Gi,count=2' registry/image -- python train.py
draht run -f pod.yaml
"""


@click.command(
    cls=_RunCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Run a container with GPUs of this machine.",
    help=_HELP,
)
@click.option("--gpus", callback=_number, metavar="N|all", help="How many GPUs, or `all`.")
@click.option("--device", "names", multiple=True, metavar="NAME", help="A certain device by its CDI name; repeatable.")
@click.option(
    "--request",
    "wishes",
    multiple=True,
    metavar="WORD=VALUE,…",
    help="Devices by what they are: model, memory, compute, architecture, profile, count …; repeatable.",
)
@click.option("--show-claim", is_flag=True, help="Print the claim that --request stands for, and run nothing.")
@click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE|DIR", help="Run the pods of manifests with their claims."
)
@click.option("--partitions", is_flag=True, help="With --profile: its GPUs may be cut into MIG partitions.")
@click.option("--shares", is_flag=True, help="With --profile: its GPUs may be shared, each claim with its memory.")
@click.option("--profile", metavar="NAME|FILE", help="Simulate the GPUs of this machine profile.")
@click.option("--kind", metavar="VENDOR/CLASS", help="CDI kind that --gpus means.  [default: NVIDIA's, else AMD's]")
@click.option(
    "--engine", "engine_name", metavar="podman|docker|runc", help="Container engine.  [default: the first usable]"
)
@click.option("-d", "--detach", is_flag=True, help="Return when the container runs; print the hold's id.")
@click.option("--wait", callback=_seconds, metavar="[=30s]", help="Queue for GPUs that are taken; alone: for ever.")
@click.option(
    "--rootfs", type=click.Path(exists=True, file_okay=False, resolve_path=True), help="Directory instead of an image."
)
@click.option("--name", default="", help="Name of the container.")
@click.option(
    "-v", "--volume", "volumes", multiple=True, metavar="PATH:TARGET[:ro]", help="Mount a path of the host; repeatable."
)
@click.option("-e", "--env", multiple=True, metavar="NAME[=VALUE]", help="Environment variable; repeatable.")
@click.option("-i", "--interactive", is_flag=True, help="Pass stdin through.")
@click.option("-t", "--tty", is_flag=True, help="Give the container a terminal.")
@click.option("--network", help="Network of the container, as the engine names it.")
@click.option(
    "--engine-arg", "engine_args", multiple=True, metavar="ARG", help="Passed to podman or docker; repeatable."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="IMAGE|--rootfs DIR [--] [COMMAND]...")
@click.pass_context
def run(ctx: click.Context, /, **options: Any) -> None:
    """Parse, call, and end with the container's status."""
    try:
        status = _run(**options)
    except DrahtError as error:
        error.exit_code = _status_of(error)
        raise
    ctx.exit(status)


def _status_of(error: DrahtError) -> int:
    """As podman and docker have it: 127 no such command, 126 not executable, 128+n interrupted, else 125."""
    from draht.host.engine import CommandError
    from draht.host.errors import InterruptedRunError

    if isinstance(error, InterruptedRunError):
        return 128 + error.signal
    return error.status if isinstance(error, CommandError) else FAILED


def _run(
    *,
    gpus: int | str,
    names: Sequence[str],
    wishes: Sequence[str],
    show_claim: bool,
    files: Sequence[str],
    partitions: bool,
    shares: bool,
    profile: str | None,
    kind: str | None,
    engine_name: str | None,
    detach: bool,
    wait: float,
    rootfs: str | None,
    name: str,
    env: Sequence[str],
    volumes: Sequence[str],
    interactive: bool,
    tty: bool,
    network: str | None,
    engine_args: Sequence[str],
    words: Sequence[str],
) -> int:
    from draht.host.engines import engine
    from draht.host.local import local_host, local_inventory, no_gpu_kind, refuse_owned, refuse_unresolvable
    from draht.host.order import Order
    from draht.host.ownership import look
    from draht.host.run import run as run_order
    from draht.host.selection import Ask, Request, Selection

    if files:
        return _run_files(
            files,
            {"gpus": gpus, "device": names, "request": wishes, "IMAGE or COMMAND": [w for w in words if w != "--"]},
            profile=profile,
            kind=kind,
            partitions=partitions,
            shares=shares,
            engine_name=engine_name,
            detach=detach,
            wait=wait,
            rootfs=rootfs,
            network=network,
        )
    if wishes and (gpus or names):
        raise DrahtError("--request goes with neither --gpus nor --device", hint="say count=N in the request")
    if show_claim:
        return _show_claim(wishes)
    if not gpus and not names and not wishes:
        raise DrahtError(
            "no device is asked for",
            hint="say --gpus N, --gpus all, --request WORD=VALUE or --device vendor/class=name",
        )
    words = list(words)
    image = words.pop(0) if rootfs is None and words and words[0] != "--" else None
    if words and words[0] == "--":
        words.pop(0)
    if image is None and rootfs is None:
        raise DrahtError("neither an image nor --rootfs is given", hint="draht run --gpus 1 IMAGE -- COMMAND")
    host = local_host(_say)
    assert host.cache is not None
    inventory, chosen_kind = local_inventory(host.cache, profile=profile, kind=kind)
    if gpus and not inventory.simulated and not chosen_kind:
        raise no_gpu_kind(host.cache)
    request = Request(gpus=gpus, names=tuple(names), kind=chosen_kind)
    refuse_unresolvable(host.cache, inventory, request)
    ask: Ask = Selection(inventory, request)
    if wishes:
        ask = _claim_ask(inventory, wishes, partitions=partitions, shares=shares)
    refuse_owned(inventory, ask, look())
    order = Order(
        inventory=inventory,
        request=request,
        ask=ask,
        engine=engine(engine_name, found=dict(host.engines)).name,
        image=image,
        rootfs=rootfs,
        command=tuple(words),
        name=name,
        env=_environment(env),
        binds=tuple(_bind(volume) for volume in volumes),
        interactive=interactive,
        tty=tty,
        detach=detach,
        wait=wait,
        network=network,
        engine_args=tuple(engine_args),
    )
    if inventory.simulated:
        _say(f"simulated: {inventory.machine} is a machine profile, its GPUs compute nothing")
    outcome = run_order(host, order)
    if detach:
        click.echo(outcome.hold)
    return outcome.status


def _run_files(files: Sequence[str], others: dict[str, Any], *, detach: bool, **options: Any) -> int:
    from draht.cli.run_pods import run_files

    for name, value in others.items():
        if value:
            raise DrahtError(f"-f doesn't go with {name}", hint="manifests say what runs and which devices it gets")
    if detach:
        raise DrahtError("-f doesn't go with --detach", hint="the containers of manifests run in the foreground")
    return run_files(files, say=_say, **options)


def _show_claim(wishes: Sequence[str]) -> int:
    from draht.cli.output import emit
    from draht.host.wish import claim_of

    if not wishes:
        raise DrahtError("--show-claim prints the claim of a --request", hint="add --request model=H100")
    emit(claim_of(wishes), "yaml")
    return 0


def _claim_ask(inventory: Inventory, wishes: Sequence[str], *, partitions: bool, shares: bool) -> ClaimsAsk:
    from draht.driver.slices import publish
    from draht.driver.vendors.classes import device_classes
    from draht.host.claims import ClaimsAsk
    from draht.host.wish import claim_of
    from draht.manifests import Manifests

    published = publish(
        inventory,
        node_name=inventory.machine,
        # Partitions and shares can't be made on real GPUs yet.
        partitions=partitions and inventory.simulated,
        shares=shares and inventory.simulated,
    )
    manifests = Manifests.of([claim_of(wishes)], classes=device_classes())
    return ClaimsAsk(inventory, published, manifests, inventory.machine)


def _environment(entries: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` as given; ``NAME`` alone takes the value it has here, if it has one."""
    import os

    found: dict[str, str] = {}
    for entry in entries:
        name, given, value = entry.partition("=")
        if not name:
            raise DrahtError(f"`{entry}` names no environment variable", hint="write -e NAME=VALUE")
        if given:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
    return found


def _bind(volume: str) -> Bind:
    """``PATH:TARGET[:ro|rw]``; a relative path is one of the current directory."""
    from pathlib import Path

    from draht.host.engine import Bind

    source, *rest = volume.split(":")
    if not source or len(rest) not in {1, 2} or not rest[0].startswith("/") or rest[1:] not in ([], ["ro"], ["rw"]):
        raise DrahtError(f"`{volume}` is no mount", hint="write -v PATH:/TARGET or -v PATH:/TARGET:ro")
    path = Path(source).absolute()
    if not path.exists():
        raise DrahtError("there is nothing to mount", where=str(path), hint="make it first; draht makes no directories")
    return Bind(source=str(path), target=rest[0], read_only=rest[1:] == ["ro"])


def _say(text: str) -> None:
    click.echo(text, err=True)
    sys.stderr.flush()
