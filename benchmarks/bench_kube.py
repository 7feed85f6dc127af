"""What draht's own Kubernetes client costs, against lightkube in the same run.

A server in a process of its own plays the API from texts it made before: 5,000 ResourceSlices with 8 devices each in
pages of 500, and a watch of 20,000 changes. Both decode to their own structs, each in a fresh process.
Times are processor time of the client's process, because waiting for the server isn't the client's: *import* is its
first import, *list* and *watch* are medians of five, *memory* is the largest resident size, with one list held.
lightkube is no dependency of draht: ``$DRAHT_BENCH_LIGHTKUBE`` names the python of an environment that has
``lightkube`` and ``lightkube-models``; without it, draht is measured alone.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

SLICES = 5000
DEVICES = 8
PAGE = 500
EVENTS = 20_000
ROUNDS = 5
PATH = "/apis/resource.k8s.io/v1/resourceslices"


def device(node: int, index: int) -> dict[str, Any]:
    """A GPU as drivers describe it."""
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "uuid": {"string": f"GPU-{node:08x}-{index:04x}-4000-8000-{node * 8 + index:012x}"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "architecture": {"string": "Hopper"},
            "brand": {"string": "Nvidia"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "cudaDriverVersion": {"version": "12.8.0"},
            "driverVersion": {"version": "570.86.15"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
            "index": {"int": index},
        },
        "capacity": {"memory": {"value": "81559Mi"}},
    }


def slice_object(node: int, version: int) -> dict[str, Any]:
    """The slice of one node."""
    return {
        "metadata": {
            "name": f"node-{node:05}-gpu.nvidia.com-abcde",
            "generateName": f"node-{node:05}-gpu.nvidia.com-",
            "uid": f"{node:08x}-0000-4000-8000-000000000000",
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": f"node-{node:05}",
                    "uid": f"{node:08x}",
                    "controller": True,
                }
            ],
            "managedFields": [
                {
                    "manager": "gpu-kubelet-plugin",
                    "operation": "Update",
                    "apiVersion": "resource.k8s.io/v1",
                    "time": "2026-01-01T00:00:00Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:generateName": {}}, "f:spec": {"f:devices": {}, "f:driver": {}}},
                }
            ],
        },
        "spec": {
            "driver": "gpu.nvidia.com",
            "pool": {"name": f"node-{node:05}", "generation": 1, "resourceSliceCount": 1},
            "nodeName": f"node-{node:05}",
            "devices": [device(node, index) for index in range(DEVICES)],
        },
    }


class Server:
    """Plays the API from texts made beforehand."""

    def __init__(self) -> None:
        self._pages = []
        for start in range(0, SLICES, PAGE):
            metadata: dict[str, Any] = {"resourceVersion": "9000"}
            if start + PAGE < SLICES:
                metadata["continue"] = str(start + PAGE)
            items = [slice_object(node, 1000 + node) for node in range(start, start + PAGE)]
            page = {
                "kind": "ResourceSliceList",
                "apiVersion": "resource.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            }
            self._pages.append(json.dumps(page, separators=(",", ":")).encode())
        self._stream = []
        whole = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
        for number in range(EVENTS):
            event = {"type": "MODIFIED", "object": whole | slice_object(number % SLICES, 9001 + number)}
            line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
            self._stream.append(b"%x\r\n%s\r\n" % (len(line), line))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                target = urlsplit(head.split(b" ", 2)[1].decode())
                query = parse_qs(target.query)
                if target.path == PATH and "watch" in query:
                    writer.write(
                        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    )
                    for chunk in self._stream:
                        writer.write(chunk)
                        await writer.drain()
                    writer.write(b"0\r\n\r\n")
                    continue
                if target.path == PATH:
                    body = self._pages[int(query.get("continue", ["0"])[0]) // PAGE]
                elif target.path.endswith("/v1"):
                    body = b'{"kind":"APIResourceList","resources":[{"name":"resourceslices"}]}'
                else:
                    body = b'{"kind":"APIGroup","versions":[{"version":"v1"}]}'
                length = b"Content-Length: %d\r\n\r\n" % len(body)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def serve() -> None:
    """Serve until standard input ends; says the port first."""
    server = await asyncio.start_server(Server().answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)  # connections of watches may be open


def draht_side(address: str) -> dict[str, float]:
    """Measure draht."""
    begin = time.process_time()
    from draht.kube import SLICES as KIND
    from draht.kube import Client, Config
    from draht.kube.transport import Transport

    assert Transport.__doc__  # what a client loads when it connects
    imported = time.process_time() - begin

    async def main() -> dict[str, float]:
        listing, watching = [], []
        async with Client(Config(address)) as client:
            for _ in range(ROUNDS):
                begin = time.process_time()
                listed = await client.list(KIND, limit=PAGE)
                listing.append(time.process_time() - begin)
                assert len(listed.items) == SLICES
                assert len(listed.items[-1].spec.devices) == DEVICES
            for _ in range(ROUNDS):
                begin = time.process_time()
                count = 0
                async for event in client.watch(KIND, resource_version="9000"):
                    count += event.type == "modified"
                watching.append(time.process_time() - begin)
                assert count == EVENTS
        return numbers(imported, listing, watching)

    return asyncio.run(main())


def lightkube_side(address: str) -> dict[str, float]:
    """Measure lightkube, with its synchronous client, which is the faster one."""
    begin = time.process_time()
    lightkube: Any = importlib.import_module("lightkube")
    models: Any = importlib.import_module("lightkube.config.models")
    kubeconfig: Any = importlib.import_module("lightkube.config.kubeconfig")
    kind: Any = importlib.import_module("lightkube.resources.resource_v1").ResourceSlice
    imported = time.process_time() - begin
    config = kubeconfig.KubeConfig.from_one(user=models.User(), cluster=models.Cluster(server=address))
    client = lightkube.Client(config=config)
    listing, watching = [], []
    for _ in range(ROUNDS):
        begin = time.process_time()
        items = list(client.list(kind, chunk_size=PAGE))
        listing.append(time.process_time() - begin)
        assert len(items) == SLICES
        assert len(items[-1].spec.devices) == DEVICES
    for _ in range(ROUNDS):
        begin = time.process_time()
        count = 0
        for change, _ in client.watch(kind, resource_version="9000"):
            count += change == "MODIFIED"
            if count == EVENTS:
                break
        watching.append(time.process_time() - begin)
    return numbers(imported, listing, watching)


def numbers(imported: float, listing: list[float], watching: list[float]) -> dict[str, float]:
    """What one side says."""
    return {
        "import_ms": imported * 1e3,
        "list_ms": statistics.median(listing) * 1e3,
        "events_per_s": EVENTS / statistics.median(watching),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measured(python: str, side: str, address: str) -> dict[str, float]:
    """Run one side in a process of its own, the second time with warm files."""
    command = [python, __file__, "--side", side, "--address", address]
    for _ in range(2):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=("draht", "lightkube", "server"), help=argparse.SUPPRESS)
    parser.add_argument("--address", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side == "server":
        asyncio.run(serve())
        return
    if options.side is not None:
        side = draht_side if options.side == "draht" else lightkube_side
        print(json.dumps(side(options.address)))
        return
    peer = os.environ.get("DRAHT_BENCH_LIGHTKUBE")
    command = [sys.executable, __file__, "--side", "server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        results = {"draht": measured(sys.executable, "draht", address)}
        if peer:
            results["lightkube"] = measured(peer, "lightkube", address)
        assert server.stdin is not None
        server.stdin.close()
    print(f"{SLICES} ResourceSlices with {DEVICES} devices, {EVENTS} changes\n")
    print(f"{'':14} {'draht':>10} {'lightkube':>10} {'ratio':>7}")
    for name, value in results["draht"].items():
        other = results.get("lightkube", {}).get(name)
        shown = "-" if other is None else f"{other:10.0f}"
        ratio = "-" if other is None else f"{value / other:7.2f}"
        print(f"{name:14} {value:10.0f} {shown:>10} {ratio:>7}")
    if not peer:
        print("\nlightkube wasn't measured: name the python of an environment that has it in DRAHT_BENCH_LIGHTKUBE")
    if (kept := os.environ.get("DRAHT_BENCH_JSON")) is not None:
        Path(kept).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
