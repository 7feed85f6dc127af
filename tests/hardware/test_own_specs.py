from __future__ import annotations

from pathlib import Path

import pytest

from draht import cdi
from draht.hardware.cdi import CDIProvider

OFFER = """
cdiVersion: "0.6.0"
kind: nvidia.com/gpu
devices: [{name: GPU-0, containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}}]
"""
OWN = {
    "a hold of draht run": """
cdiVersion: "0.6.0"
kind: draht.dev/gpu
devices: [{name: hold-0, containerEdits: {deviceNodes: [{path: /dev/nvidia7}]}}]
""",
    "a claim": """
cdiVersion: "0.6.0"
kind: k8s.gpu.nvidia.com/claim
annotations: {draht.dev/claim: "{}"}
devices: [{name: uid-gpu-7, containerEdits: {deviceNodes: [{path: /dev/nvidia7}]}}]
""",
    "a claim for a runtime that reads no annotations": """
cdiVersion: "0.5.0"
kind: k8s.gpu.nvidia.com/claim
devices: [{name: uid-gpu-7, containerEdits: {deviceNodes: [{path: /dev/nvidia7}], env: [DRAHT_DEVICE_gpu_7=GPU-7]}}]
""",
    "the device plugin": """
cdiVersion: "0.5.0"
kind: plugin.draht.dev/gpu
devices: [{name: GPU-7, containerEdits: {deviceNodes: [{path: /dev/nvidia7}]}}]
""",
}


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_what_draht_wrote_for_somebody_offers_nothing(text: str, tmp_path: Path) -> None:
    """A simulated GPU of a pod isn't a GPU of the machine, and a real one isn't there twice."""
    (tmp_path / "vendor.yaml").write_text(OFFER)
    (tmp_path / "own.yaml").write_text(text)
    inventory = CDIProvider(cdi.Cache([tmp_path])).inventory()
    assert inventory.problems == ()
    assert [device.cdi_names for device in inventory.devices] == [("nvidia.com/gpu=GPU-0",)]
