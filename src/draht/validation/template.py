"""A ResourceClaimTemplate: what it gives to the claims that are made from it.

Owns ``validateResourceClaimTemplateSpec`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2.
"""

from __future__ import annotations

from draht.api.resource import ResourceClaimTemplate
from draht.validation.claim import check_devices, declare_devices
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.metadata import check_template_metadata

__all__ = ["check_template"]


def check_template(report: Report, obj: ResourceClaimTemplate, gates: Gates) -> None:
    """Judge what a template holds."""
    check_template_metadata(report, obj.spec.metadata, "spec.metadata")
    check_devices(report, obj.spec.spec.devices, "spec.spec.devices", gates)
    declare_devices(report, obj.spec.spec.devices, "spec.spec.devices")
