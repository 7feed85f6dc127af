from __future__ import annotations

import msgspec
import pytest

from draht.driver.waiting import Demand, grant
from draht.hardware import simulated
from draht.hardware.inventory import Device, Inventory
from draht.host.errors import SelectionError
from draht.host.selection import Request, choose, demands
from running import gpus


def chosen(inventory: Inventory, request: Request, taken: set[str] | None = None) -> list[int | str] | None:
    """Indices of the chosen GPUs (ids of other devices), or None."""
    choice = choose(inventory, request, taken or set())
    return (
        None if choice is None else [device.id if device.index is None else device.index for device in choice.devices]
    )


def units(inventory: Inventory, *indices: int) -> set[str]:
    """The units of some GPUs."""
    return {unit for device in inventory.gpus() if device.index in indices for unit in device.units}


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        pytest.param(1, [], [0], id="the first"),
        pytest.param(1, [0], [1], id="best fit: the group that is broken already"),
        pytest.param(1, [4, 5, 6], [7], id="best fit: the smallest group"),
        pytest.param(4, [0], [4, 5, 6, 7], id="one NUMA node where it fits"),
        pytest.param(2, [0, 1, 2, 4], [5, 6], id="the only node with two free"),
        pytest.param(5, [], [0, 1, 2, 3, 4], id="one whole node and one more"),
        pytest.param(5, [0], [1, 4, 5, 6, 7], id="the larger node whole"),
        pytest.param("all", [], [0, 1, 2, 3, 4, 5, 6, 7], id="all"),
        pytest.param("all", [3], None, id="all means all"),
        pytest.param(8, [3], None, id="too few free"),
    ],
)
def test_closest_gpus_first(wanted: int | str, taken: list[int], expected: list[int] | None) -> None:
    """Eight GPUs, two NUMA nodes: jobs stay together, large groups stay whole, the answer is always the same."""
    inventory = gpus(8)
    assert chosen(inventory, Request(gpus=wanted), units(inventory, *taken)) == expected


def test_one_pcie_root_before_one_node() -> None:
    """Two GPUs below one root are nearer than two of a node."""
    inventory = gpus(8)
    roots = ["a", "b", "b", "c", "d", "e", "f", "g"]
    devices = [
        msgspec.structs.replace(device, pcie_root=root) for device, root in zip(inventory.devices, roots, strict=True)
    ]
    inventory = msgspec.structs.replace(inventory, devices=tuple(devices))
    taken = units(inventory, 7)
    assert chosen(inventory, Request(gpus=2), units(inventory, 4, 5)) == [6, 7]
    assert chosen(inventory, Request(gpus=2), taken | units(inventory, 4)) == [5, 6]
    assert chosen(inventory, Request(gpus=2), units(inventory, 4, 5, 6, 7)) == [1, 2]


def test_one_model_before_everything_else() -> None:
    """In a machine of three models a job gets GPUs of one, while one has enough."""
    inventory = simulated.from_profile("mixed-x6")
    for wanted in (1, 2):
        choice = choose(inventory, Request(gpus=wanted), set())
        assert choice is not None
        assert len({device.product for device in choice.devices}) == 1
    choice = choose(inventory, Request(gpus=6), set())
    assert choice is not None
    assert len({device.product for device in choice.devices}) == 3


def test_partitioned_gpus_are_not_given_whole() -> None:
    """A GPU that is cut into MIG instances isn't a GPU that any job can use."""
    inventory = gpus(2)
    instance = Device(
        id="MIG-1", kind="mig", parent="GPU-0", vendor="nvidia", units=frozenset({"GPU-0/0"}), simulated=True
    )
    inventory = msgspec.structs.replace(inventory, devices=(*inventory.devices, instance))
    assert chosen(inventory, Request(gpus=1)) == [1]
    assert chosen(inventory, Request(gpus="all")) == [1]
    assert chosen(inventory, Request(names=("MIG-1",))) == ["MIG-1"]
    assert chosen(inventory, Request(names=("MIG-1",)), {"GPU-0/1"}) == ["MIG-1"]
    assert chosen(inventory, Request(names=("MIG-1",)), {"GPU-0/0"}) is None


