"""``draht node``: serve a node's devices to Kubernetes.

Owns the command line of the node agent, and turning it into drivers. In a pod its answers come from the environment
that the manifest in ``deploy/`` sets.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from draht.host.places import cdi_directory, state_directory

if TYPE_CHECKING:
    from draht.node.agent import Settings

__all__ = ["node"]

_HELP = """Serve this node's devices to Kubernetes, until it is told to stop.

It publishes ResourceSlices, prepares claims for the kubelet, and says how the devices are. Without --driver the GPUs of
the machine, or of a simulated one, are served under the names of their vendors' drivers. It refuses to start where
another plugin serves the same name.

\b
draht node --profile dgx-h100 --node-name worker-0 --kubeconfig ~/.kube/config
draht node --driver toy.py
"""


@click.command(short_help="Serve this node's devices to Kubernetes.", help=_HELP)
@click.option("--node-name", envvar="NODE_NAME", required=True, metavar="NAME", help="The Node object.  [$NODE_NAME]")
@click.option(
    "--driver",
    "drivers",
    multiple=True,
    metavar="NAME|FILE.py[:CLASS]",
    help="Serve this driver only: one that draht brings, or a class of a file; repeatable.",
)
@click.option("--profile", envvar="DRAHT_PROFILE", metavar="NAME|FILE", help="Serve a simulated machine.")
@click.option("--partitions", is_flag=True, help="Offer MIG partitions of the simulated GPUs too.")
@click.option("--shares", is_flag=True, help="Let claims share the simulated GPUs by memory.")
@click.option(
    "--slices",
    "slice_files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Serve the devices of these ResourceSlices as simulated ones; repeatable.",
)
@click.option(
    "--device-plugin",
    metavar="all|GPU,…",
    default="",
    help="Give these GPUs (by index, UUID or PCI address) to the device plugin instead of DRA.",
)
@click.option("--labels/--no-labels", default=True, show_default=True, help="Label the node as GPU discovery does.")
@click.option(
    "--kubelet-root", default="/var/lib/kubelet", show_default=True, type=click.Path(), help="The kubelet's directory."
)
@click.option("--cdi-dir", type=click.Path(), help="Where the container runtime looks for CDI specs.")
@click.option("--state-dir", type=click.Path(), help="Directory of the machine's database.")
@click.option(
    "--metadata-dir",
    default="/var/run/kubernetes.io/dra-device-attributes",
    show_default=True,
    type=click.Path(),
    help="Where device metadata for containers goes.",
)
@click.option(
    "--listen", default="0.0.0.0:8080", show_default=True, metavar="ADDRESS:PORT", help="For /metrics and probes."
)
@click.option("--pod-uid", envvar="POD_UID", default="", metavar="UID", help="UID of the agent's own pod.  [$POD_UID]")
@click.option("--kubeconfig", type=click.Path(), metavar="FILE", help="Instead of the pod's service account.")
@click.option("--context", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--debug", is_flag=True, help="Log more.")
def node(*, kubeconfig: str | None, context: str | None, debug: bool, **options: Any) -> None:
    """Build the agent and run it."""
    from draht.cli.live import Connection, extra

    with extra("node"):
        from draht.cli.node_parts import Parts
        from draht.node import log
        from draht.node.agent import Agent
    from draht.kube import Client

    log.set_up(debug=debug)
    settings = _settings(**options)
    parts = Parts.of(settings, **options)
    config = Connection(kubeconfig=kubeconfig, context=context).config()

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        async with Client(config, user_agent="draht-node") as client:
            agent = Agent(settings, parts.drivers, client, resources=parts.resources, labels=parts.labels)
            await agent.run(stop, started=_tell)

    asyncio.run(serve())


def _tell(port: int) -> None:
    click.echo(f"serving metrics and probes on port {port}", err=True)


def _settings(
    *,
    node_name: str,
    kubelet_root: str,
    cdi_dir: str | None,
    state_dir: str | None,
    metadata_dir: str,
    listen: str,
    pod_uid: str,
    **_others: Any,
) -> Settings:
    from draht.node.agent import Settings
    from draht.validation.names import label, subdomain

    address, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise click.BadParameter("write ADDRESS:PORT, such as 0.0.0.0:8080", param_hint="--listen")
    if wrong := subdomain(node_name):
        # Without a name, slices that belong to no node would be taken for this one's.
        raise click.BadParameter(
            f"{node_name[:253]!r} can't be the name of a node: {wrong[0]}", param_hint="--node-name"
        )
    if pod_uid and (wrong := label(pod_uid)):
        # It becomes part of the names of sockets.
        raise click.BadParameter(f"{pod_uid[:253]!r} can't be the UID of a pod: {wrong[0]}", param_hint="--pod-uid")
    return Settings(
        node_name=node_name,
        kubelet=Path(kubelet_root),
        cdi_directory=Path(cdi_dir) if cdi_dir else cdi_directory(),
        metadata_directory=Path(metadata_dir),
        state_directory=Path(state_dir) if state_dir else state_directory(),
        address=address.strip("[]"),
        port=int(port),
        instance=pod_uid,
    )
