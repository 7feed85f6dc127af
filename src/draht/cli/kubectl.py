"""``kubectl draht …``: draht as a plugin of kubectl, with completion.

Owns what kubectl expects of a plugin: a program ``kubectl-draht`` that always reads the cluster, beside files if
there are some, and a program ``kubectl_complete-draht`` that completes its words in cobra's form. Both are
installed with draht. The commands themselves are those of ``draht``.
"""

from __future__ import annotations

import os
import sys

from draht.cli.live import PLUGIN
from draht.cli.main import COMMANDS, draht, main

__all__ = ["complete", "plugin"]

_NO_FILES = 4
"""Cobra's directive ``ShellCompDirectiveNoFileComp``."""
_DEFAULT = 0
"""Cobra's directive ``ShellCompDirectiveDefault``: the shell completes file names."""


def plugin() -> None:
    """Entry point of the ``kubectl-draht`` script."""
    os.environ[PLUGIN] = "1"
    main()


def complete() -> None:
    """Entry point of ``kubectl_complete-draht``: kubectl passes the words after ``draht``, the last one unfinished."""
    for line in completions(sys.argv[1:]):
        print(line)


def completions(words: list[str]) -> list[str]:
    """One ``value<TAB>help`` per line and cobra's directive at the end."""
    from click.shell_completion import ShellComplete

    *before, last = words or [""]
    if not before and not last.startswith("-"):
        # The commands' own texts would import all of them, and are cut off at some 45 characters.
        return [*(f"{name}\t{COMMANDS[name]}" for name in sorted(COMMANDS) if name.startswith(last)), f":{_NO_FILES}"]
    found = ShellComplete(draht, {}, "kubectl draht", "_DRAHT_COMPLETE").get_completions(before, last)
    lines = [f"{each.value}\t{each.help}" if each.help else str(each.value) for each in found if each.type == "plain"]
    files = any(each.type in {"file", "dir"} for each in found)
    return [*lines, f":{_DEFAULT if files else _NO_FILES}"]
