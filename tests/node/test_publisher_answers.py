from __future__ import annotations

from dataclasses import replace

import pytest

from draht.api.resource import Counter, CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, DeviceTaint
from draht.driver.framework import Offer, Offered, Pool
from draht.kube import Backoff
from draht.node.slices.publisher import Publisher
from draht.node.slices.wishes import combines_counters
from draht.validation import ALL, DEFAULT, Gates
from fake_apiserver import Object
from fake_slice_server import AT_ONCE, SliceServer, many, offer, publishing, run, settled, until


def partitioned(gpus: int = 2) -> Offer:
    """GPUs with two halves each, which share counters."""
    sets, groups = [], []
    for gpu in range(gpus):
        sets.append(CounterSet(name=f"gpu-{gpu}", counters={"memory": Counter(value="80Gi")}))
        groups.append(
            tuple(
                Offered(device=Device(name=f"gpu-{gpu}{suffix}", consumes_counters=(_memory(f"gpu-{gpu}", amount),)))
                for suffix, amount in (("", "80Gi"), ("-a", "40Gi"), ("-b", "40960Mi"))
            )
        )
    return Offer(pools=(Pool(groups=tuple(groups), counter_sets=tuple(sets)),))


def _memory(counter_set: str, amount: str) -> DeviceCounterConsumption:
    return DeviceCounterConsumption(counter_set=counter_set, counters={"memory": Counter(value=amount)})


def with_device(device: Device) -> Offer:
    """Three plain devices and a special one."""
    pool = offer(*many(3)).pools[0]
    return Offer(pools=(Pool(groups=((*pool.groups[0], Offered(device=device)),)),))


LISTS = Device(name="listed", attributes={"nodes": DeviceAttribute(ints=(0, 1))})
TAINTED = Device(name="tainted", taints=(DeviceTaint(key="a.example/b", effect="NoSchedule"),))


def texts(publisher: Publisher) -> str:
    """All that is said about the publisher's problems."""
    return "\n".join(f"{problem}; {problem.hint}" for problem in publisher.problems)


def test_dropped_fields_are_named_with_their_gate_and_not_written_again() -> None:
    """The slice is published without its taint: one write, then rest; and it goes on being kept as it is."""

    async def test() -> None:
        async with SliceServer(replace(DEFAULT, device_taints=False)) as server, publishing(server) as publisher:
            publisher.set(with_device(TAINTED))
            await settled(publisher)
            assert server.writes() == ["create"]
            assert "spec.devices.taints" in texts(publisher)
            assert "DRADeviceTaints" in texts(publisher)
            server.change(0, lambda obj: obj["spec"]["devices"].pop(0))
            await until(lambda: len(server.devices()) == 4)
            await settled(publisher)
            assert server.writes() == ["create", "update"]
            publisher.set(offer(*many(3)))
            await settled(publisher)
            assert publisher.problems == ()

    run(test)


def test_a_refused_device_is_left_out_alone() -> None:
    """Without its list the attribute is empty, which the server refuses; the other devices are published."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(with_device(LISTS))
            await settled(publisher)
            assert server.devices() == many(3)
            assert "device node-1/listed: the server refuses the device: attributes[nodes]" in texts(publisher)
            assert "DRAListTypeAttributes" in texts(publisher)

    run(test)


def test_a_gate_that_is_turned_on_is_noticed() -> None:
    """What was dropped and refused is tried again after a while, without storing anything, and then published."""

    async def test() -> None:
        gates = replace(DEFAULT, device_taints=False)
        async with SliceServer(gates) as server, publishing(server, replace(AT_ONCE, doubt=0.05)) as publisher:
            pool = with_device(LISTS).pools[0]
            publisher.set(Offer(pools=(Pool(groups=(*pool.groups, (Offered(device=TAINTED),))),)))
            await settled(publisher)
            await until(lambda: server.dry_runs > 4)
            assert len(server.writes()) == 2, "a refused create, and one without the device"
            server.gates = ALL
            await until(lambda: "listed" in server.devices() and not publisher.problems)
            assert any(device.taints for device in server.slices()[0].spec.devices)

    run(test)


def test_partitions_are_published_with_their_counters_first() -> None:
    """The counters are in a slice of their own, and each GPU with its partitions in another."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(partitioned())
            await settled(publisher)
            assert [len(each.spec.shared_counters) for each in server.slices()] == [2, 0, 0]
            assert server.names_of_devices() == [[], ["gpu-0", "gpu-0-a", "gpu-0-b"], ["gpu-1", "gpu-1-a", "gpu-1-b"]]
            assert publisher.problems == ()

    run(test)


