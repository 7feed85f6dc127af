from __future__ import annotations

import pytest

from draht.driver.errors import DriverError
from draht.driver.vendors.plugin_split import Split
from draht.hardware.simulated import from_profile

MIXED = from_profile("mixed-x6")
"""Its minor numbers, which names have, differ from the indices."""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ", []),
        ("all", [0, 1, 2, 3, 4, 5]),
        ("0", [0]),
        ("4, 5,4", [4, 5]),
        (MIXED.gpus()[1].id, [1]),
        (MIXED.gpus()[1].id.lower(), [1]),
        ("0000:A1:00.0", [4]),
        ("gpu-0", [2]),
        ("gpu-0,2", [2]),
    ],
)
def test_a_text_names_gpus(text: str, expected: list[int]) -> None:
    """By index, UUID, PCI address or published name, or all."""
    split = Split.parse(text)
    split.check(MIXED)
    assert split(MIXED) == {MIXED.gpus()[index].id for index in expected}


@pytest.mark.parametrize(
    ("text", "message"), [("9", "has no GPU 9"), ("gpu-8", "did you mean gpu-"), ("0,x", "no GPU x")]
)
def test_a_word_that_means_no_gpu_is_refused_at_the_start(text: str, message: str) -> None:
    """With what looks like it."""
    with pytest.raises(DriverError, match=message):
        Split.parse(text).check(MIXED)


def test_all_stands_alone() -> None:
    """Beside single GPUs it can't be meant."""
    with pytest.raises(DriverError, match="names all GPUs and single ones"):
        Split.parse("all,0")


def test_a_gpu_that_has_gone_doesnt_stop_the_others() -> None:
    """The agent runs on when one falls off the bus."""
    split = Split.parse("0,5")
    smaller = from_profile("l4-x4")
    assert split(smaller) == {smaller.gpus()[0].id}


def test_gpus_of_another_vendor_are_left_alone() -> None:
    """Indices are counted by vendor."""
    amd = from_profile("mi300x-x8")
    assert Split.parse("all")(amd) == frozenset()
    assert Split.parse("1", vendor="amd")(amd) == {amd.gpus()[1].id}
