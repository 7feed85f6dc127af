"""Programs of other projects that tests run, built from Go modules that pin them and kept in the build cache.

Owns what a module of such programs is and how it becomes an entry of the cache: under a key made from its lock files,
all its programs in one ``go build``, so that what they share is compiled once. It doesn't know which programs there
are: that is said in `engines` and `cluster_programs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import buildcache
import gotoolchain

__all__ = ["Module", "ensure", "is_built", "silent"]


@dataclass(frozen=True)
class Module:
    """A directory with a go.mod that pins programs, and what their build needs.

    Attributes:
        directory: Where go.mod and go.sum lie.
        packages: Program → import path. Where there are several, each is called like the end of its import path, which
            is the name Go gives it.
        arguments: Further arguments of ``go build``.
        variables: Environment of the build.
        versions: Variables that carry a version → the module path that go.mod pins at it. A variable that a program
            doesn't have is ignored by Go's linker.
        prefix: What the project itself writes before the number in these variables.
    """

    directory: Path
    packages: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=lambda: {"CGO_ENABLED": "0"})
    versions: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def pinned_version(self, wanted: str) -> str:
        """The version that go.mod pins a module at, without the v.

        Raises:
            ValueError: It pins none.
        """
        for path, version in re.findall(
            r"^\s*(?:require )?(\S+) v(\S+)", (self.directory / "go.mod").read_text(), re.MULTILINE
        ):
            if path == wanted:
                return str(version).removesuffix("+incompatible")
        raise ValueError(f"{self.directory}/go.mod doesn't pin {wanted}")


def silent(line: str) -> None:
    """Say nothing."""


def ensure(kind: str, modules: Iterable[Module], say: Callable[[str], None] = silent) -> dict[str, Path]:
    """The built programs by name; builds those that aren't in the cache yet.

    Args:
        kind: What the programs are to each other; starts the names of their entries.
        modules: What is wanted.
        say: Hears which module is being built.

    Raises:
        gotoolchain.GoMissingError: There is no Go toolchain that is new enough.
        gotoolchain.GoBuildError: A program doesn't compile.
    """
    built: dict[str, Path] = {}
    for module in modules:

        def build_into(directory: Path, module: Module = module) -> None:
            say(f"{kind} programs {', '.join(module.packages)}: not built yet; building them")
            _build(module, directory)

        directory = buildcache.entry(_kind(kind, module), _key(module), build_into, keep=2)
        built.update({name: directory / name for name in module.packages})
    return built


def is_built(kind: str, module: Module) -> bool:
    """Whether `ensure` would find a module's programs in the cache."""
    return (buildcache.folder(_kind(kind, module)) / _key(module)).is_dir()


def _kind(kind: str, module: Module) -> str:
    return f"{kind}-{module.directory.name}"


def _key(module: Module) -> str:
    files = [*module.directory.rglob("go.*"), *module.directory.rglob("*.go")]
    recipe = (module.packages, module.arguments, module.variables, module.versions, module.prefix)
    return buildcache.digest(files, *(repr(part) for part in recipe))


def _build(module: Module, directory: Path) -> None:
    flags = ["-s", "-w"]
    for variable, path in module.versions.items():
        flags += ["-X", f"{variable}={module.prefix}{module.pinned_version(path)}"]
    names = list(module.packages)
    gotoolchain.build(
        module.directory,
        list(module.packages.values()),
        directory / names[0] if len(names) == 1 else directory,
        arguments=["-ldflags", " ".join(flags), *module.arguments],
        variables=module.variables,
    )
