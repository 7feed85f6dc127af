"""Write ``constraints.txt`` anew: the newest versions that fit pyproject.toml, for every supported Python.

Needs uv for the resolution over several Python versions; it is installed into a directory that is thrown away when the
running interpreter doesn't have it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = (
    "--quiet --universal --python-version 3.11 --all-extras --group dev --group go "
    "--no-header --no-annotate --no-emit-index-url --no-emit-find-links"
)
HEADER = """\
# The versions that development and tests run with; what users need is in pyproject.toml.
# Made by `make constraints`.
"""


def main() -> None:
    """Entry point of the script."""
    with tempfile.TemporaryDirectory() as scratch:
        python = sys.executable
        if importlib.util.find_spec("uv") is None:
            venv.create(scratch, with_pip=True)
            python = f"{scratch}/bin/python"
            subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
        resolved = subprocess.run(
            [python, "-m", "uv", "pip", "compile", *OPTIONS.split(), "pyproject.toml"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
    (ROOT / "constraints.txt").write_text(HEADER + resolved)


if __name__ == "__main__":
    main()
