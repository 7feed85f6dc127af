from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draht.driver.vendors.nvidia_config import API_VERSION, KINDS, MAX_BYTES, Config, VfioDeviceConfig, faults, read

WHERE = "status.allocation.devices.config[2].opaque.parameters"


def config(kind: str, **fields: Any) -> dict[str, Any]:
    """Parameters of a kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **fields}


def problems(value: Any) -> dict[str, str]:
    """Field → what is wrong with it, of shape or, if that is right, of rules."""
    found, wrong = read(value, where=WHERE)
    wrong = wrong if found is None else faults(found, where=WHERE)
    return {fault.where.removeprefix(WHERE).lstrip("."): fault.message for fault in wrong}


def good(value: Any) -> Config:
    """Parameters without problems."""
    found, wrong = read(value, where=WHERE)
    assert wrong == []
    assert found is not None
    assert faults(found, where=WHERE) == []
    return found


@pytest.mark.parametrize(
    "value",
    [
        config("GpuConfig"),
        config("GpuConfig", sharing=None),
        config("GpuConfig", sharing={"strategy": "TimeSlicing"}),
        config("GpuConfig", sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}),
        config("GpuConfig", sharing={"strategy": "MPS"}),
        config(
            "GpuConfig",
            sharing={
                "strategy": "MPS",
                "mpsConfig": {
                    "defaultActiveThreadPercentage": 100,
                    "defaultPinnedDeviceMemoryLimit": "1Mi",
                    "defaultPerDevicePinnedMemoryLimit": {"0": "10Gi", "GPU-1c2d": 2097152},
                    "multiUser": True,
                },
            },
        ),
        config("MigDeviceConfig", sharing={"strategy": "TimeSlicing"}),
        config("MigDeviceConfig", sharing={"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 0}}),
        config("VfioDeviceConfig", iommu={"backendPolicy": "PreferIommuFD", "enableAPIDevice": True}),
        config("ComputeDomainChannelConfig", domainID="1-2-3", allocationMode="All"),
        config("ComputeDomainChannelConfig", domainID="1-2-3"),
        config("ComputeDomainDaemonConfig", domainID="1-2-3"),
    ],
)
def test_what_nvidias_driver_reads_is_read(value: dict[str, Any]) -> None:
    """As an object, as JSON text and as bytes."""
    as_object = good(value)
    assert good(json.dumps(value)) == as_object
    assert good(json.dumps(value).encode()) == as_object


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (3, {"": "aren't an object"}),
        (None, {"": "aren't an object"}),
        ([], {"": "aren't an object"}),
        ("{", {"": "aren't JSON"}),
        (b"\xff", {"": "aren't JSON"}),
        ("", {"": "aren't JSON"}),
        ({"apiVersion": API_VERSION}, {"kind": 'unknown kind ""'}),
        (config("GpuConfg"), {"kind": "did you mean GpuConfig?"}),
        ({"apiVersion": "gpu.resource.nvidia.com/v1alpha1", "kind": "GpuConfig"}, {"apiVersion": "isn't the API"}),
        ({"kind": "x"}, {"apiVersion": "isn't the API", "kind": "unknown kind"}),
        (f'{{"apiVersion": "{API_VERSION}", "kind": "GpuConfig", "kind": "GpuConfig"}}', {"kind": "duplicate"}),
        (config("GpuConfig", shraing={}), {"shraing": "unknown field"}),
        (
            config("GpuConfig", sharing={"strategi": "MPS", "mpsConfig": {"multiUser": "yes"}}),
            {
                "sharing.strategi": "unknown field",
                "sharing.strategy": "is required",
                "sharing.mpsConfig.multiUser": "expected true or false",
            },
        ),
        (
            config(
                "GpuConfig",
                sharing={
                    "strategy": "Magic",
                    "timeSlicingConfig": {"interval": "Forever"},
                    "mpsConfig": {
                        "defaultActiveThreadPercentage": 101,
                        "defaultPinnedDeviceMemoryLimit": "1Ki",
                        "defaultPerDevicePinnedMemoryLimit": {"first": "1Gi", "0": "0"},
                    },
                },
            ),
            {
                "sharing.strategy": "isn't one of TimeSlicing, MPS",
                "sharing.timeSlicingConfig.interval": "isn't one of Default, Short, Medium, Long",
                "sharing.mpsConfig.defaultActiveThreadPercentage": "101 isn't between 0 and 100",
                "sharing.mpsConfig.defaultPinnedDeviceMemoryLimit": "1Ki is less than 1Mi",
                "sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit[first]": "neither an index nor a UUID",
                "sharing.mpsConfig.defaultPerDevicePinnedMemoryLimit[0]": "0 is less than 1Mi",
            },
        ),
        (
            config("GpuConfig", sharing={"strategy": "MPS", "timeSlicingConfig": {"interval": "Long"}}),
            {"sharing.timeSlicingConfig": "doesn't go with the strategy MPS"},
        ),
        (
            config("GpuConfig", sharing={"strategy": "MPS", "timeSlicingConfig": {}}),
            {"sharing.timeSlicingConfig": "doesn't go with the strategy MPS"},
        ),
        (
            config(
                "GpuConfig", sharing={"strategy": "TimeSlicing", "mpsConfig": {"defaultActiveThreadPercentage": -1}}
            ),
            {"sharing.mpsConfig": "doesn't go with the strategy TimeSlicing"},
        ),
        (
            config("GpuConfig", sharing={"strategy": "TimeSlicing", "mpsConfig": {}}),
            {"sharing.mpsConfig": "doesn't go with the strategy TimeSlicing"},
        ),
        (
            config("GpuConfig", sharing={"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": "50"}}),
            {"sharing.mpsConfig.defaultActiveThreadPercentage": "expected an integer"},
        ),
        (
            config("GpuConfig", sharing={"strategy": "MPS", "mpsConfig": {"defaultPinnedDeviceMemoryLimit": "much"}}),
            {"sharing.mpsConfig.defaultPinnedDeviceMemoryLimit": "is not an amount"},
        ),
        (
            config("MigDeviceConfig", sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}),
            {"sharing.timeSlicingConfig": "unknown field"},
        ),
        (config("VfioDeviceConfig", iommu={"backendPolicy": "Newest"}), {"iommu.backendPolicy": "isn't one of"}),
        (config("ComputeDomainChannelConfig"), {"domainID": "is required"}),
        (
            config("ComputeDomainChannelConfig", domainID="", allocationMode="Some"),
            {"domainID": "must not be empty", "allocationMode": "isn't one of Single, All"},
        ),
        (config("ComputeDomainDaemonConfig", domainID="x", allocationMode="All"), {"allocationMode": "unknown field"}),
        (config("GpuConfig", sharing="x" * MAX_BYTES), {"": "bytes"}),
    ],
)
def test_everything_that_is_wrong_is_told_at_once_with_its_field(value: Any, wrong: dict[str, str]) -> None:
    """One entry for each problem, under the path that the person wrote."""
    found = problems(value)
    assert set(found) == set(wrong)
    for path, text in wrong.items():
        assert text in found[path]


def test_what_isnt_said_is_filled_in_as_nvidias_driver_does() -> None:
    """Defaults are those of the driver, also for an empty time-slicing config."""
    gpu: Any = good(config("GpuConfig", sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {}}))
    assert gpu.sharing.time_slicing_config.interval == "Default"
    mps: Any = good(config("MigDeviceConfig", sharing={"strategy": "MPS"}))
    assert mps.sharing.mps_config.multi_user is None
    for iommu in (None, {}, {"backendPolicy": ""}):
        vfio = good(config("VfioDeviceConfig", iommu=iommu))
        assert isinstance(vfio, VfioDeviceConfig)
        assert vfio.iommu is not None
        assert (vfio.iommu.backend_policy, vfio.iommu.enable_api_device) == ("LegacyOnly", False)
    assert good(config("GpuConfig")).kind == "GpuConfig"


def test_deep_nesting_ends_in_a_problem() -> None:
    """Neither the stack nor the time runs out."""
    assert "" in problems("[" * 5000)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    assert problems(config("GpuConfig", sharing=deep))


TEXTS = st.text('aZ0-_. "\\{é', max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["sharing", "strategy", "mpsConfig", "timeSlicingConfig", "iommu", "domainID", "interval"])


@given(st.sampled_from([*KINDS, "Other"]), st.dictionaries(FIELDS, JSON | st.dictionaries(FIELDS, JSON), max_size=4))
def test_whatever_json_says_ends_in_a_config_or_in_problems(kind: str, fields: dict[str, Any]) -> None:
    """Nothing else is raised, and each problem names a field of the claim."""
    found, wrong = read(config(kind, **fields), where=WHERE)
    assert (found is None) == bool(wrong)
    for fault in wrong if found is None else faults(found, where=WHERE):
        assert fault.where.startswith(WHERE)
        assert fault.message
