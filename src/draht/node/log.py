"""What the node agent logs: one JSON object per line, with the claim and the pod it is about.

Owns the form. Modules log with the standard library and pass facts as ``extra={"claim_uid": …, "pod": …}``; whatever is
extra becomes a field. Why JSON lines: a claim that doesn't start is followed by its uid through kubelet, agent and
runtime, which a sentence can't be searched for.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

__all__ = ["JsonLines", "set_up"]

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes that every record has; all others came as extra."""


class JsonLines(logging.Formatter):
    """One record as one line of JSON: ``time``, ``level``, ``logger``, ``message``, the extras, ``traceback``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extras = {name: value for name, value in vars(record).items() if name not in _OWN}
        fields |= {name: value for name, value in extras.items() if value is not None and value != ""}
        if record.exc_info and record.exc_info[0] is not None:
            fields["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(fields, default=str, ensure_ascii=False)


def set_up(*, debug: bool = False, stream: TextIO | None = None) -> None:
    """Log draht's records, and warnings of everybody else, to a stream; stderr by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("draht").setLevel(logging.DEBUG if debug else logging.INFO)
