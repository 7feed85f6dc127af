"""Differences from the Go library that the comparisons found, each by name, so that none comes back.

Every case is asked of Go as well: the table says what draht must answer, and Go has to agree with the table.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from draht import cdi
from draht.cdi.version import enforced_version
from oracle_client import Oracle

DEVICE = "devices: [{name: a, containerEdits: {env: [A=B]}}]\n"
JSON = '{"cdiVersion": "1.1.0", "kind": "v/c", "devices": [{"name": "a", "containerEdits": {"env": ["A=B"]}}]}'
HEAD = f"cdiVersion: 1.1.0\nkind: v/c\n{DEVICE}"


class Case(NamedTuple):
    """A text and its verdict."""

    text: str
    accepted: bool
    minimum: str | None = None


CASES = {
    "the %YAML directive may only say 1.1": Case(f"%YAML 1.2\n---\n{HEAD}", False),
    "the %YAML directive may say 1.1": Case(f"%YAML 1.1\n---\n{HEAD}", True),
    "an escaped slash is no escape": Case(HEAD + 'annotations: {a: "\\/"}', False),
    "a backslash before an escaped one and a slash is fine": Case(HEAD + 'annotations: {a: "\\\\/"}', True),
    "an escaped slash after wide characters is found": Case(HEAD + 'annotations: {a: "é🙂", b: "\\/"}', False),
    "an escaped slash outside double quotes is text": Case(HEAD + "annotations: {a: '\\/', b: \\/}", True),
    "a float that begins with a point may have underscores": Case(
        HEAD + "containerEdits: {additionalGids: [.1_0]}", True, "0.7.0"
    ),
    "a float may not end in an underscore": Case(HEAD + "containerEdits: {additionalGids: [.1_]}", False),
    "a host path before the last device is overlooked": Case(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n"
        "- {name: a, containerEdits: {deviceNodes: [{path: /x, hostPath: /y}]}}\n"
        "- {name: b, containerEdits: {env: [A=B]}}",
        True,
        "0.3.0",
    ),
    "a host path in the last device is seen": Case(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n"
        "- {name: b, containerEdits: {env: [A=B]}}\n"
        "- {name: a, containerEdits: {deviceNodes: [{path: /x, hostPath: /y}]}}",
        False,
    ),
    "a mount's type before the last device is overlooked": Case(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n"
        "- {name: a, containerEdits: {mounts: [{hostPath: a, containerPath: b, type: bind}]}}\n"
        "- {name: b, containerEdits: {env: [A=B]}}",
        True,
        "0.3.0",
    ),
    "a digit first in any device's name is seen": Case(
        "cdiVersion: 0.3.0\nkind: v/c\ndevices:\n"
        "- {name: 0, containerEdits: {env: [A=B]}}\n- {name: b, containerEdits: {env: [A=B]}}",
        False,
    ),
    "a question mark ends an unquoted text inside brackets": Case(HEAD + "containerEdits: {env: [A=b?c]}", False),
    "a question mark begins a key inside brackets": Case(HEAD + "annotations: {?a : b}", True, "0.6.0"),
    "a question mark is text outside brackets and in quotes": Case(
        HEAD + "annotations:\n  a: b?c\n  d: e? f\ncontainerEdits: {env: ['A=b?c']}", True
    ),
    "a colon may end an unquoted text inside brackets": Case(
        HEAD + "annotations: {é: b:, c: d:}\ncontainerEdits: {env: [PATH=/a:, B=c:]}", True
    ),
    "a private-use character is not taken for a colon": Case(HEAD + "annotations: {a: \uf8ff}", True),
    "a colon before another mark of a flow collection": Case(HEAD + "containerEdits: {env: [A=b:{}]}", False),
    "an anchor may be defined again": Case(HEAD + "annotations: {a: &x b, c: &x d, e: *x }", True),
    "a merge is not stopped by a key that looks like a number": Case(
        HEAD + "annotations: {1: mine, <<: {1: theirs}}", True
    ),
    "a null key is passed over": Case(HEAD + "~: anything", True),
    "a null key may not be there twice": Case(HEAD + "~: anything\n~: else", False),
    "a null device is dropped": Case("cdiVersion: 1.1.0\nkind: v/c\ndevices: [~]", False),
    "a node tagged null is no object behind a pointer": Case(HEAD + "containerEdits: {intelRdt: !!null {}}", False),
    "a node tagged null is an object elsewhere": Case(HEAD + "containerEdits: !!null {env: [A=B]}", True),
    "quoted truth is only accepted in its old spellings": Case(
        HEAD + "containerEdits: {intelRdt: {enableMonitoring: 'yes'}}", True, "1.1.0"
    ),
    "minus infinity is the lowest number, which is negative": Case(
        HEAD + "containerEdits: {deviceNodes: [{path: /x, type: c, major: -.inf}]}", False
    ),
    "minus infinity is a timeout": Case(
        HEAD + "containerEdits: {hooks: [{hookName: prestart, path: x, timeout: -.inf}]}", True
    ),
    "a number that starts with a sign after its base": Case(
        HEAD + "containerEdits: {hooks: [{hookName: prestart, path: x, timeout: 0b-11}]}", True
    ),
    "what follows the document must begin like YAML": Case(JSON + '"', False),
    "what follows the document may be anything that begins like YAML": Case(JSON + " x", True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_verdict_is_gos(case: Case, oracle: Oracle) -> None:
    """Draht and Go both give the verdict, and the minimum version, that the table says."""
    go = oracle.call("cdi.parse", data=case.text.encode())
    try:
        spec = cdi.decode(case.text.encode())
        cdi.validate(spec)
        minimum: str | None = enforced_version(spec)
    except cdi.CDIError:
        minimum = None
    assert (minimum is not None, go["accepted"]) == (case.accepted, case.accepted), go
    if case.minimum is not None:
        assert (minimum, go["minimum"]) == (case.minimum, case.minimum)
