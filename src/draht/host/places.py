"""Where draht keeps its state and writes CDI specs on one machine.

One rule for all of `host`: root uses the machine's directories, other users their own. It creates nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["cdi_directory", "state_directory"]


def state_directory(environ: Mapping[str, str] = os.environ, *, uid: int | None = None) -> Path:
    """The directory of the database and of runc bundles.

    ``DRAHT_STATE_DIR`` wins; root uses ``/var/lib/draht``; others ``$XDG_STATE_HOME/draht`` (XDG base directory
    specification 0.8, default ``~/.local/state``).
    """
    if chosen := environ.get("DRAHT_STATE_DIR"):
        return Path(chosen)
    if (os.geteuid() if uid is None else uid) == 0:
        return Path("/var/lib/draht")
    home = Path(environ.get("HOME") or "~").expanduser()
    return Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "draht"


def cdi_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The directory transient CDI specs are written to: ``DRAHT_CDI_DIR``, else ``/var/run/cdi``.

    The CDI specification names ``/etc/cdi`` for static and ``/var/run/cdi`` for generated specs.
    """
    return Path(environ.get("DRAHT_CDI_DIR") or "/var/run/cdi")
