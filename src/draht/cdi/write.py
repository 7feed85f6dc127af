"""Writing spec files so that a reader sees the old file, the new one, or none, and never a part of one.

Owns the writer and the removal. Always written: the lowest version that the spec's features need (so that the oldest
engine possible reads it), mode 0644 (rootless engines read it too), to a temporary file beside the target that is
synced and then renamed; its name ends in ``.tmp``, which keeps it out of everybody's scan.

draht writes specs of its own kinds only. A device that two files of a directory define is lost for everybody, so a
second writer of a vendor's kind can do harm.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from draht.cdi.errors import ValidationError, WriteError
from draht.cdi.files import SPEC_SUFFIXES, reason
from draht.cdi.spec import Spec, encode
from draht.cdi.validate import validate
from draht.cdi.version import minimum_version

__all__ = ["remove_spec", "write_spec"]

_MODE = 0o644


def write_spec(
    spec: Spec,
    directory: str | Path,
    name: str,
    *,
    format: Literal["json", "yaml"] | None = None,  # noqa: A002 - the word people use
    overwrite: bool = True,
) -> Path:
    """Write a spec into a directory, which is made (0755) if it is missing.

    Args:
        spec: What to write; its `cdi_version` is replaced by the lowest one that it needs.
        directory: Where to.
        name: The file's name, with or without ``.json`` or ``.yaml``.
        format: The text form; by default what the name says, else JSON.
        overwrite: Whether a file of that name is replaced.

    Returns:
        The path of the file.

    Raises:
        ValidationError: The spec breaks a rule, or holds what a spec file can't say: a value of a wrong type, a number
            out of range, a text that isn't Unicode (as `os.fsdecode` gives); nothing is written.
        WriteError: The name can't be used, there is such a file and `overwrite` is off, or the file system refuses,
            as for want of space. What was there is untouched, and no temporary file is left.
    """
    target = Path(directory) / _file_name(name, format)
    _refuse_unwritable(spec)
    spec = msgspec.structs.replace(spec, cdi_version=minimum_version(spec))
    validate(spec)
    data = encode(spec, format="yaml" if target.suffix == ".yaml" else "json")
    with _failures(target, "written"):
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        temporary = _write_temporary(target.parent, data)
        try:
            if overwrite:
                temporary.replace(target)
            else:
                # A rename would replace; a second name for the same file is refused where there is one already.
                target.hardlink_to(temporary)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_directory(target.parent)
    return target


def remove_spec(directory: str | Path, name: str) -> bool:
    """Remove a spec file; without a suffix in the name, ``.json`` and ``.yaml`` are both looked for.

    Returns:
        Whether there was one.

    Raises:
        WriteError: The name can't be used, or the file is there and can't be removed.
    """
    candidates = [name] if name.endswith(SPEC_SUFFIXES) else [f"{name}{suffix}" for suffix in SPEC_SUFFIXES]
    removed = False
    for candidate in candidates:
        target = Path(directory) / _file_name(candidate, None)
        with _failures(target, "removed"):
            try:
                target.unlink()
                removed = True
            except (FileNotFoundError, NotADirectoryError):
                continue
    return removed


def _file_name(name: str, format_: Literal["json", "yaml"] | None) -> str:
    if not name or name in SPEC_SUFFIXES or "/" in name or "\0" in name:
        raise WriteError(f"{name!r} can't be the name of a spec file", hint="use a plain name without slashes")
    if not name.endswith(SPEC_SUFFIXES):
        return f"{name}.{format_ or 'json'}"
    if format_ is not None and not name.endswith(f".{format_}"):
        raise WriteError(f"{name!r} is not the name of a {format_} file", hint="leave the suffix or the format out")
    return name


def _refuse_unwritable(spec: Spec) -> None:
    """Structs take whatever they are given; only reading them again tells whether others can."""
    try:
        msgspec.json.decode(msgspec.json.encode(spec), type=Spec)
    except UnicodeEncodeError as error:
        raise ValidationError(f"{error.object!r} is not Unicode text", hint="CDI can't name such a file") from None
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$.")
        raise ValidationError(problem[:1].lower() + problem[1:], path=path.rstrip("`")) from None


def _write_temporary(directory: Path, data: bytes) -> Path:
    descriptor, name = tempfile.mkstemp(prefix=".spec.", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), _MODE)
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _sync_directory(directory: Path) -> None:
    """Make the rename last; some file systems can't sync a directory, and then there is nothing more to do."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _failures(target: Path, done: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise WriteError(
            f"the file can't be {done}: there is one already", where=str(target), hint="remove it, or choose a name"
        ) from None
    except PermissionError as error:
        raise WriteError(
            f"the file can't be {done}: {reason(error)}",
            where=str(target),
            hint="run as a user who may write there, or use another directory",
        ) from None
    except ValueError as error:
        raise WriteError(
            f"the file can't be {done}: {reason(error)}", where=str(target), hint="use another name"
        ) from None
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise WriteError(
            f"the file can't be {done}: {reason(error)}",
            where=str(target),
            hint="make some room there, or use another directory" if full else "use another directory",
        ) from None
