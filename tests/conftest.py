"""Fixtures that every topic may use: what is expensive to start is started once per run.

Where something a fixture needs is missing, its tests are skipped with one line, or fail where ``CI`` is set; see
`requirements.require`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import gotoolchain
import oracle_client
from requirements import require


@pytest.fixture(scope="session")
def oracle() -> Iterator[oracle_client.Oracle]:
    """The running oracle around upstream's Go libraries."""
    try:
        program = oracle_client.build()
    except gotoolchain.GoMissingError as missing:
        require(False, str(missing))
        raise
    running = oracle_client.Oracle(program)
    yield running
    running.close()
