from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from draht import cdi
from draht.driver.errors import DeviceMissingError, DriverError, ParametersError
from draht.driver.framework import Health
from draht.driver.vendors.slice_files import SliceFilesDriver, read_slices, slice_drivers
from driver_claims import claim_of, parameters

FABRIC = Path(__file__).parents[2] / "examples" / "use-cases" / "11-multi-node-nvlink" / "fabric.yaml"
CONFIG = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": "1"}


def manifest(
    where: str, *, driver: str = "net.example.com", pool: str = "rack", generation: int = 1, device: str = "d"
) -> str:
    """A slice with one device."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {driver}-{pool}-{device}}}
spec:
  driver: {driver}
  pool: {{name: {pool}, generation: {generation}, resourceSliceCount: 1}}
  {where}
  devices: [{{name: {device}, attributes: {{speed: {{int: 4}}}}}}]
"""


def drivers(tmp_path: Path, *texts: str, **options: Any) -> tuple[SliceFilesDriver, ...]:
    """The drivers of manifests, on node-1."""
    path = tmp_path / "slices.yaml"
    path.write_text("---".join(texts))
    made = slice_drivers(read_slices([path]), **options)
    for each in made:
        each.node_name = "node-1"
    return made


def test_a_fabric_is_a_pool_for_the_nodes_with_its_label() -> None:
    """The channels of the use case, marked as simulated; the node in the file is left out."""
    (driver,) = slice_drivers(read_slices([FABRIC]))
    driver.node_name = "node-1"
    assert driver.name == "compute-domain.nvidia.com"
    (pool,) = driver.discover().pools
    assert (pool.name, pool.all_nodes) == ("rack-7", False)
    assert pool.node_selector is not None
    ((offered,),) = pool.groups
    assert offered.device.attributes["draht.dev/simulated"].bool_ is True
    assert offered.units == {"compute-domain.nvidia.com/rack-7/channel-0"}


def test_every_pool_keeps_its_nodes(tmp_path: Path) -> None:
    """All nodes, this node, and not that of others; an attribute says that the devices are simulated."""
    (driver,) = drivers(
        tmp_path,
        manifest("allNodes: true", pool="everywhere"),
        manifest("nodeName: node-1", pool="node-1"),
        manifest("nodeName: node-1", pool="second"),
        manifest("nodeName: node-2", pool="node-2"),
    )
    offer = driver.discover()
    assert [(pool.name, pool.all_nodes) for pool in offer.pools] == [
        ("everywhere", True),
        ("", False),
        ("second", False),
    ]
    for offered in offer.devices().values():
        assert offered.device.attributes["draht.dev/simulated"].bool_ is True
        assert offered.device.attributes["speed"].int_ == 4


def test_of_several_generations_the_newest_counts(tmp_path: Path) -> None:
    """As for everybody who reads slices."""
    (driver,) = drivers(
        tmp_path, manifest("allNodes: true", device="old"), manifest("allNodes: true", generation=2, device="new")
    )
    assert [name for _, name in driver.discover().devices()] == ["new"]


def test_each_driver_name_has_a_driver_of_its_own(tmp_path: Path) -> None:
    """Their classes have the names, as the framework wants it."""
    made = drivers(tmp_path, manifest("allNodes: true"), manifest("allNodes: true", driver="gpu.example.com"))
    assert [each.name for each in made] == [type(each).name for each in made] == ["net.example.com", "gpu.example.com"]


def test_devices_of_two_pools_in_one_container_are_both_seen(tmp_path: Path) -> None:
    """With a node each, and variables that say that they are simulated."""
    (driver,) = drivers(tmp_path, manifest("allNodes: true", pool="rack-7"), manifest("allNodes: true", pool="rack-8"))
    edits = [
        edit
        for pool in ("rack-7", "rack-8")
        for edit in driver.prepare(claim_of(driver, {"r": "d"}, pool=pool)).edits.values()
    ]
    together = cdi.collect(edits)
    cdi.validate(
        cdi.Spec(cdi_version="0.5.0", kind="k8s.x/claim", devices=(cdi.Device(name="d", container_edits=together),))
    )
    assert together.env == (
        "DRAHT_DEVICE_rack_7_d=net.example.com/rack-7/d",
        "DRAHT_SIMULATED_DEVICE_rack_7_d=net.example.com/rack-7/d",
        "DRAHT_DEVICE_rack_8_d=net.example.com/rack-8/d",
        "DRAHT_SIMULATED_DEVICE_rack_8_d=net.example.com/rack-8/d",
    )
    assert {node.path for node in together.device_nodes} == {"/dev/draht/net.example.com/d"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (CONFIG, "draht can't set up IMEX domains yet"),
        ({**CONFIG, "domain": 1}, 'unknown field "domain"'),
        ({**CONFIG, "kind": "ComputeDomainDaemonConfig"}, "draht can't set up IMEX domains yet"),
        ({**CONFIG, "kind": "GpuConfig"}, 'unknown field "domainID"'),
        ({"apiVersion": CONFIG["apiVersion"], "kind": "GpuConfig"}, "knows no parameters"),
    ],
)
def test_parameters_of_a_compute_domain_are_refused(value: Any, message: str) -> None:
    """A mistake in them is told first; none of them is passed over."""
    (driver,) = slice_drivers(read_slices([FABRIC]))
    driver.node_name = "node-1"
    with pytest.raises(ParametersError, match=message):
        driver.prepare(claim_of(driver, {"r": "channel-0"}, parameters(value), pool="rack-7"))


def test_parameters_of_other_drivers_are_refused(tmp_path: Path) -> None:
    """Nobody knows them."""
    (driver,) = drivers(tmp_path, manifest("allNodes: true"))
    with pytest.raises(ParametersError, match=r"no parameters of net\.example\.com"):
        driver.prepare(claim_of(driver, {"r": "d"}, parameters({}), pool="rack"))


def test_a_device_that_no_manifest_has_is_named(tmp_path: Path) -> None:
    """It was allocated from slices of an earlier start."""
    (driver,) = drivers(tmp_path, manifest("allNodes: true"))
    with pytest.raises(DeviceMissingError, match="doesn't offer device gone"):
        driver.prepare(claim_of(driver, {"r": "gone"}, pool="rack"))


def test_a_pool_for_different_nodes_is_refused(tmp_path: Path) -> None:
    """Its slices would be written with one place and mean another."""
    (driver,) = drivers(tmp_path, manifest("allNodes: true", device="a"), manifest("nodeName: node-1", device="b"))
    with pytest.raises(DriverError, match="pool rack are for different nodes"):
        driver.discover()
    (driver,) = drivers(tmp_path, manifest("perDeviceNodeSelection: true"))
    with pytest.raises(DriverError, match="pool rack are for different nodes"):
        driver.discover()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: v1\nkind: Node\nmetadata: {name: node-9}\n", "there is no ResourceSlice"),
        (manifest("allNodes: maybe"), "allNodes"),
        ("{", "not readable as YAML"),
    ],
)
def test_manifests_that_cant_be_read_are_refused_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    """A pool that is half there would be half published."""
    path = tmp_path / "slices.yaml"
    path.write_text(text)
    with pytest.raises(DriverError, match=message) as raised:
        read_slices([path])
    assert str(path) in str(raised.value)


def test_health_is_told_of_own_devices_only(tmp_path: Path) -> None:
    """By pool and name."""
    told = [Health(pool="rack", device="d", state="Unknown"), Health(device="d"), Health(pool="rack", device="e")]
    (driver,) = drivers(tmp_path, manifest("allNodes: true"), watch=lambda: told)
    assert list(driver.health()) == told[:1]
