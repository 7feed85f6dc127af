"""Simulated devices that ResourceSlice manifests describe: pools that no inventory has, such as a fabric's channels.

Owns making drivers of manifests, one for each driver that they name. The devices don't exist anywhere: they are marked
as simulated where they are published, and a container gets a node that is ``/dev/null`` and a variable that says so.
Their parameters are refused, because nobody is there who could carry them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from draht import cdi
from draht.api.conversion import to_v1
from draht.api.reader import read_files
from draht.api.resource import CounterSet, DeviceAttribute, ResourceSlice
from draht.driver.errors import DeviceMissingError, DriverError
from draht.driver.framework import Allocated, ClaimDevices, Driver, Health, Offer, Offered, Pool, Prepared
from draht.driver.vendors import nvidia, simulated
from draht.driver.vendors.inventory_driver import named, refuse_parameters
from draht.driver.vendors.nvidia_config import Fault, read, refuse
from draht.driver.vendors.nvidia_settings import CONFIG_PATH, unsupported, where
from draht.hardware.inventory import Device

__all__ = ["SliceFilesDriver", "read_slices", "slice_drivers"]

COMPUTE_DOMAIN: Final = "compute-domain.nvidia.com"


def read_slices(paths: Iterable[str | Path]) -> tuple[ResourceSlice, ...]:
    """The ResourceSlices of manifests; other objects are left out.

    Raises:
        DriverError: Something can't be read, or there is no slice.
    """
    paths = tuple(paths)
    found = read_files(paths)
    if found.errors:
        raise DriverError(str(found.errors[0]), hint=found.errors[0].hint)
    objects = [to_v1(each.object) for each in found.objects]
    slices = tuple(each for each in objects if isinstance(each, ResourceSlice))
    if not slices:
        raise DriverError("there is no ResourceSlice", where=", ".join(map(str, paths)), hint="name another file")
    return slices


def _nothing() -> Sequence[Health]:
    return ()


def slice_drivers(
    slices: Sequence[ResourceSlice], *, watch: Callable[[], Sequence[Health]] = _nothing
) -> tuple[SliceFilesDriver, ...]:
    """A driver for each driver name, in the order in which they first appear.

    Args:
        slices: Of any drivers.
        watch: How the devices are now.
    """
    by_driver: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        by_driver.setdefault(each.spec.driver, []).append(each)
    return tuple(_class(name)(own, watch=watch) for name, own in by_driver.items())


class SliceFilesDriver(Driver):
    """The devices of one driver. `slice_drivers` makes the subclass that has its name.

    Args:
        slices: Its slices; of several generations of a pool the newest counts, slices of other nodes are left out.
        watch: How the devices are now; those of other drivers are left out.
    """

    def __init__(self, slices: Sequence[ResourceSlice], *, watch: Callable[[], Sequence[Health]] = _nothing) -> None:
        newest: dict[str, int] = {}
        for each in slices:
            pool = each.spec.pool
            newest[pool.name] = max(pool.generation, newest.get(pool.name, 0))
        self._slices = tuple(each for each in slices if each.spec.pool.generation == newest[each.spec.pool.name])
        self._watch = watch

    def discover(self) -> Offer:
        """What the manifests say, for this node.

        Raises:
            DriverError: Slices of a pool are for different nodes, or each device has nodes of its own.
        """
        by_pool: dict[str, list[ResourceSlice]] = {}
        for each in self._slices:
            if not each.spec.node_name or each.spec.node_name == self.node_name:
                by_pool.setdefault(each.spec.pool.name, []).append(each)
        return Offer(pools=tuple(self._pool(name, slices) for name, slices in by_pool.items()))

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Say what containers get.

        Raises:
            ParametersError: The claim brings parameters.
            DeviceMissingError: The manifests don't have a device.
        """
        self._refuse_parameters(claim)
        return Prepared(edits={allocated.key: self._edits(allocated) for allocated in claim.devices})

    def health(self) -> Sequence[Health]:
        """How the devices are, as far as the given source knows these."""
        known = self.discover().devices()
        return [health for health in self._watch() if (health.pool, health.device) in known]

    def _pool(self, name: str, slices: Sequence[ResourceSlice]) -> Pool:
        first = slices[0].spec
        for each in slices:
            spec = each.spec
            if spec.per_device_node_selection or (spec.node_name, spec.all_nodes, spec.node_selector) != (
                first.node_name,
                first.all_nodes,
                first.node_selector,
            ):
                raise DriverError(
                    f"the devices of pool {name} are for different nodes",
                    where=f"ResourceSlice {each.metadata.name}",
                    hint="give all slices of a pool the same nodeName, nodeSelector or allNodes",
                )
        counters: dict[str, CounterSet] = {
            counters.name: counters for each in slices for counters in each.spec.shared_counters
        }
        marked = {nvidia.SIMULATED: DeviceAttribute(bool_=True)}
        return Pool(
            name="" if first.node_name and name == self.node_name else name,
            all_nodes=bool(first.all_nodes),
            node_selector=first.node_selector,
            counter_sets=tuple(counters.values()),
            groups=tuple(
                (
                    Offered(
                        device=replace(device, attributes={**device.attributes, **marked}),
                        units=frozenset({f"{self.name}/{name}/{device.name}"}),
                    ),
                )
                for each in slices
                for device in each.spec.devices
            ),
        )

    def _edits(self, allocated: Allocated) -> cdi.ContainerEdits:
        result = allocated.result
        if allocated.offered is None:
            raise DeviceMissingError(
                f"{self.name} doesn't offer device {result.device} any more",
                where=f"{result.pool}/{result.device}",
                hint="see the manifests that the agent was started with",
            )
        identity = f"{self.name}/{result.pool}/{result.device}"
        device = Device(
            id=identity, kind="other", device_nodes=(f"/dev/draht/{self.name}/{result.device}",), simulated=True
        )
        # Two pools may have devices of one name, and a container may have both.
        name = result.device if result.pool == self.node_name else f"{result.pool}_{result.device}"
        edits = named(simulated.device_edits(device), name, identity)
        return replace(edits, env=(*edits.env, f"DRAHT_SIMULATED_DEVICE_{simulated.variable(name)}={identity}"))

    def _refuse_parameters(self, claim: ClaimDevices) -> None:
        """Refuse parameters; those of NVIDIA's ComputeDomains are read first, so that a mistake in them is told."""
        if self.name != COMPUTE_DOMAIN:
            refuse_parameters(claim, self.name)
            return
        found: dict[Fault, None] = {}
        for allocated in claim.devices:
            for parameters in allocated.parameters:
                config, wrong = read(parameters.value, where=where(parameters))
                found |= dict.fromkeys(wrong if config is None else unsupported(config, where=where(parameters)))
        if found:
            refuse(list(found), where=CONFIG_PATH)
        refuse_parameters(claim, self.name)


def _class(driver: str) -> type[SliceFilesDriver]:
    """The subclass for a driver: the framework asks the class for its name."""
    made: Mapping[str, object] = {"name": driver, "__doc__": f"The devices of {driver} that manifests describe."}
    return type("SliceFilesDriver", (SliceFilesDriver,), dict(made))
