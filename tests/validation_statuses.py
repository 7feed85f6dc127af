"""Statuses of ``resource.k8s.io`` objects as JSON values, for the good objects of `validation_objects`."""

from __future__ import annotations

from typing import Any, TypeAlias

from validation_objects import NODE_SELECTOR

__all__ = ["RULE_STATUS", "STATUS"]

Json: TypeAlias = Any

STATUS: Json = {
    "allocation": {
        "devices": {
            "results": [
                {
                    "request": "one",
                    "driver": "gpu.example.com",
                    "pool": "pool/a",
                    "device": "gpu-0",
                    "shareID": "00000000-0000-4000-8000-000000000001",
                    "consumedCapacity": {"memory": "10Gi"},
                    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
                    "bindingConditions": ["example.com/ready"],
                    "bindingFailureConditions": ["example.com/failed"],
                    "skipNodeOperations": ["NodePrepareResources", "NodeUnprepareResources"],
                },
                {"request": "two/small", "driver": "gpu.example.com", "pool": "p", "device": "gpu-1"},
            ],
            "config": [
                {"source": "FromClass", "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}},
                {
                    "source": "FromClaim",
                    "requests": ["one", "two/small"],
                    "opaque": {"driver": "gpu.example.com", "parameters": {}},
                },
            ],
        },
        "nodeSelector": NODE_SELECTOR,
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    },
    "reservedFor": [
        {"resource": "pods", "name": "p", "uid": "u"},
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "v"},
    ],
    "devices": [
        {
            "driver": "gpu.example.com",
            "pool": "pool/a",
            "device": "gpu-0",
            "shareID": "00000000-0000-4000-8000-000000000001",
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "observedGeneration": 1,
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "Up",
                    "message": "it is up",
                }
            ],
            "data": {"a": 1},
            "networkData": {
                "interfaceName": "eth0",
                "ips": ["10.0.0.1/24", "2001:db8::1/64"],
                "hardwareAddress": "00:11:22:33:44:55",
            },
        },
        {"driver": "gpu.example.com", "pool": "p", "device": "gpu-1"},
    ],
}
"""A status that a server takes for the good claim, with every field."""

RULE_STATUS: Json = {
    "conditions": [
        {
            "type": "EvictionInProgress",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "NotStarted",
            "message": "0 pods",
        }
    ]
}
"""A status that a server takes for the good rule."""
