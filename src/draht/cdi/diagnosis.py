"""The answer to "why can't these devices be resolved?" as values, for people and for programs.

Owns the structs and their text. They are filled by ``explain``; nothing here reads files.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from draht.api.printable import printable
from draht.cdi.errors import InjectionError, UnresolvableDeviceError

__all__ = ["MAX_OFFERED", "Cause", "Diagnosis", "DirectoryReport", "Finding", "NameDiagnosis"]

MAX_OFFERED = 20
"""Most device names that a diagnosis lists; the number of all is beside them."""

Cause = Literal[
    "not-qualified",  # the text is no device name
    "missing-node",  # the device is defined, a node it needs isn't on the host
    "conflict",  # two files of one directory define it
    "broken-file",  # a file of that kind has a mistake
    "no-edits",  # the device is there and says nothing
    "unreadable-file",  # a file that this user may not read
    "ignored-file",  # a file whose name doesn't end in .json or .yaml
    "unreadable-directory",  # a directory that this user may not read
    "elsewhere",  # a usual directory that wasn't read offers it
    "never-on-disk",  # the NVIDIA runtime's own kind
    "unknown-device",  # the kind is offered, this device isn't
    "unknown-kind",  # nobody offers the kind
    "no-specs",  # there is no spec at all
]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One reason why a name can't be resolved.

    Attributes:
        cause: Which one, for programs.
        message: The same for people: one sentence without a full stop.
        paths: The files or directories it is about.
        next_step: What removes this cause.
    """

    cause: Cause
    message: str
    next_step: str
    paths: tuple[str, ...] = ()


class NameDiagnosis(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known about one requested name.

    Attributes:
        name: As requested.
        resolvable: Whether injecting it works; then there are no findings.
        kind: ``vendor/class`` of the name; None if it isn't qualified.
        offered: Device names of that kind, at most `MAX_OFFERED`.
        offered_total: How many there are.
        near: Qualified names that may have been meant, best first.
        findings: Why it isn't resolvable, most likely cause first.
    """

    name: str
    resolvable: bool
    kind: str | None = None
    offered: tuple[str, ...] = ()
    offered_total: int = 0
    near: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class DirectoryReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A directory of the cache.

    Attributes:
        path: The directory.
        state: ``read``, ``missing`` or ``unreadable``.
        specs: Number of spec files that could be used.
        broken: Number of spec files with problems.
        problem: Why it is unreadable.
    """

    path: str
    state: Literal["read", "missing", "unreadable"]
    specs: int = 0
    broken: int = 0
    problem: str | None = None


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to "why can't these devices be resolved?".

    Attributes:
        directories: What was read, lowest priority first.
        names: One entry per requested name, in the order of the request.
    """

    directories: tuple[DirectoryReport, ...]
    names: tuple[NameDiagnosis, ...]

    @property
    def unresolvable(self) -> tuple[str, ...]:
        """The names that can't be injected."""
        return tuple(name.name for name in self.names if not name.resolvable)

    @property
    def next_step(self) -> str | None:
        """The step that removes the most likely cause of the first unresolvable name."""
        return next((name.findings[0].next_step for name in self.names if name.findings), None)

    def error(self) -> InjectionError:
        """The error to raise for people: the names and the first cause in one sentence, the next step as hint.

        An `UnresolvableDeviceError` unless all that is missing are device nodes of the host.
        """
        names = self.unresolvable
        listed = f"CDI device{'s' if len(names) > 1 else ''} {', '.join(names)}"
        findings = [finding for name in self.names for finding in name.findings]
        reason = f": {findings[0].message}" if findings else ""
        if findings and all(finding.cause == "missing-node" for finding in findings):
            return InjectionError(printable(f"can't inject {listed}{reason}"), hint=self.next_step)
        return UnresolvableDeviceError(printable(f"unresolvable {listed}{reason}"), names=names, hint=self.next_step)

    def lines(self) -> list[str]:
        """The diagnosis for people, one line per fact."""
        lines = [*(line for name in self.names for line in _name_lines(name)), *_directory_lines(self.directories)]
        return [printable(line) for line in lines]


def _name_lines(name: NameDiagnosis) -> list[str]:
    if name.resolvable:
        return [f"{name.name}: can be injected"]
    lines = [f"{name.name}: can't be injected"]
    for finding in name.findings:
        lines += [f"  {finding.message}", f"    next: {finding.next_step}"]
    if name.offered:
        more = name.offered_total - len(name.offered)
        lines.append(f"  {name.kind} offers {', '.join(name.offered)}" + (f" and {more} more" if more else ""))
    if name.near:
        lines.append(f"  similar: {', '.join(name.near)}")
    return lines


def _directory_lines(directories: tuple[DirectoryReport, ...]) -> list[str]:
    lines = ["spec directories, the last one wins:"] if directories else ["there are no spec directories"]
    for directory in directories:
        if directory.state == "missing":
            lines.append(f"  {directory.path}: doesn't exist")
        elif directory.state == "unreadable":
            lines.append(f"  {directory.path}: {directory.problem}")
        else:
            broken = f", {_count(directory.broken, 'file')} with problems" if directory.broken else ""
            lines.append(f"  {directory.path}: {_count(directory.specs, 'spec')}{broken}")
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
