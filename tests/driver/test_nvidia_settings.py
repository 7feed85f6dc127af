from __future__ import annotations

from typing import Any

import pytest

from draht.driver.errors import ParametersError
from draht.driver.vendors.drivers import NvidiaDriver
from draht.driver.vendors.nvidia_config import API_VERSION
from draht.driver.vendors.nvidia_settings import settings
from draht.hardware import profiles
from draht.hardware.simulated import SimulatedProvider
from driver_claims import claim_of, parameters

WHERE = "status.allocation.devices.config"
DRIVER = NvidiaDriver(SimulatedProvider(profiles.load("dgx-h100")), partitions=True)
MIG = "gpu-1-mig-1g10gb-19-0"


def gpu(interval: str | None = None, **sharing: Any) -> dict[str, Any]:
    """A GpuConfig."""
    value: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "GpuConfig"}
    if interval is not None:
        sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}
    return {**value, "sharing": sharing} if sharing else value


def mig(**sharing: Any) -> dict[str, Any]:
    """A MigDeviceConfig."""
    return {"apiVersion": API_VERSION, "kind": "MigDeviceConfig", **({"sharing": sharing} if sharing else {})}


def test_the_later_one_wins_and_the_claim_comes_after_the_class() -> None:
    """A class asks for long slices, the claim for the default: that is what applies."""
    claim = claim_of(
        DRIVER, {"a": "gpu-0"}, parameters(gpu("Long"), source="FromClass"), parameters(gpu("Default"), index=1)
    )
    (chosen,) = settings(claim).values()
    assert chosen.kind == "GpuConfig"
    with pytest.raises(ParametersError, match="Long"):
        settings(claim_of(DRIVER, {"a": "gpu-0"}, parameters(gpu("Default")), parameters(gpu("Long"), index=1)))


def test_parameters_without_requests_apply_where_they_fit() -> None:
    """One for GPUs and one for instances, in one claim."""
    claim = claim_of(DRIVER, {"whole": "gpu-0", "part": MIG}, parameters(gpu()), parameters(mig(), index=1))
    assert {key.split("/")[0]: config.kind for key, config in settings(claim).items()} == {
        "whole": "GpuConfig",
        "part": "MigDeviceConfig",
    }


def test_parameters_that_name_a_request_must_fit_its_device() -> None:
    """A GpuConfig for an instance is an error of the claim."""
    claim = claim_of(DRIVER, {"part": MIG}, parameters(gpu(), requests=("part",), index=3))
    with pytest.raises(ParametersError, match=f"GpuConfig doesn't fit device {MIG} of request part") as raised:
        settings(claim)
    assert raised.value.where == f"{WHERE}[3].opaque.parameters.kind"


def test_devices_without_parameters_need_none() -> None:
    """The defaults change nothing."""
    assert settings(claim_of(DRIVER, {"a": "gpu-0", "b": MIG})) == {}


@pytest.mark.parametrize(
    ("device", "value", "field", "message"),
    [
        ("gpu-0", gpu("Short"), "sharing.timeSlicingConfig.interval", "interval Short is asked for"),
        ("gpu-0", gpu("Medium"), "sharing.timeSlicingConfig.interval", "interval Medium is asked for"),
        ("gpu-0", gpu("Long"), "sharing.timeSlicingConfig.interval", "interval Long is asked for"),
        ("gpu-0", gpu(strategy="MPS"), "sharing.strategy", "MPS is asked for"),
        (MIG, mig(strategy="MPS", mpsConfig={"multiUser": True}), "sharing.strategy", "MPS is asked for"),
        (
            "gpu-0",
            {"apiVersion": API_VERSION, "kind": "ComputeDomainChannelConfig", "domainID": "1"},
            "kind",
            "a ComputeDomain is asked for",
        ),
        (
            "gpu-0",
            {"apiVersion": API_VERSION, "kind": "ComputeDomainDaemonConfig", "domainID": "1"},
            "kind",
            "a ComputeDomain is asked for",
        ),
    ],
)
@pytest.mark.parametrize("requests", [(), ("r",)])
def test_what_draht_doesnt_do_yet_is_refused(
    device: str, value: Any, field: str, message: str, requests: tuple[str, ...]
) -> None:
    """By name and place, with the next step; whether or not the parameters name the request."""
    with pytest.raises(ParametersError, match=message) as raised:
        settings(claim_of(DRIVER, {"r": device}, parameters(value, requests=requests, index=1)))
    assert raised.value.where == f"{WHERE}[1].opaque.parameters.{field}"
    assert raised.value.hint


@pytest.mark.parametrize(
    ("device", "value"),
    [
        ("gpu-0", gpu()),
        ("gpu-0", gpu("Default")),
        ("gpu-0", gpu(strategy="TimeSlicing")),
        (MIG, mig()),
        (MIG, mig(strategy="TimeSlicing")),
    ],
)
def test_what_changes_nothing_is_accepted(device: str, value: Any) -> None:
    """The defaults, written out."""
    assert len(settings(claim_of(DRIVER, {"r": device}, parameters(value, requests=("r",))))) == 1


def test_every_problem_of_a_claim_is_told_in_one_error() -> None:
    """Of several parameters and several devices, each once."""
    claim = claim_of(
        DRIVER,
        {"a": "gpu-0", "b": "gpu-1"},
        parameters(gpu("Long")),
        parameters({**gpu(), "x": 1}, index=1, requests=("a",)),
        parameters(gpu("Never"), index=2, requests=("b",)),
    )
    with pytest.raises(ParametersError) as raised:
        settings(claim)
    text = str(raised.value)
    assert raised.value.where == WHERE
    assert text.count("unknown field") == text.count('"Never"') == 1
    # The first was written for all, but each device has later ones of its own.
    assert "interval Long" not in text


def test_parameters_that_lose_must_be_readable_but_arent_carried_out() -> None:
    """A class that asks for long slices does no harm where the claim says otherwise; one with a typo does."""
    settings(claim_of(DRIVER, {"a": "gpu-0"}, parameters(gpu("Long")), parameters(gpu(), index=1)))
    with pytest.raises(ParametersError, match="unknown field"):
        settings(claim_of(DRIVER, {"a": "gpu-0"}, parameters({**gpu(), "x": 1}), parameters(gpu(), index=1)))
