from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from disks import fill, read_only, small_disk
from draht import cdi
from draht.driver.errors import StateError
from running import Workplace, wait_for


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """A host of eight simulated GPUs; whatever runs at the end is removed."""
    place = Workplace(root=tmp_path)
    yield place
    engine = place.engine()
    for container in engine.containers():
        engine.remove(container.id)


class TestDisks:
    """A disk that is full or read-only: one error with a hint, nothing held, nothing lost."""

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        """A file system of 512 KiB."""
        with small_disk(tmp_path / "small") as directory:
            yield directory

    def test_full_before_the_hold(self, place: Workplace, disk: Path) -> None:
        """Nothing can be recorded, so nothing is run."""
        (place.root / "state").symlink_to(disk)
        place.run(number=1)
        fill(disk)
        with pytest.raises(StateError) as caught:
            place.run(number=1)
        assert "room" in str(caught.value.hint) or "full" in str(caught.value.hint)
        assert (place.engine().containers(), place.specs()) == ([], [])

    def test_full_spec_directory(self, place: Workplace, disk: Path) -> None:
        """The spec can't be written: the devices are given back."""
        place.cdi.symlink_to(disk)
        filler = fill(disk)
        with pytest.raises(cdi.WriteError) as caught:
            place.run(number=8)
        assert caught.value.hint
        filler.unlink()
        assert (place.holds(), place.engine().containers(), list(disk.iterdir())) == ([], [], [])

    def test_full_while_the_container_runs(self, place: Workplace, disk: Path) -> None:
        """The container's answer isn't lost; the devices are free as soon as the disk has room again."""
        (place.root / "state").symlink_to(disk)
        place.run(number=1)
        filler = disk / "filler"
        command = ["sh", "-c", f"cat /dev/zero > {filler} 2>/dev/null; exit 6"]
        pid = place.fork(place.order(command, number=8))
        assert wait_for(pid) == 6
        filler.unlink()
        assert place.run(number=8).status == 0
        place.consistent()

    def test_read_only_state(self, place: Workplace, disk: Path) -> None:
        """Nothing can be held, and it is said where it could be."""
        (place.root / "state").symlink_to(disk)
        place.run(number=1)
        read_only(disk)
        with pytest.raises(StateError) as caught:
            place.run(number=1)
        assert "DRAHT_STATE_DIR" in str(caught.value.hint)
