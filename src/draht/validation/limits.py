"""How much an object may hold: the numbers of ``k8s.io/api/resource/v1`` at v0.37."""

from __future__ import annotations

from typing import Final

__all__ = [
    "ANNOTATION_BYTES",
    "ATTRIBUTES_AND_CAPACITIES",
    "ATTRIBUTE_VALUES",
    "ATTRIBUTE_VALUE_BYTES",
    "BINDING_CONDITIONS",
    "COMPATIBILITY_GROUPS",
    "CONDITIONS",
    "CONFIGURATIONS",
    "CONSTRAINTS",
    "CONSUMED_COUNTER_SETS",
    "CONSUMERS",
    "COUNTERS",
    "COUNTER_SETS",
    "DERIVED_ATTRIBUTES",
    "DEVICES",
    "DEVICES_WITH_ADVANCED_FEATURES",
    "DEVICE_DATA_BYTES",
    "DRIVER_NAME_BYTES",
    "EXPRESSION_BYTES",
    "EXPRESSION_COST",
    "FIRST_AVAILABLE",
    "HARDWARE_ADDRESS_BYTES",
    "ID_BYTES",
    "INTERFACE_NAME_BYTES",
    "IPS",
    "LABEL_BYTES",
    "PARAMETER_BYTES",
    "POOL_NAME_BYTES",
    "QUALIFIED_NAME_BYTES",
    "REQUESTS",
    "SELECTORS",
    "SUBDOMAIN_BYTES",
    "TAINTS",
    "VALID_VALUES",
]

LABEL_BYTES: Final = 63
SUBDOMAIN_BYTES: Final = 253
ANNOTATION_BYTES: Final = 256 * 1024
"""All annotations of an object together, keys and values."""

DRIVER_NAME_BYTES: Final = 63
POOL_NAME_BYTES: Final = SUBDOMAIN_BYTES
ID_BYTES: Final = 32
"""The part of an attribute's or capacity's name behind the slash."""
QUALIFIED_NAME_BYTES: Final = 63 + 1 + ID_BYTES

DEVICES: Final = 128
DEVICES_WITH_ADVANCED_FEATURES: Final = 64
"""Devices of a slice in which any has taints, consumes counters or has attributes that are lists."""
ATTRIBUTES_AND_CAPACITIES: Final = 32
ATTRIBUTE_VALUES: Final = 48
"""Attributes of a device, each member of a list counted."""
ATTRIBUTE_VALUE_BYTES: Final = 64
TAINTS: Final = 16
BINDING_CONDITIONS: Final = 4
COUNTER_SETS: Final = 8
COUNTERS: Final = 32
CONSUMED_COUNTER_SETS: Final = 2
COMPATIBILITY_GROUPS: Final = 2
VALID_VALUES: Final = 10

REQUESTS: Final = 32
CONSTRAINTS: Final = 32
CONFIGURATIONS: Final = 32
SELECTORS: Final = 32
FIRST_AVAILABLE: Final = 8
DERIVED_ATTRIBUTES: Final = 32
EXPRESSION_BYTES: Final = 10 * 1024
EXPRESSION_COST: Final = 1_000_000
"""What one expression may cost at most, by the estimate; also all derived attributes of a claim together."""
PARAMETER_BYTES: Final = 10 * 1024

CONSUMERS: Final = 256
CONDITIONS: Final = 8
DEVICE_DATA_BYTES: Final = 10 * 1024
IPS: Final = 16
INTERFACE_NAME_BYTES: Final = 256
HARDWARE_ADDRESS_BYTES: Final = 128
