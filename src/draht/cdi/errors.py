"""Everything that can go wrong with CDI, as one hierarchy (drawn in ``draht.cdi``).

Owns the exception classes. Each carries the place it is about (`where`: a file with line, or a path of fields inside a
spec) and what to do next (`hint`), because most of them end on somebody's terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from draht.api.errors import DrahtError

__all__ = [
    "AnnotationError",
    "CDIError",
    "ConflictError",
    "DeviceNameError",
    "DirectoryError",
    "HostDeviceError",
    "InjectionError",
    "LoweringError",
    "SpecError",
    "UnresolvableDeviceError",
    "ValidationError",
    "WriteError",
]


_LONGEST = 1000


class CDIError(DrahtError):
    """Any failure of this package; catch this one to catch them all.

    Messages quote what stands in files, which may be megabytes: a long one is cut.
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
        super().__init__(message, where=where, hint=hint)


class SpecError(CDIError):
    """A spec file can't be read, or its text can't be decoded."""


class ValidationError(CDIError):
    """A spec was decoded but breaks a rule of CDI.

    Attributes:
        path: The field, as ``devices[0].containerEdits.env[1]``; empty for the spec as a whole.
    """

    def __init__(self, message: str, *, path: str = "", where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where if where is not None else path or None, hint=hint)
        self.path = path


class LoweringError(CDIError):
    """A spec uses a feature that a lower version of CDI doesn't have.

    Attributes:
        feature: What the spec uses, in words.
        path: The field that uses it.
        device: The name of the device that uses it; None if it is the spec as a whole.
        version: The first version of CDI that has it.
    """

    def __init__(
        self, message: str, *, feature: str, path: str, device: str | None, version: str, hint: str | None = None
    ) -> None:
        super().__init__(message, where=path or None, hint=hint)
        self.feature = feature
        self.path = path
        self.device = device
        self.version = version


class DeviceNameError(CDIError):
    """A text is not a qualified device name, or a vendor, class or device name breaks the rules."""


class AnnotationError(CDIError):
    """A CDI request can't be written to, or read from, container annotations."""


class ConflictError(CDIError):
    """Two files of the same directory define the same device, so nobody gets it.

    Attributes:
        device: The qualified name.
        paths: The two files.
    """

    def __init__(self, message: str, *, device: str, paths: tuple[str, str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.device = device
        self.paths = paths


class DirectoryError(CDIError):
    """A spec directory exists but can't be read."""


class InjectionError(CDIError):
    """Devices can't be injected into an OCI runtime spec; the spec is unchanged."""


class UnresolvableDeviceError(InjectionError):
    """A requested device is not defined by any readable spec.

    Attributes:
        names: The requested names that nobody defines, in the order of the request.
    """

    def __init__(self, message: str, *, names: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.names = tuple(names)


class HostDeviceError(InjectionError):
    """A device node has to be looked up on the host, and is missing there or is something else.

    Attributes:
        path: The path on the host.
    """

    def __init__(self, message: str, *, path: str, hint: str | None = None) -> None:
        super().__init__(message, where=path, hint=hint)
        self.path = path


class WriteError(CDIError):
    """A spec file can't be written or removed; an older file of that name is untouched."""
