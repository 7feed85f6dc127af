"""Profiles damaged at random: each is read or refused in words, and what is read makes a sound machine."""

from __future__ import annotations

import random
from importlib import resources

import pytest

from draht.hardware import profiles
from draht.hardware.errors import ProfileError
from draht.hardware.simulated import SimulatedProvider

WORDS = ["0", "-1", "99999999999999999999", "null", "~", "[]", "{}", "all", "0000:01:00.0", "gpu", "!!int x", "*x", "é"]


def damaged(seed: int) -> str:
    """A shipped profile with a few lines dropped, doubled, moved or changed."""
    chance = random.Random(seed)
    name = chance.choice(profiles.names())
    lines = (resources.files("draht.hardware.profiles") / f"{name}.yaml").read_text("utf-8").splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[at])
            case 2:
                lines[at] = lines[at][chance.randint(0, 4) :]
            case 3:
                key, colon, _ = lines[at].partition(": ")
                lines[at] = key + colon + chance.choice(WORDS)
            case _:
                position = chance.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:position] + chance.choice(['"', ":", "{", "0", "- ", "#"]) + lines[at][position:]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(300))
def test_a_damaged_profile_is_read_or_refused(seed: int) -> None:
    """Never an exception of another kind; every problem has a place."""
    refusal: ProfileError | None = None
    try:
        profile = profiles.parse(damaged(seed).encode(), source="damaged.yaml")
    except ProfileError as error:
        refusal = error
    if refusal is not None:
        assert refusal.problems
        assert all(problem.startswith("damaged.yaml:") for problem in refusal.problems)
        return
    inventory = SimulatedProvider(profile).inventory()
    assert len({device.id for device in inventory.devices}) == len(inventory.devices)
    for gpu in inventory.gpus():
        inventory.nearest_nics(gpu)
