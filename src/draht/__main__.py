"""``python -m draht`` is the ``draht`` command."""

from __future__ import annotations

from draht.cli.main import main

main()
