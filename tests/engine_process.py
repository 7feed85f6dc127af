"""One container through an engine adapter, as a process of its own: what attached tests signal, kill and talk to.

Its argument is a JSON object: ``engine``, ``request`` (fields of `ContainerRequest`), ``state``, ``spec_directories``
(of engines that draht applies CDI for) and ``journal``, a file that gets ``created ID``, then ``ended STATUS`` or
``failed MESSAGE``. Stdin, stdout and stderr are the container's alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from draht.host.engine import Bind, ContainerRequest, EngineError
from draht.host.engines import engines

REFUSED = 99
"""Exit status when the engine refused."""


def main(order: dict[str, Any]) -> int:
    """Create, start attached, remove; the container's exit status, or `REFUSED`."""
    journal = Path(order["journal"])
    engine = engines(state=Path(order["state"]), spec_directories=order["spec_directories"])[order["engine"]]
    request = ContainerRequest(**{key: _tuple(value) for key, value in order["request"].items()})
    container = None
    try:
        container = engine.create(request)
        _write(journal, f"created {container}")
        status = engine.start(container, attach=True)
    except EngineError as error:
        _write(journal, f"failed {type(error).__name__} {error}")
        return REFUSED
    else:
        _write(journal, f"ended {status}")
        return status
    finally:
        if container is not None:
            engine.remove(container)


def _write(journal: Path, line: str) -> None:
    with journal.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def _tuple(value: object) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(Bind(**item) if isinstance(item, dict) else item for item in value)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
