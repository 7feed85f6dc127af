"""The messages on the wire: made from proto/, the same as upstream's, and usable beside other packages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorSet

import gotoolchain
import wire
from requirements import require

KUBELET = "k8s.io/kubelet@v0.37.2"
UPSTREAM = {
    "registration": "pluginregistration/v1",
    "dra_v1": "dra/v1",
    "dra_v1beta1": "dra/v1beta1",
    "health_v1": "dra-health/v1",
    "health_v1alpha1": "dra-health/v1alpha1",
    "device_plugin": "deviceplugin/v1beta1",
    "pod_resources": "podresources/v1",
}
"""Our file → the directory of upstream's, below ``pkg/apis``."""


def test_the_generated_modules_are_those_of_proto() -> None:
    """What is checked in is what ``tools/wire.py`` writes; run it after a change of proto/ or of grpcio-tools."""
    there = {path.name: path.read_text(encoding="utf-8") for path in wire.WIRE.glob("*_pb2.py*")}
    assert there == wire.generate()


@pytest.fixture(scope="module")
def upstream() -> Path:
    """The directory of upstream's API definitions, from the Go module proxy."""
    try:
        go = gotoolchain.find((1, 21))
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise
    done = subprocess.run(
        [go, "mod", "download", "-json", KUBELET],
        env=gotoolchain.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    require(done.returncode == 0, f"the Go module {KUBELET} can't be fetched")
    return Path(json.loads(done.stdout)["Dir"], "pkg", "apis")


def compiled(directory: Path, file: str, out: Path) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a proto file."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={directory}", f"--descriptor_set_out={out}"]
    subprocess.run([*command, file], check=True)
    return FileDescriptorSet.FromString(out.read_bytes()).file[0]


def facts(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[Any, ...]]:
    """Everything in a file that matters on the wire."""
    for message in file.message_type:
        yield from _of_message(message, file.package)
    for enum in file.enum_type:
        yield from _of_enum(enum, file.package)
    for service in file.service:
        for method in service.method:
            yield (
                f"/{file.package}.{service.name}/{method.name}",
                method.input_type,
                method.output_type,
                method.server_streaming,
            )


def _of_message(message: DescriptorProto, package: str) -> Iterator[tuple[Any, ...]]:
    name = f"{package}.{message.name}"
    yield (name,)
    for field in message.field:
        yield (name, field.name, field.number, field.type, field.label, field.type_name, field.proto3_optional)
    for nested in message.nested_type:
        yield from _of_message(nested, name)


def _of_enum(enum: EnumDescriptorProto, package: str) -> Iterator[tuple[Any, ...]]:
    for value in enum.value:
        yield (f"{package}.{enum.name}", value.name, value.number)


@pytest.mark.parametrize("ours", UPSTREAM)
def test_numbers_and_types_are_those_of_upstream(upstream: Path, tmp_path: Path, ours: str) -> None:
    """Every message, field, value and method of ours is in upstream's file, and all its fields are in ours."""
    mine = set(facts(compiled(wire.PROTO, f"{ours}.proto", tmp_path / "ours")))
    theirs = set(facts(compiled(upstream / UPSTREAM[ours], "api.proto", tmp_path / "theirs")))
    assert mine <= theirs
    names = {fact[0] for fact in mine}
    assert {fact for fact in theirs if fact[0] in names} == mine


def test_every_proto_file_is_compared() -> None:
    """A new file is added to the table above."""
    assert {path.stem for path in wire.PROTO.glob("*.proto")} == set(UPSTREAM)


def test_the_modules_load_beside_each_other() -> None:
    """All of them, in one process and in any order, since the pool of protobuf is shared."""
    modules = [f"draht.node.wire.{name}_pb2" for name in UPSTREAM]
    for order in (modules, modules[::-1]):
        subprocess.run([sys.executable, "-W", "error", "-c", f"import {', '.join(order)}"], check=True)
