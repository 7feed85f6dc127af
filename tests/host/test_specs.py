from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from draht import cdi
from draht.host.errors import NotFreeError, SelectionError
from draht.host.run import run
from running import Workplace, gpus


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


class TestVendorSpecs:
    """Devices that CDI specs offer, instead of simulated ones."""

    @pytest.fixture
    def place(self, place: Workplace) -> Workplace:
        """Two GPUs that a vendor's spec offers."""
        place.cdi.mkdir()
        node = cdi.DeviceNode(path="/dev/nvidia0", host_path="/dev/null")
        spec = cdi.Spec(
            kind="nvidia.com/gpu",
            devices=tuple(
                cdi.Device(
                    name=str(index),
                    container_edits=cdi.ContainerEdits(device_nodes=(node,), env=(f"GPU_{index}=yes",)),
                )
                for index in range(2)
            ),
            container_edits=cdi.ContainerEdits(env=("VENDOR=yes",), additional_gids=(4242,)),
        )
        cdi.write_spec(spec, place.cdi, "vendor.json")
        place.inventory = gpus(2, simulated=False)
        return place

    def host(self, place: Workplace, version: str = "1.1.0") -> object:
        """The host with a cache of the vendor's specs and an engine of some age."""
        host = place.host()
        host.engines["fake"].cdi_version = version  # type: ignore[attr-defined]
        return type(host)(
            database=host.database,
            engines=host.engines,
            cdi_directory=host.cdi_directory,
            cache=cdi.Cache([place.cdi]),
            say=host.say,
        )

    @pytest.mark.parametrize(("version", "gids"), [("1.1.0", []), ("0.5.0", [4242])])
    def test_lowered_for_the_engine(self, place: Workplace, version: str, gids: list[int]) -> None:
        """The transient spec says what the vendor's says; what an older engine can't read goes another way."""
        host = self.host(place, version)
        run(host, place.order(["sleep", "60"], number=2, detach=True))  # type: ignore[arg-type]
        (container,) = place.engine().containers()
        env = place.engine().environment(container.id)
        assert (env["VENDOR"], env["GPU_0"], env["GPU_1"]) == ("yes", "yes", "yes")
        text = (place.root / "engine" / f"{container.id}.json").read_text()
        assert f'"gids": {gids}' in text
        spec = cdi.decode((place.cdi / next(name for name in place.specs() if name.startswith("draht"))).read_bytes())
        assert spec.container_edits.additional_gids == (() if gids else (4242,))

    def test_vendor_names_pass_through_where_no_spec_can_be_written(
        self, place: Workplace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without a directory to write to, the engine gets the vendor's names, and the hold is a hold all the same."""
        monkeypatch.setattr("draht.host.specs._may_write", lambda directory: False)
        host = self.host(place)
        run(host, place.order(["sleep", "60"], number=1, detach=True))  # type: ignore[arg-type]
        (container,) = place.engine().containers()
        assert container.cdi_names == ("nvidia.com/gpu=0",)
        assert place.engine().environment(container.id)["DRAHT_DEVICES"] == "GPU-0"
        assert place.specs() == ["vendor.json"]
        with pytest.raises(NotFreeError):
            run(host, place.order(number=2))  # type: ignore[arg-type]

    def test_what_cannot_be_lowered_holds_nothing(self, place: Workplace) -> None:
        """A network device and an engine that knows none: refused with the feature and a way out, nothing is held."""
        spec = cdi.Spec(
            kind="nvidia.com/gpu",
            devices=(
                cdi.Device(
                    name="0",
                    container_edits=cdi.ContainerEdits(
                        net_devices=(cdi.NetDevice(host_interface_name="eth7", name="rdma0"),)
                    ),
                ),
            ),
        )
        cdi.write_spec(spec, place.cdi, "vendor.json")
        with pytest.raises(cdi.LoweringError, match="network") as caught:
            run(self.host(place, "0.5.0"), place.order(number=1))  # type: ignore[arg-type]
        assert "--engine runc" in str(caught.value.hint)
        assert place.holds() == []

    def test_unknown_name(self, place: Workplace) -> None:
        """A name that nobody offers is answered with those there are."""
        with pytest.raises(SelectionError, match=r"no device `nvidia\.com/gpu=9`") as caught:
            run(self.host(place), place.order(number=0, names=["nvidia.com/gpu=9"]))  # type: ignore[arg-type]
        assert "nvidia.com/gpu=0, nvidia.com/gpu=1" in str(caught.value.hint)
