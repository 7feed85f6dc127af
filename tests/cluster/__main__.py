"""The cluster of people, behind ``make cluster-up`` and its like: ``python tests/cluster up|shell|down``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[0:1] = [str(TESTS), str(TESTS.parent / "tools")]  # instead of this directory, whose names aren't modules

from cluster import leftovers, place  # noqa: E402 - found only now
from cluster.agent import Agent  # noqa: E402 - found only now
from cluster.cluster import Cluster  # noqa: E402 - found only now
from cluster.errors import ClusterError  # noqa: E402 - found only now

TO_TRY = """\
  kubectl get nodes -o wide
  kubectl run hello --image=draht.test/busybox:1 --command -- sh -c 'echo hello; sleep 1000'
  kubectl api-resources --api-group=resource.k8s.io
"""
WITH_DEVICES = """\
  kubectl draht devices
  kubectl apply -f examples/use-cases/01-exclusive-gpus/manifests.yaml && kubectl logs -f pair
  kubectl draht explain pod/pair
"""


def up(arguments: argparse.Namespace) -> None:
    """Start the cluster, instead of one that runs."""
    begin = time.monotonic()
    cluster = Cluster.up(
        arguments.name,
        nodes=arguments.nodes,
        gates=arguments.gates,
        version=arguments.version,
        simulated_nodes=arguments.simulated,
        outlives=True,
    )
    print(f"cluster {cluster.name} is up after {time.monotonic() - begin:.0f} s")
    if arguments.devices:
        cluster.kubectl("apply", "-k", str(TESTS.parent / "deploy" / "classes"))
        for agent in [Agent(cluster, name, "--profile", arguments.devices) for name in cluster.node_names]:
            agent.start()
        print(f"  its nodes serve the devices of {arguments.devices}; these are simulated")
    print(cluster.kubectl("get", "nodes") if arguments.nodes else "  it has no real nodes: nothing runs on it")
    print(f"  export KUBECONFIG={cluster.kubeconfig}\n  make cluster-shell\n  make cluster-down")
    for node in map(cluster.node, cluster.node_names):
        print(f"\n  draht node --node-name {node.name} --driver YOURS.py --listen 127.0.0.1:0 \\")
        print(f"    --kubelet-root {node.kubelet_root} --cdi-dir {node.cdi_directory} \\")
        print(f"    --state-dir {node.directory / 'state'} --metadata-dir {node.directory / 'metadata'}")


def shell(arguments: argparse.Namespace) -> None:
    """Open a shell in which kubectl talks to the cluster; without a terminal, say how to get there."""
    cluster = Cluster.open(arguments.name)
    things = WITH_DEVICES if cluster.kubectl("get", "resourceslices", "-o", "name") else TO_TRY
    print(f"KUBECONFIG={cluster.kubeconfig}\n\nthings to try:\n{things}", flush=True)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    programs = [str(cluster.kubectl.program.parent), str(Path(sys.executable).parent)]  # kubectl and its plugin
    path = os.pathsep.join([*programs, os.environ.get("PATH", "")])
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": path}
    program = os.environ.get("SHELL", "/bin/sh")
    os.execvpe(program, [program], environment)


def down(arguments: argparse.Namespace) -> None:
    """Remove the cluster, also one that is broken; and those whose run was killed."""
    directory = place.directory_of(arguments.name)
    with place.locked(arguments.name):
        there = directory.exists()
        leftovers.remove(directory)
    for name in leftovers.remove_abandoned():
        print(f"removed what was left of cluster {name}")
    print(f"cluster {arguments.name} is removed" if there else f"there is no cluster {arguments.name}")


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(prog="cluster", description="A real Kubernetes on this machine.")
    commands = parser.add_subparsers(required=True, metavar="up|shell|down")
    for name, function in (("up", up), ("shell", shell), ("down", down)):
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--name", default="draht", help="of the cluster (default: %(default)s)")
        if function is up:
            command.add_argument("--nodes", type=int, default=2, choices=range(10), metavar="N", help="real nodes")
            command.add_argument("--simulated", type=int, default=0, metavar="N", help="nodes that kwok simulates")
            command.add_argument("--gates", choices=("default", "alpha"), default="default")
            command.add_argument("--devices", metavar="PROFILE", help="serve this machine's devices on each real node")
            command.add_argument("--version", choices=("1.37", "1.33"), default="1.37")
    arguments = parser.parse_args()
    try:
        arguments.function(arguments)
    except (ClusterError, ValueError) as error:
        sys.exit(f"cluster: {error}")
    except KeyboardInterrupt:
        sys.exit("cluster: interrupted")


if __name__ == "__main__":
    main()
