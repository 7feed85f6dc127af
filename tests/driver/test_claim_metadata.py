"""Device metadata files as Kubernetes 1.37 released them (KEP-5304): paths, streams and mounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from draht import cdi
from draht.api.resource import Device, DeviceAttribute, NetworkDeviceData
from draht.driver.claims.metadata import metadata_files
from draht.driver.claims.rows import Record, RecordedDevice
from draht.driver.framework import Offered
from toy_driver import NODE, claim, device, preparer

DIRECTORY = Path("/host/u1")


def record(*devices: tuple[str, str], template: str = "") -> Record:
    """A claim of (request, device)."""
    return Record(
        uid="u1",
        namespace="default",
        name="my-claim",
        driver="toy.example.com",
        pod_claim_name=template,
        devices=tuple(RecordedDevice(result=device(name, request=request)) for request, name in devices),
    )


def stream(content: bytes) -> list[dict[str, Any]]:
    """The objects of a stream, as a reader of Go's `json.Decoder` finds them."""
    text, found = content.decode(), []
    while text.strip():
        one, end = json.JSONDecoder().raw_decode(text.lstrip())
        found.append(one)
        text = text.lstrip()[end:]
    return found


@pytest.mark.parametrize(
    ("template", "request_", "path"),
    [
        ("", "gpu", "resourceclaims/my-claim/gpu/toy.example.com-metadata.json"),
        ("pods-name", "gpu", "resourceclaimtemplates/pods-name/gpu/toy.example.com-metadata.json"),
        ("", "gpu/second", "resourceclaims/my-claim/gpu/toy.example.com-metadata.json"),
    ],
)
def test_where_a_container_finds_the_file(template: str, request_: str, path: str) -> None:
    """By the name of the claim, or by its name in the pod if it was made from a template; alternatives aren't named."""
    (one,) = metadata_files(record((request_, "toy-0"), template=template), DIRECTORY, {}, {})
    assert one.mount == cdi.Mount(
        host_path="/host/u1/gpu.json",
        container_path=f"/var/run/kubernetes.io/dra-device-attributes/{path}",
        options=("ro", "bind"),
    )


def test_a_file_is_a_stream_of_all_versions_with_the_same_content() -> None:
    """Newest first, so that a reader takes the best it knows; field names and nesting as in the released types."""
    offered = {
        (NODE, "toy-0"): Offered(
            device=Device(
                name="toy-0",
                attributes={
                    "model": DeviceAttribute(string="Toy"),
                    "resource.kubernetes.io/numaNode": DeviceAttribute(int_=0),
                    "list": DeviceAttribute(strings=("a", "b")),
                },
            )
        )
    }
    network = {0: NetworkDeviceData(interface_name="eth1", ips=("10.0.0.1/24",), hardware_address="02:00:00:00:00:01")}
    (one,) = metadata_files(record(("net/fast", "toy-0"), template="pods-name"), DIRECTORY, offered, network)
    first, second = stream(one.content)
    assert first == {
        "kind": "DeviceMetadata",
        "apiVersion": "metadata.resource.k8s.io/v1beta1",
        "metadata": {"name": "my-claim", "namespace": "default", "uid": "u1", "generation": 1},
        "podClaimName": "pods-name",
        "requests": [
            {
                "name": "net/fast",
                "devices": [
                    {
                        "driver": "toy.example.com",
                        "pool": NODE,
                        "name": "toy-0",
                        "attributes": {
                            "list": {"strings": ["a", "b"]},
                            "model": {"string": "Toy"},
                            "resource.kubernetes.io/numaNode": {"int": 0},
                        },
                        "networkData": {
                            "interfaceName": "eth1",
                            "ips": ["10.0.0.1/24"],
                            "hardwareAddress": "02:00:00:00:00:01",
                        },
                    }
                ],
            }
        ],
    }
    assert second == {**first, "apiVersion": "metadata.resource.k8s.io/v1alpha1"}


def test_each_request_has_its_own_file_with_its_devices_only() -> None:
    """Requests of a claim may go to different containers, which see nothing of each other's."""
    files = metadata_files(record(("a", "toy-0"), ("b", "toy-1"), ("a", "toy-2")), DIRECTORY, {}, {})
    assert [(one.path.name, one.devices) for one in files] == [("a.json", (0, 2)), ("b.json", (1,))]
    names = [[found["name"] for found in stream(one.content)[0]["requests"][0]["devices"]] for one in files]
    assert names == [["toy-0", "toy-2"], ["toy-1"]]


def test_prepared_files_are_readable_by_every_user_and_mounted_read_only(tmp_path: Path) -> None:
    """The container's user is anybody; the name in the pod comes from the annotation of the claim."""
    preparer(tmp_path).prepare(claim("u1", "toy-0", device("toy-1", request="more"), template="pods-name"))
    directory = tmp_path / "metadata/toy.example.com/u1"
    assert sorted(path.name for path in directory.iterdir()) == ["more.json", "toys.json"]
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o644}
    assert stream((directory / "toys.json").read_bytes())[0]["podClaimName"] == "pods-name"
    spec = cdi.decode((tmp_path / "cdi/k8s.toy.example.com-claim_u1.json").read_bytes())
    mounts = [one for found in spec.devices for one in found.container_edits.mounts]
    assert {one.options for one in mounts} == {("ro", "bind")}
    assert [Path(one.container_path).parent.name for one in mounts] == ["toys", "more"]
