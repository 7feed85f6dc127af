"""Machine profiles: the shipped ones by name, and those of users by path.

Owns finding and reading them. A profile is refused with all its problems at once, each with file, line, column and
field path, because a profile is written by hand and one error a run would be a bad afternoon. `format` has the fields,
`check` the rules, `draht.hardware.simulated` makes an inventory of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from draht.api import yaml
from draht.hardware.errors import MOST_SHOWN, ProfileError, UnknownProfileError
from draht.hardware.near import did_you_mean
from draht.hardware.profiles.check import Fault, check, check_model
from draht.hardware.profiles.format import Model, Profile
from draht.hardware.profiles.read import locate, read, spell

__all__ = ["catalogue", "load", "names", "parse"]

_SUFFIXES = (".yaml", ".yml", ".json")


def names() -> tuple[str, ...]:
    """The names of the shipped profiles, sorted."""
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in _shipped() if entry.name.endswith(".yaml")))


def load(name_or_path: str | Path) -> Profile:
    """The profile of a shipped name, or of a file: what contains a slash or ends in .yaml, .yml or .json is a path.

    Raises:
        UnknownProfileError: No shipped profile has the name, or the file can't be read.
        ProfileError: The file isn't a valid profile; it has every problem.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or "/" in text or text.endswith(_SUFFIXES):
        try:
            with Path(text).open("rb") as file:
                data = file.read(yaml.MAX_BYTES + 1)
        except OSError as error:
            raise UnknownProfileError(
                f"this profile can't be read: {error.strerror}", where=text, hint="give the path of a readable file"
            ) from None
        return parse(data, source=text)
    if text not in names():
        raise UnknownProfileError(
            f'there is no machine profile "{text}"{did_you_mean(text, names())}',
            hint=f"use one of {', '.join(names())}, or the path of a file like ./my-machine.yaml",
        )
    return parse((resources.files(__package__) / f"{text}.yaml").read_bytes(), source=f"{text}.yaml")


def parse(data: bytes, *, source: str) -> Profile:
    """The profile in a text.

    Args:
        data: YAML or JSON with one document.
        source: What the text is called in problems.

    Raises:
        ProfileError: With every problem.
    """
    node = _document(data, source)
    profile, faults = read(node, Profile)
    if profile is not None:
        faults = check(profile, catalogue())
    if profile is None or faults:
        raise _refuse(node, source, faults)
    return profile


@cache
def catalogue() -> Mapping[str, Model]:
    """The shipped models by name."""
    source = "catalogue.yaml"
    node = _document((resources.files("draht.hardware") / source).read_bytes(), source)
    models, faults = read(node, dict[str, Model])
    if models is not None:
        faults = [fault for name, model in models.items() for fault in check_model(model, (name,))]
    if models is None or faults:
        raise _refuse(node, source, faults)
    return models


def _shipped() -> Sequence[Traversable]:
    return list(resources.files(__package__).iterdir())


def _document(data: bytes, source: str) -> yaml.Node:
    try:
        nodes = list(yaml.documents(data, source=source))
    except yaml.YamlError as error:
        raise ProfileError(source, [str(error)]) from None
    if len(nodes) != 1:
        raise ProfileError(source, [f"{source}: has {len(nodes)} documents, not one"])
    return nodes[0]


def _refuse(node: yaml.Node, source: str, faults: Sequence[Fault]) -> ProfileError:
    # Finding a place takes time in proportion to the file, which may have hundreds of thousands of faults.
    places = [locate(node, fault, source) if number < MOST_SHOWN else source for number, fault in enumerate(faults)]
    lines = [f"{place}: {spell(fault.path)}: {fault.message}" for place, fault in zip(places, faults, strict=True)]
    return ProfileError(source, lines)
