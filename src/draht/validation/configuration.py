"""Opaque configuration for drivers, and the data that drivers attach to a claim's devices."""

from __future__ import annotations

from typing import Any

import msgspec

from draht.api.resource import DeviceConfiguration
from draht.validation.errors import Report
from draht.validation.identity import check_driver, declare_driver
from draht.validation.limits import PARAMETER_BYTES

__all__ = ["check_configuration", "check_raw", "declare_configuration"]


def check_configuration(report: Report, config: DeviceConfiguration, path: str, *, stored: bool = False) -> None:
    """Judge a configuration: it must be opaque, and have a driver and parameters.

    Args:
        report: Takes what is wrong.
        config: The configuration.
        path: Its place.
        stored: It is there already; it may be larger than a new one, as it may be older than the limit.
    """
    if config.opaque is None:
        report.required(f"{path}.opaque")
        return
    check_driver(report, config.opaque.driver, f"{path}.opaque.driver", covered=True)
    limit = None if stored else PARAMETER_BYTES
    check_raw(report, config.opaque.parameters, f"{path}.opaque.parameters", limit)


def declare_configuration(report: Report, config: DeviceConfiguration, path: str) -> None:
    """The declared rules of a configuration."""
    if config.opaque is not None:
        declare_driver(report, config.opaque.driver, f"{path}.opaque.driver")


def check_raw(report: Report, value: Any, path: str, limit: int | None) -> None:
    """Judge a value that is kept as it came: it must be a JSON object.

    Upstream counts the bytes as they came over the wire. What is counted here is the shortest JSON, so a text that is
    too long only because of its white space is refused by the server alone.
    """
    if value is None:
        report.required(path)
    elif limit is not None and len(msgspec.json.encode(value)) > limit:
        report.too_long(path, limit)
    elif not isinstance(value, dict):
        report.invalid(path, None, "must be a JSON object")
