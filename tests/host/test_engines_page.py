"""`docs/engines.md` says what the code knows: versions and findings."""

from __future__ import annotations

import re
from pathlib import Path

from draht.host.engines.versions import DOCKER, PODMAN

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/engines.md").read_text(encoding="utf-8")


def test_the_versions_on_the_page_are_those_of_the_code() -> None:
    """Both halves of the table, every row."""
    rows = re.findall(r"^\| ([\d.]*) \| ([\d.]*) \| \| ([\d.]*)(?: \([\d.]+\))? ?\| ([\d.]*) ?\|$", PAGE, re.MULTILINE)
    assert [(first, reads) for first, reads, _, _ in rows] == _rows(PODMAN)
    assert [(first, reads) for _, _, first, reads in rows if first] == _rows(DOCKER)


def test_every_finding_is_on_the_page_and_no_other() -> None:
    """What doctor may print can be looked up."""
    table = PAGE.partition("| Finding | Means |")[2].partition("\n## ")[0]
    explained = [kind for row in table.splitlines() for kind in re.findall(r"`([a-z-]+)`", row.partition(" | ")[0])]
    sources = [ROOT / "src/draht" / name for name in ("host/doctor.py", "host/ownership.py", "cdi/spec_findings.py")]
    sources += (ROOT / "src/draht/host/engines").glob("*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    known = set(re.findall(r'kind="([a-z]+(?:-[a-z]+)+)"', text))
    known |= set(re.findall(r'^        \("(cdi-[a-z-]+)", \w+, "', text, re.MULTILINE))
    known |= set(re.findall(r'kind="([a-z-]+)" if \w+ else "([a-z-]+)"', text)[0])
    assert sorted(explained) == sorted(known)


def _rows(table: tuple[tuple[tuple[int, int], str], ...]) -> list[tuple[str, str]]:
    return [(f"{major}.{minor}", reads) for (major, minor), reads in table]
