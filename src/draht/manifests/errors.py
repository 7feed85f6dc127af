"""What can be wrong between objects."""

from __future__ import annotations

from draht.api.errors import DrahtError

__all__ = ["ManifestError"]


class ManifestError(DrahtError):
    """A reference leads nowhere, or two objects have one name."""

    exit_code = 2
