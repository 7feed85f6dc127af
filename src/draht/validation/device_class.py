"""A DeviceClass: selectors, configuration and the extended resource it stands for.

Owns ``validateDeviceClassSpec`` of ``k8s.io/kubernetes/pkg/apis/resource/validation`` at v1.37.2.
"""

from __future__ import annotations

from draht.api.resource import DeviceClass, DeviceClassSpec
from draht.validation import names
from draht.validation.configuration import check_configuration, declare_configuration
from draht.validation.equality import same
from draht.validation.errors import Report
from draht.validation.gates import Gates
from draht.validation.limits import CONFIGURATIONS
from draht.validation.lists import check_list, declare_too_many
from draht.validation.selectors import Expressions, check_selectors, declare_selectors

__all__ = ["check_device_class"]

_EXTENDED = "format=k8s-extended-resource-name"


def check_device_class(report: Report, obj: DeviceClass, gates: Gates, old: DeviceClassSpec | None = None) -> None:
    """Judge the spec of a class; of one that takes the place of another, selectors that stay aren't judged again."""
    spec = obj.spec
    stored = old is not None and same(spec.selectors, old.selectors)
    check_selectors(report, spec.selectors, "spec.selectors", Expressions(gates, stored=stored))
    stored = old is not None and same(spec.config, old.config)
    check_list(
        report,
        spec.config,
        "spec.config",
        lambda config, path: check_configuration(report, config, path, stored=stored),
        limit=CONFIGURATIONS,
    )
    path = "spec.extendedResourceName"
    name = spec.extended_resource_name
    if name is not None and not names.is_extended_resource(name):
        message = "must be the name of an extended resource, like example.com/gpu"
        report.invalid(path, name, message, origin=_EXTENDED, covered=True)
    declare_selectors(report, spec.selectors, "spec.selectors")
    if not declare_too_many(report, "spec.config", len(spec.config), CONFIGURATIONS):
        for index, config in enumerate(spec.config):
            declare_configuration(report, config, f"spec.config[{index}]")
    if name is not None:
        for message in names.extended_resource(name):
            report.declare("Invalid", path, message, name, origin=_EXTENDED)