def test_partitions_are_never_published_without_their_counters() -> None:
    """Not even for a moment: the server is asked by a dry run, and the devices are withheld."""

    async def test() -> None:
        gates = replace(DEFAULT, partitionable_devices=False)
        async with SliceServer(gates) as server, publishing(server, replace(AT_ONCE, doubt=0.05)) as publisher:
            plain = offer("plain-0", "plain-1").pools[0]
            parts = partitioned().pools[0]
            publisher.set(Offer(pools=(Pool(groups=(*parts.groups, *plain.groups), counter_sets=parts.counter_sets),)))
            await settled(publisher)
            assert server.devices() == ["plain-0", "plain-1"]
            assert "DRAPartitionableDevices" in texts(publisher)
            assert all("gpu-0-a" not in str(obj) for _, _, plural, obj in server.history if plural == "resourceslices")
            server.gates = DEFAULT
            await until(lambda: "gpu-0-a" in server.devices())
            await until(lambda: not publisher.problems)

    run(test)


def test_a_server_before_1_35_gets_counters_beside_their_devices() -> None:
    """Its counter sets reach no further than their slice."""

    async def test() -> None:
        async with _Old() as server, publishing(server) as publisher:
            publisher.set(partitioned())
            await settled(publisher)
            for gpu, each in enumerate(server.slices()):
                assert [counters.name for counters in each.spec.shared_counters] == [f"gpu-{gpu}"]
                assert len(each.spec.devices) == 3

    run(test)


class _Old(SliceServer):
    """A server of 1.34, which takes devices and counter sets in one slice."""

    def __init__(self) -> None:
        super().__init__(release="v1.34.2")

    def _judged(self, obj: Object) -> Object:
        return obj


@pytest.mark.parametrize(
    ("release", "combined"),
    [
        ("v1.32.0", True),
        ("v1.34.9-gke.1", True),
        ("v1.35.0", False),
        ("v1.37.2", False),
        ("v2.0.0", False),
        ("", False),
    ],
)
def test_the_layout_follows_the_release(release: str, combined: bool) -> None:
    """Counter sets have slices of their own since 1.35."""
    assert combines_counters(release) is combined


def test_what_is_set_while_the_server_is_asked_isnt_lost() -> None:
    """The release is asked for before the first slices with counters; meanwhile the driver offers something else."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            asked = server._discover

            def discover(path: str) -> tuple[int, bytes]:
                if path == "/version":
                    publisher.set(offer(*many(2)))
                return asked(path)

            server._discover = discover  # type: ignore[method-assign]  # the moment between two steps
            publisher.set(partitioned())
            await settled(publisher)
            assert server.devices() == many(2)

    run(test)


def test_an_invalid_device_of_the_driver_is_left_out_alone() -> None:
    """Nothing of it reaches the server; the problem names the field."""

    async def test() -> None:
        async with SliceServer() as server, publishing(server) as publisher:
            publisher.set(offer(*many(2), "Not_A_Name", "gpu-0"))
            await settled(publisher)
            assert server.devices() == many(2)
            assert publisher.counters["failed"] == 0
            assert "device node-1/Not_A_Name: it isn't published: name" in texts(publisher)
            assert "device node-1/gpu-0: it isn't published: there is another device of this name" in texts(publisher)

    run(test)


def test_a_program_that_undoes_every_write_is_a_problem_and_no_storm() -> None:
    """Between its changes and the repairs there are waits, and after some of them a person is told."""

    async def test() -> None:
        delays = replace(AT_ONCE, repair=Backoff(initial=0.01, maximum=10.0))
        async with _Undoing() as server, publishing(server, delays) as publisher:
            publisher.set(offer(*many(2)))
            await until(lambda: "don't stay as they are written" in texts(publisher))
            assert len(server.writes()) < 20

    run(test)


class _Undoing(SliceServer):
    """Somebody else changes a slice as soon as it was written."""

    def put(self, plural: str, obj: Object) -> Object:
        stored = super().put(plural, obj)
        if plural == "resourceslices":
            super().put(plural, {**stored, "spec": {**stored["spec"], "devices": [{"name": f"other-{self.version}"}]}})
        return stored


def test_only_gates_whose_fields_are_used_are_suspected() -> None:
    """With every gate off there is one problem for the pool, and it names the gates of what is used."""

    async def test() -> None:
        off = Gates(**dict.fromkeys(Gates.__dataclass_fields__, False))
        async with SliceServer(off) as server, publishing(server) as publisher:
            publisher.set(with_device(TAINTED))
            await settled(publisher)
            assert "DRADeviceTaints" in texts(publisher)
            assert "DRAConsumableCapacity" not in texts(publisher)

    run(test)