class TestNames:
    inventory = msgspec.structs.replace(
        gpus(4, simulated=False), aliases={"nvidia.com/gpu=all": tuple(f"GPU-{index}" for index in range(4))}
    )

    @pytest.mark.parametrize(
        ("request_", "taken", "expected", "names"),
        [
            (Request(names=("nvidia.com/gpu=2",)), [], [2], ("nvidia.com/gpu=2",)),
            (Request(names=("nvidia.com/gpu=2",)), [2], None, ()),
            (Request(names=("nvidia.com/gpu=all",)), [], [0, 1, 2, 3], ("nvidia.com/gpu=all",)),
            (Request(names=("nvidia.com/gpu=all",)), [3], None, ()),
            (
                Request(names=("nvidia.com/gpu=0",), gpus=1, kind="nvidia.com/gpu"),
                [1],
                [0, 2],
                ("nvidia.com/gpu=0", "nvidia.com/gpu=2"),
            ),
            (Request(names=("nvidia.com/gpu=1", "nvidia.com/gpu=1")), [], [1], ("nvidia.com/gpu=1",)),
        ],
    )
    def test_names(
        self, request_: Request, taken: list[int], expected: list[int] | None, names: tuple[str, ...]
    ) -> None:
        """A name stands for its devices and is passed on as it was given; `--gpus` adds others."""
        choice = choose(self.inventory, request_, units(self.inventory, *taken))
        assert (None if choice is None else [device.index for device in choice.devices]) == expected
        if choice is not None:
            assert choice.cdi_names == names

    @pytest.mark.parametrize(
        ("request_", "message", "hint"),
        [
            (Request(), "no device is asked for", "--gpus"),
            (Request(gpus=5), "5 GPUs are wanted, test has 4", "draht devices"),
            (Request(gpus=4, names=("nvidia.com/gpu=0",)), "test has 3 beside the named devices", "draht devices"),
            (Request(names=("nvidia.com/gpu=7",)), "no device `nvidia.com/gpu=7`", "nvidia.com/gpu=0"),
            (Request(names=("gpu0",)), "`gpu0` is not a CDI name", "vendor/class=name"),
            (Request(names=("amd.com/gpu=0",)), "no device `amd.com/gpu=0`", "nvidia.com/gpu=0"),
            (Request(gpus=1, kind="amd.com/gpu"), "1 GPUs are wanted, test has 0", "draht devices"),
            (Request(gpus="all", kind="amd.com/gpu"), "test has no GPU", "draht devices"),
        ],
    )
    def test_refused(self, request_: Request, message: str, hint: str) -> None:
        """What never can be had is told at once, and not waited for."""
        with pytest.raises(SelectionError) as caught:
            choose(self.inventory, request_, set())
        assert message in str(caught.value)
        assert hint in str(caught.value.hint)

    @pytest.mark.parametrize("name", ["nvidia.com/gpu=3", "GPU-3", "nvidia.com/gpu=GPU-3"])
    def test_simulated_devices_have_the_usual_names(self, name: str) -> None:
        """A profile's GPU answers to the names that the vendor's tool would write, and to its id."""
        inventory = gpus(4)
        devices = tuple(msgspec.structs.replace(device, cdi_names=()) for device in inventory.devices)
        inventory = msgspec.structs.replace(inventory, devices=devices)
        assert chosen(inventory, Request(names=(name,))) == [3]


@pytest.mark.parametrize("taken", [[], [0], [1, 2, 3], [0, 2, 4, 6], [0, 1, 2, 3, 4, 5, 6, 7]])
@pytest.mark.parametrize("wanted", [1, 2, 4, 8])
def test_demands_agree_with_the_choice(wanted: int, taken: list[int]) -> None:
    """What the queue thinks can be served is what would be chosen."""
    inventory = gpus(8)
    request = Request(gpus=wanted)
    served = grant(demands(inventory, request), units(inventory, *taken))
    choice = choose(inventory, request, units(inventory, *taken))
    assert (served is None) == (choice is None)
    assert demands(inventory, request) == (Demand(wanted, tuple(device.units for device in inventory.devices)),)
