"""How findings are shown: a paragraph each for people, the same fields for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from draht.api.finding import Finding
from draht.api.printable import printable

__all__ = ["finding_parts", "plain_findings"]


def finding_parts(findings: Sequence[Finding], *, width: int, good: str) -> list[str]:
    """A paragraph for each finding and a last one that counts them.

    Args:
        findings: In the order in which they are shown.
        width: Characters of a line.
        good: The last paragraph where nothing is wrong.
    """
    parts = []
    for finding in findings:
        place = f" ({finding.where})" if finding.where else ""
        lines = [_wrap(f"{finding.severity}: {finding.message}{place}", width)]
        if finding.fix:
            lines.append(_wrap(f"  fix: {finding.fix}", width))
        parts.append("\n".join(lines))
    broken = sum(finding.severity == "broken" for finding in findings)
    warnings = sum(finding.severity == "warning" for finding in findings)
    parts.append(f"{broken} broken, {_counted(warnings, 'warning')}" if broken or warnings else good)
    return parts


def plain_findings(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings for programs."""
    return [
        {
            "kind": finding.kind,
            "severity": finding.severity,
            "message": finding.message,
            "fix": finding.fix,
            "where": finding.where,
        }
        for finding in findings
    ]


def _wrap(line: str, width: int) -> str:
    # Messages quote what servers and other programs say.
    return textwrap.fill(
        printable(line), width=max(width, 40), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
