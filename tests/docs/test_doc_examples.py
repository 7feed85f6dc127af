"""The runner of documentation pages: what a page shows is what happens, or the test of that page fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doc_examples import examples, run

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "GREETING": "hello"}


def _page(directory: Path, text: str) -> Path:
    page = directory / "page.md"
    page.write_text(text.replace("~~~", "```"), encoding="utf-8")
    return page


def test_files_python_and_commands_work_together(tmp_path: Path) -> None:
    """Blocks run in their order, in one directory, with one Python namespace and the given environment only."""
    page = _page(
        tmp_path,
        """
~~~yaml file=below/a.yaml
a: 1
~~~

~~~python
from pathlib import Path
number = 41
Path("b").write_text("b\\n")
~~~

~~~python
print(number + 1)
~~~

~~~text output
42
~~~

~~~console
$ cat below/a.yaml b
a: 1
b
$ echo $GREETING $HOME
hello
$ printf 'one\\ntwo\\nthree\\n'
one
…
$ echo $((40 +
> 2))
42
$ echo no >&2; false   # exits with 1
no
~~~

~~~text
shown only
~~~
""",
    )
    assert run(page, tmp_path, ENVIRONMENT) == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "~~~console\n$ echo b\na\n~~~\n",
            ":2: echo b prints something else\n--- page\n+++ printed\n@@ -1 +1 @@\n-a\n+b",
        ),
        ("~~~console\n$ echo a\n~~~\n", "prints something else"),
        ("~~~console\n$ true\na\n~~~\n", "prints something else"),
        ("~~~console\n$ false\n~~~\n", "exits with 1"),
        ("~~~console\n$ true  # exits with 1\n~~~\n", "exits with 0"),
        ("~~~console\nls\n~~~\n", "starts with '$ '"),
        ("~~~python\nprint(1)\n~~~\n\n~~~text output\n2\n~~~\n", ":6: the Python block above prints something else"),
        ("~~~console\n$ true\n", "has no end"),
    ],
)
def test_a_page_that_is_wrong_fails_at_its_line(tmp_path: Path, text: str, words: str) -> None:
    """Another output, another status and a block without end are refused, with the line and a diff."""
    with pytest.raises(AssertionError) as refused:
        run(_page(tmp_path, text), tmp_path, ENVIRONMENT)
    assert words in str(refused.value)


def test_an_error_in_python_has_the_line_of_the_page(tmp_path: Path) -> None:
    """A traceback points into the page."""
    with pytest.raises(ZeroDivisionError) as refused:
        run(_page(tmp_path, "text\n\n~~~python\nx = 1\nx / 0\n~~~\n"), tmp_path, ENVIRONMENT)
    assert refused.traceback[-1].lineno + 1 == 5


def test_what_is_not_run_says_why(tmp_path: Path) -> None:
    """A block behind such a comment is left out, and only that one."""
    page = _page(tmp_path, "<!-- not run: needs a GPU -->\n\n~~~console\n$ false\n~~~\n\n~~~console\n$ true\n~~~\n")
    assert run(page, tmp_path, ENVIRONMENT) == 1
    assert [example.not_run for example in examples(page)] == ["needs a GPU", None]


def test_blocks_in_lists_are_dedented(tmp_path: Path) -> None:
    """A block inside a list item runs like any other."""
    page = _page(tmp_path, "- item\n\n  ~~~console\n  $ echo a\n  a\n  ~~~\n")
    assert run(page, tmp_path, ENVIRONMENT) == 1
