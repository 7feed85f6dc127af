"""The catalogue of MIG profiles: what the GPUs of a model can be partitioned into.

Owns the tables. Where an instance fits is a question of *memory slices*: a placement is a start and a size, and two
instances may exist together when their ranges don't overlap (the start lists make the compute slices work out). The
tables describe simulated GPUs; a real GPU's driver is asked instead, because memory sizes and even profile names have
changed between drivers.

Sources: NVIDIA MIG User Guide (profile tables), ``nvidia-smi mig -lgip`` outputs in NVIDIA/mig-parted #120 and #166.
Engines of the A100 80 GB, H200 and GH200 are taken to be those of the A100 40 GB and the H100.
"""

from __future__ import annotations

import msgspec

__all__ = ["TABLES", "Engines", "MigProfile", "Table", "profile", "units"]


class Engines(msgspec.Struct, frozen=True, kw_only=True):
    """How many engines of each kind an instance has."""

    copy: int
    decoders: int
    encoders: int
    jpeg: int
    ofa: int


class MigProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One way to cut an instance out of a GPU.

    Attributes:
        name: ``1g.10gb``, as ``nvidia-smi mig -lgip`` writes it.
        id: Its ID column there; the number that creates an instance, not NVML's enumeration of profiles.
        compute_slices: Its share of the GPU's compute slices.
        memory_slices: Length of a placement.
        starts: Memory slices at which a placement may begin.
        most: How many may exist at once.
        memory_mib: Memory of an instance; None where no source was found.
        multiprocessors: Streaming multiprocessors of an instance; None where no source was found.
        engines: Its engines for copying and for media.
    """

    name: str
    id: int
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]
    most: int
    memory_mib: int | None
    multiprocessors: int | None
    engines: Engines


Table = tuple[MigProfile, ...]

MEMORY_SLICES = 8
"""Memory slices of every model in `TABLES`; parts with four (A30, RTX PRO) aren't among them yet."""


_EnginesOfShapes = tuple[tuple[int, int, int, int], ...]


def _table(engines: _EnginesOfShapes, *rows: tuple[str, int | None, int | None]) -> Table:
    """The seven profiles of a part with seven compute and eight memory slices, in the order of `_SHAPES`.

    Args:
        engines: For each shape: copy engines, decoders, JPEG decoders, optical flow accelerators.
        rows: For each shape: name, memory in MiB, multiprocessors.
    """
    return tuple(
        MigProfile(
            name=name,
            id=id_,
            compute_slices=compute,
            memory_slices=size,
            starts=starts,
            most=most,
            memory_mib=memory,
            multiprocessors=multiprocessors,
            engines=Engines(copy=copy, decoders=decoders, encoders=0, jpeg=jpeg, ofa=ofa),
        )
        for (id_, compute, size, starts, most), (copy, decoders, jpeg, ofa), (name, memory, multiprocessors) in zip(
            _SHAPES, engines, rows, strict=True
        )
    )


_SHAPES = (
    (19, 1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
    (20, 1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
    (15, 1, 2, (0, 2, 4, 6), 4),
    (14, 2, 2, (0, 2, 4), 3),
    (9, 3, 4, (0, 4), 2),
    (5, 4, 4, (0,), 1),
    (0, 7, 8, (0,), 1),
)
"""Profile id, compute slices, memory slices, starts, most: the same for every generation so far."""

_AMPERE = ((1, 0, 0, 0), (1, 1, 1, 1), (1, 1, 0, 0), (2, 1, 0, 0), (3, 2, 0, 0), (4, 2, 0, 0), (7, 5, 1, 1))
_HOPPER = ((1, 1, 1, 0), (1, 1, 1, 1), (1, 1, 1, 0), (2, 2, 2, 0), (3, 3, 3, 0), (4, 4, 4, 0), (8, 7, 7, 1))
_BLACKWELL = ((2, 1, 1, 0), (2, 1, 1, 1), (2, 1, 1, 0), (4, 2, 2, 0), (6, 3, 3, 0), (8, 4, 4, 0), (16, 7, 7, 1))

TABLES: dict[str, Table] = {
    "a100-80": _table(
        _AMPERE,
        ("1g.10gb", 9856, 14),
        ("1g.10gb+me", 9856, 14),
        ("1g.20gb", 19968, 14),
        ("2g.20gb", 19968, 28),
        ("3g.40gb", 40192, 42),
        ("4g.40gb", 40192, 56),
        ("7g.80gb", 80384, 98),
    ),
    "h100-80": _table(
        _HOPPER,
        ("1g.10gb", 9984, 16),
        ("1g.10gb+me", 9984, 16),
        ("1g.20gb", 20096, 26),
        ("2g.20gb", 20096, 32),
        ("3g.40gb", 40448, 60),
        ("4g.40gb", 40448, 64),
        ("7g.80gb", 81152, 132),
    ),
    "h200-141": _table(
        _HOPPER,
        ("1g.18gb", 16384, 16),
        ("1g.18gb+me", 16384, 16),
        ("1g.35gb", 33024, 26),
        ("2g.35gb", 33024, 32),
        ("3g.71gb", 71168, 60),
        ("4g.71gb", 71168, 64),
        ("7g.141gb", 143360, 132),
    ),
    "gh200-96": _table(
        _HOPPER,
        ("1g.12gb", None, 16),
        ("1g.12gb+me", None, 16),
        ("1g.24gb", None, 26),
        ("2g.24gb", None, 32),
        ("3g.48gb", None, 60),
        ("4g.48gb", None, 64),
        ("7g.96gb", None, 132),
    ),
    "b200-180": _table(
        _BLACKWELL,
        ("1g.23gb", 20992, 18),
        ("1g.23gb+me", 20992, 18),
        ("1g.45gb", 45312, 30),
        ("2g.45gb", 45312, 36),
        ("3g.90gb", 91136, 70),
        ("4g.90gb", 91136, 72),
        ("7g.180gb", 182784, 148),
    ),
}
"""Name of a table (model and memory in GB) → its profiles, the smallest first."""


def profile(table: str, name: str) -> MigProfile | None:
    """The profile of that name in a table, or None."""
    return next((entry for entry in TABLES.get(table, ()) if entry.name == name), None)


def units(gpu: str, start: int = 0, size: int = MEMORY_SLICES) -> frozenset[str]:
    """The exclusive units of a placement on a GPU with that id; without a placement, those of all slices.

    Memory slices alone decide: no two placements that the start lists allow share compute without sharing memory.
    """
    return frozenset(f"{gpu}#{slice_}" for slice_ in range(start, start + size))
