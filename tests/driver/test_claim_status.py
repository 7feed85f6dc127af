"""What is written to ``status.devices`` of a claim, and what of it stays as it is."""

from __future__ import annotations

import msgspec
import pytest

from draht.api.meta import Condition
from draht.api.resource import AllocatedDeviceStatus, NetworkDeviceData
from draht.driver.claims.rows import Record, RecordedDevice
from draht.driver.claims.status import failed, merged, statuses
from draht.driver.errors import DeviceMissingError
from draht.validation.limits import DEVICE_DATA_BYTES
from toy_driver import device

EARLIER, NOW, LATER = "1970-01-01T00:00:10Z", "1970-01-01T00:16:40Z", "1970-01-01T00:33:20Z"


def record(*names: str) -> Record:
    """A claim."""
    devices = tuple(RecordedDevice(result=device(name)) for name in names)
    return Record(uid="u1", namespace="default", name="c", driver="toy.example.com", devices=devices)


def status(name: str, *conditions: Condition, driver: str = "toy.example.com") -> AllocatedDeviceStatus:
    """An entry."""
    return AllocatedDeviceStatus(driver=driver, pool="node-1", device=name, conditions=conditions)


def ready(state: str = "True", at: str = NOW, *, kind: str = "Ready") -> Condition:
    """A condition."""
    return Condition(type=kind, status=state, reason="X", last_transition_time=at)


def test_each_device_is_ready_with_its_data() -> None:
    """Data and addresses are the driver's; times are whole seconds in UTC, as servers write them."""
    network = NetworkDeviceData(interface_name="eth1")
    first, second = statuses(record("toy-0", "toy-1"), {0: {"a": 1}}, {1: network}, now=1000.9)
    assert first.data == {"a": 1}
    assert second.network_data == network
    (condition,) = first.conditions
    assert (condition.type, condition.status, condition.reason) == ("Ready", "True", "Prepared")
    assert condition.last_transition_time == NOW
    assert condition.message


def test_a_device_has_one_entry_however_often_it_was_allocated() -> None:
    """The API server takes entries as a map by driver, pool, device and share."""
    shares = (device("toy-0", share="a"), device("toy-0", share="b"), device("toy-0", share="b", request="again"))
    given = msgspec.structs.replace(record(), devices=tuple(RecordedDevice(result=one) for one in shares))
    assert [one.share_id for one in statuses(given, {}, {}, now=1000.0)] == ["a", "b"]


@pytest.mark.parametrize(("size", "kept"), [(DEVICE_DATA_BYTES - 2, True), (DEVICE_DATA_BYTES - 1, False)])
def test_data_that_the_server_would_refuse_is_left_out_and_told(size: int, kept: bool) -> None:
    """A driver that says too much must not keep the rest from being written. The text has two quotes around it."""
    (one,) = statuses(record("toy-0"), {0: "x" * size}, {}, now=1000.0)
    assert (one.data is not None) == kept
    assert ("left out" in one.conditions[0].message) != kept


def test_what_failed_is_not_ready_and_says_why() -> None:
    """The reason is a word, the message the sentence; the time moves with the status only."""
    before = statuses(record("toy-0"), {0: 1}, {}, now=1000.0)
    error = DeviceMissingError("device toy-0 needs /dev/toy0, which isn't there")
    (one,) = failed(before, error, now=2000.0)
    (condition,) = one.conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "DeviceMissing", str(error))
    assert condition.last_transition_time == LATER
    assert one.data == 1
    assert failed([one], error, now=3000.0) == (one,)


@pytest.mark.parametrize(
    ("known", "ours", "written"),
    [
        pytest.param([], [status("a", ready())], [status("a", ready())], id="nothing there"),
        pytest.param(
            [status("a", ready(at=EARLIER))], [status("a", ready())], [status("a", ready(at=EARLIER))], id="unchanged"
        ),
        pytest.param(
            [status("a", ready("False", EARLIER))], [status("a", ready())], [status("a", ready())], id="status changed"
        ),
        pytest.param(
            [status("a", ready("Unknown", ""), ready(kind="Mine"))],
            [status("a", ready())],
            [status("a", ready(), ready(kind="Mine"))],
            id="another writer's condition",
        ),
        pytest.param(
            [status("a", ready(kind="Mine"))],
            [status("a", ready())],
            [status("a", ready(kind="Mine"), ready())],
            id="no such condition yet",
        ),
        pytest.param(
            [status("x", driver="other"), status("old"), status("b", ready(at=EARLIER))],
            [status("a", ready()), status("b", ready())],
            [status("x", driver="other"), status("b", ready(at=EARLIER)), status("a", ready())],
            id="another driver's entry stays, an earlier allocation's goes",
        ),
        pytest.param([status("x", driver="other")], [], [status("x", driver="other")], id="nothing of ours"),
    ],
)
def test_what_is_written(
    known: list[AllocatedDeviceStatus], ours: list[AllocatedDeviceStatus], written: list[AllocatedDeviceStatus]
) -> None:
    """The server's list with our entries in it; done again, nothing changes."""
    found = merged(known, ours)
    assert found == tuple(written)
    assert merged(found, ours) == found
