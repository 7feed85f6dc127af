"""Older versions of `resource.k8s.io` to v1 and back, by themselves and against upstream's conversion functions."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from api.objects import cases, filled, go_canonical, meant
from draht.api import core, resource
from draht.api.conversion import ConversionError, Version, from_v1, to_v1
from draht.api.kinds import KINDS
from draht.api.meta import Object, ObjectMeta
from draht.api.reader import read_object
from draht.api.resource import v1alpha3, v1beta1, v1beta2
from oracle_client import Oracle

GROUP = "resource.k8s.io"
OLD_KINDS = sorted(key for key in KINDS if key[0].startswith(GROUP) and key[0] != f"{GROUP}/v1")
CONVERTED_BY_UPSTREAM = [key for key in OLD_KINDS if key[1] != "DeviceTaintRule"]
"""Upstream's public conversion has no DeviceTaintRule, whose versions don't differ."""
DENSITIES = (0, 25, 60, 100)


def version_of(key: tuple[str, str]) -> Version:
    """The version of an ``apiVersion``."""
    version: Version = key[0].removeprefix(f"{GROUP}/")  # type: ignore[assignment]  # one of the versions by its origin
    return version


def generated(oracle: Oracle, key: tuple[str, str]) -> list[Object]:
    """Generated objects from almost empty to full."""
    seeds = range(cases(80) // len(DENSITIES) + 1)
    values = [value for density in DENSITIES for value in filled(oracle, key, seeds=seeds, density=density)]
    return [read_object(json.dumps(value).encode(), KINDS[key]) for value in values]


def upstream(oracle: Oracle, structs: list[Object], version: str) -> list[Any]:
    """What upstream converts the objects to."""
    return oracle.call_many("resource.convert", [{"json": msgspec.json.encode(one), "to": version} for one in structs])


@pytest.mark.parametrize("key", CONVERTED_BY_UPSTREAM, ids="-".join)
def test_old_to_v1_is_what_upstream_makes_of_it(oracle: Oracle, key: tuple[str, str]) -> None:
    """Every generated old object becomes the same v1 object as in upstream's conversion."""
    structs = generated(oracle, key)
    ours = go_canonical(oracle, key, [msgspec.json.encode(to_v1(struct)) for struct in structs])
    for our, their in zip(ours, upstream(oracle, structs, f"{GROUP}/v1"), strict=True):
        assert meant(our) == meant(their)


@pytest.mark.parametrize("key", CONVERTED_BY_UPSTREAM, ids="-".join)
def test_v1_to_old_is_what_upstream_makes_of_it(oracle: Oracle, key: tuple[str, str]) -> None:
    """Every generated v1 object becomes the same old object as in upstream's conversion."""
    structs = generated(oracle, (f"{GROUP}/v1", key[1]))
    ours = go_canonical(oracle, key, [msgspec.json.encode(from_v1(struct, version_of(key))) for struct in structs])
    for our, their in zip(ours, upstream(oracle, structs, key[0]), strict=True):
        assert meant(our) == meant(their)


def expressible(value: Any) -> Any:
    """A v1 object without what v1beta1 can't say: a slice's empty node name and its false ``allNodes``."""
    if isinstance(value, resource.ResourceSlice):
        spec = value.spec
        spec = msgspec.structs.replace(spec, node_name=spec.node_name or None, all_nodes=spec.all_nodes or None)
        return msgspec.structs.replace(value, spec=spec)
    return value


@pytest.mark.parametrize("key", OLD_KINDS, ids="-".join)
def test_v1_survives_an_older_version(oracle: Oracle, key: tuple[str, str]) -> None:
    """A v1 object is the same after it was an older one, but for what the server loses as well."""
    for struct in generated(oracle, (f"{GROUP}/v1", key[1])):
        assert to_v1(from_v1(struct, version_of(key))) == (
            expressible(struct) if version_of(key) == "v1beta1" else struct
        )


@pytest.mark.parametrize("key", OLD_KINDS, ids="-".join)
def test_an_old_object_survives_v1(oracle: Oracle, key: tuple[str, str]) -> None:
    """An old object is the same after it was v1, but for a device without ``basic``, which gets an empty one."""
    for struct in generated(oracle, key):
        expected: Any = struct
        if isinstance(struct, v1beta1.ResourceSlice):
            devices = tuple(
                msgspec.structs.replace(device, basic=device.basic or v1beta1.BasicDevice())
                for device in struct.spec.devices
            )
            expected = msgspec.structs.replace(struct, spec=msgspec.structs.replace(struct.spec, devices=devices))
        assert from_v1(to_v1(struct), version_of(key)) == expected


