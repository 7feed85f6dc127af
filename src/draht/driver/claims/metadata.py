"""Device metadata files (KEP-5304): what a workload can read about its devices, as JSON in a file.

Owns the paths, the content, and the mounts. As released with Kubernetes 1.37 (``api/metadata`` of
dynamic-resource-allocation v0.37.2): one file for each request and driver, a stream of the same object in every
version of the API, newest first, so that older readers find one that they know. Why a mount per file: requests of one
claim may go to different containers. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from draht import cdi
from draht.api.resource import NetworkDeviceData
from draht.driver.claims.allocated import Devices
from draht.driver.claims.rows import Record, RecordedDevice

__all__ = ["CONTAINER_DIRECTORY", "VERSIONS", "MetadataFile", "metadata_files"]

CONTAINER_DIRECTORY: Final = "/var/run/kubernetes.io/dra-device-attributes"
"""Where containers find the files."""

VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
"""Versions of the API, newest first; readers of Kubernetes 1.36 know the second only. They differ in nothing."""


class MetadataFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file and how a container gets it.

    Attributes:
        path: On the host.
        content: The stream.
        mount: For the CDI devices of the request.
        devices: Indexes of these devices in the claim's record.
    """

    path: Path
    content: bytes
    mount: cdi.Mount
    devices: tuple[int, ...]


def metadata_files(
    record: Record, directory: Path, offered: Devices, network: Mapping[int, NetworkDeviceData]
) -> tuple[MetadataFile, ...]:
    """The files of a claim, one for each request.

    Args:
        record: The claim.
        directory: Where its files go on the host; made for this claim and driver only.
        offered: What the driver offers now; attributes come from there.
        network: Index of a device in the record → its addresses.
    """
    requests: dict[str, list[int]] = {}
    for index, device in enumerate(record.devices):
        requests.setdefault(device.result.request.partition("/")[0], []).append(index)
    return tuple(
        MetadataFile(
            path=directory / f"{base}.json",
            content=_stream(record, indexes, offered, network),
            mount=cdi.Mount(
                host_path=str(directory / f"{base}.json"),
                container_path=_container_path(record, base),
                options=("ro", "bind"),
            ),
            devices=tuple(indexes),
        )
        for base, indexes in requests.items()
    )


def _container_path(record: Record, request: str) -> str:
    where = f"resourceclaims/{record.name}"
    if record.pod_claim_name:
        where = f"resourceclaimtemplates/{record.pod_claim_name}"
    return f"{CONTAINER_DIRECTORY}/{where}/{request}/{record.driver}-metadata.json"


def _stream(record: Record, indexes: list[int], offered: Devices, network: Mapping[int, NetworkDeviceData]) -> bytes:
    metadata = {"name": record.name, "namespace": record.namespace, "uid": record.uid, "generation": 1}
    body: dict[str, object] = {"metadata": metadata}
    if record.pod_claim_name:
        body["podClaimName"] = record.pod_claim_name
    # All devices of a request have the same alternative of it, if it has several.
    name = record.devices[indexes[0]].result.request
    found = [_device(record.devices[index], offered, network.get(index)) for index in indexes]
    body["requests"] = [{"name": name, "devices": found}]
    objects = ({"kind": "DeviceMetadata", "apiVersion": version, **body} for version in VERSIONS)
    return b"".join(msgspec.json.format(msgspec.json.encode(one), indent=2) + b"\n" for one in objects)


def _device(device: RecordedDevice, offered: Devices, network: NetworkDeviceData | None) -> dict[str, object]:
    result = device.result
    found: dict[str, object] = {"driver": result.driver, "pool": result.pool, "name": result.device}
    known = offered.get((result.pool, result.device))
    if known is not None and known.device.attributes:
        found["attributes"] = dict(sorted(known.device.attributes.items()))
    if network is not None:
        found["networkData"] = network
    return found
