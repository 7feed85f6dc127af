"""What the documents claim: their links lead somewhere, every page is found, and each promise names its test."""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

from tracked_files import ROOT, assert_none, text_of, tracked

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"\btests/[\w/.-]+\.py(?:::(\w+))?")


def links(page: Path) -> dict[str, Path]:
    """Relative links of a page as written → the path they lead to; code blocks don't link."""
    text = FENCE.sub("", text_of(page) or "")
    return {
        target: Path(posixpath.normpath(posixpath.join(page.parent.as_posix(), target)))
        for target, _ in LINK.findall(text)
    }


def test_relative_links_lead_to_files() -> None:
    """No page links to a file or directory that isn't there."""
    broken = [
        f"{page} → {target}"
        for page in tracked(".md")
        for target, path in links(page).items()
        if not (ROOT / path).exists()
    ]
    assert_none(broken)


def test_every_page_is_reached_from_the_readme() -> None:
    """Each document can be found by following links from README.md."""
    pages = {page for page in tracked(".md") if page.parts[0] == "docs" or len(page.parts) == 1}
    reached: set[Path] = set()
    waiting = [Path("README.md")]
    while waiting:
        page = waiting.pop()
        if page in reached or page not in pages:
            continue
        reached.add(page)
        for path in links(page).values():  # a link to a directory shows what lies in it
            waiting += [path, *(page for page in pages if page.parent == path)]
    assert_none([str(page) for page in sorted(pages - reached)])


def functions_of(path: Path) -> set[str]:
    """The names of the functions in a module."""
    return {node.name for node in ast.walk(ast.parse(text_of(path) or "")) if isinstance(node, ast.FunctionDef)}


def test_each_line_of_what_works_names_a_test_that_exists() -> None:
    """README's table of what works today has a test in every line, and the test is there."""
    lines = (text_of(Path("README.md")) or "").splitlines()
    headers = [
        number for number, line in enumerate(lines) if re.match(r"\|.*\|\s*(Test|Tests|Proof|Proven by)\s*\|", line)
    ]
    assert len(headers) == 1, "README.md needs one table whose last column is called 'Test'"
    rows = []
    for line in lines[headers[0] + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(line)
    assert rows
    wrong = []
    for row in rows:
        named = list(TEST.finditer(row))
        if not named:
            wrong.append(f"no test: {row}")
        for test in named:
            path = Path(test[0].partition("::")[0])
            if not (ROOT / path).is_file():
                wrong.append(f"no such file: {test[0]}")
            elif test[1] and test[1] not in functions_of(path):
                wrong.append(f"no such test: {test[0]}")
    assert_none(wrong)


def test_make_targets_in_documents_exist() -> None:
    """A document that tells to run ``make something`` names a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", text_of(Path("Makefile")) or "", re.MULTILINE))
    wrong = [
        f"{page}: make {target}"
        for page in tracked(".md")
        for target in re.findall(r"(?:`|^|\$ )make ([a-z]+(?:-[a-z]+)*)", text_of(page) or "", re.MULTILINE)
        if target not in targets
    ]
    assert_none(wrong)