def test_a_flat_request_gets_its_exactly() -> None:
    """The fields of a v1beta1 request move under ``exactly``; its name stays."""
    request = v1beta1.DeviceRequest(name="gpu", device_class_name="gpu.example.com", count=2, admin_access=False)
    spec = v1beta1.ResourceClaimSpec(devices=v1beta1.DeviceClaim(requests=(request,)))
    converted = to_v1(v1beta1.ResourceClaim(metadata=ObjectMeta(name="a"), spec=spec))
    assert isinstance(converted, resource.ResourceClaim)
    assert converted.metadata.name == "a"
    assert converted.spec.devices.requests == (
        resource.DeviceRequest(
            name="gpu",
            exactly=resource.ExactDeviceRequest(device_class_name="gpu.example.com", count=2, admin_access=False),
        ),
    )


def test_alternatives_leave_exactly_unset() -> None:
    """A v1beta1 request with ``firstAvailable`` only has no ``exactly`` in v1."""
    alternative = resource.DeviceSubRequest(name="big", device_class_name="gpu.example.com")
    request = v1beta1.DeviceRequest(name="gpu", first_available=(alternative,))
    spec = v1beta1.ResourceClaimSpec(devices=v1beta1.DeviceClaim(requests=(request,)))
    converted = to_v1(v1beta1.ResourceClaim(spec=spec))
    assert isinstance(converted, resource.ResourceClaim)
    assert converted.spec.devices.requests == (resource.DeviceRequest(name="gpu", first_available=(alternative,)),)


def test_admin_access_that_is_false_counts_as_given() -> None:
    """``adminAccess: false`` alone makes an ``exactly``, as in the server: it is a pointer that is set."""
    request = v1beta1.DeviceRequest(name="gpu", admin_access=False)
    spec = v1beta1.ResourceClaimSpec(devices=v1beta1.DeviceClaim(requests=(request,)))
    converted = to_v1(v1beta1.ResourceClaim(spec=spec))
    assert isinstance(converted, resource.ResourceClaim)
    exactly = converted.spec.devices.requests[0].exactly
    assert exactly == resource.ExactDeviceRequest(device_class_name="", admin_access=False)


def test_lists_are_converted_item_by_item() -> None:
    """A list becomes the list of the other version, with its metadata."""
    device = resource.Device(name="gpu-0", attributes={"index": resource.DeviceAttribute(int_=0)})
    spec = resource.ResourceSliceSpec(
        driver="gpu.example.com", pool=resource.ResourcePool(name="n", resource_slice_count=1), devices=(device,)
    )
    slices = resource.ResourceSliceList(items=(resource.ResourceSlice(spec=spec),))
    old = from_v1(slices, "v1beta1")
    assert isinstance(old, v1beta1.ResourceSliceList)
    assert old.items[0].spec.devices[0].basic == v1beta1.BasicDevice(
        attributes={"index": resource.DeviceAttribute(int_=0)}
    )
    assert to_v1(old) == slices


def test_other_groups_come_back_as_they_are() -> None:
    """A pod has no other version; it passes through both functions unchanged."""
    pod = core.Pod(spec=core.PodSpec(containers=(core.Container(name="c"),)))
    assert to_v1(pod) is pod
    assert from_v1(pod, "v1beta1") is pod


RULE = resource.DeviceTaintRule(
    spec=resource.DeviceTaintRuleSpec(taint=resource.DeviceTaint(key="example.com/broken", effect="NoSchedule"))
)


def test_taint_rules_keep_their_shape() -> None:
    """A DeviceTaintRule differs between its three versions by nothing but the version."""
    assert isinstance(from_v1(RULE, "v1beta2"), v1beta2.DeviceTaintRule)
    assert isinstance(from_v1(RULE, "v1alpha3"), v1alpha3.DeviceTaintRule)


@pytest.mark.parametrize(
    ("struct", "version", "message"),
    [
        (RULE, "v1beta1", "resource.k8s.io/v1beta1 has no DeviceTaintRule"),
        (resource.DeviceClass(), "v1alpha3", "resource.k8s.io/v1alpha3 has no DeviceClass"),
        (v1beta1.DeviceClass(), "v1beta2", "resource.k8s.io/v1beta1 DeviceClass isn't v1"),
    ],
)
def test_a_kind_that_a_version_lacks_is_refused(struct: Object, version: Version, message: str) -> None:
    """What can't be converted says so in one sentence."""
    with pytest.raises(ConversionError) as caught:
        from_v1(struct, version)
    assert caught.value.message == message
    assert caught.value.hint
