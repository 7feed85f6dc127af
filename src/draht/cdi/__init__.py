"""Container Device Interface 0.3.0 to 1.1.0: read, check, offer, inject, change and write device specs.

A CDI spec is a file of a vendor that says what has to change in a container so that a device works there. A request
names devices as ``vendor/class=name``::

    from draht import cdi

    cache = cdi.Cache()                              # /etc/cdi and /var/run/cdi
    cache.devices()                                  # ('nvidia.com/gpu=0', 'nvidia.com/gpu=all', …)
    cache.inject(oci_spec, ["nvidia.com/gpu=0"])     # edits the dict of an OCI config.json

Verdicts, minimum versions and the injected result are those of the Go library v1.1.2, which container engines use;
the few deliberate differences are listed in ``docs/cdi.md``. The package has no effects besides reading spec
directories, looking up device nodes on the host, and writing the spec files it is told to write.

Errors::

    draht.api.errors.DrahtError
    └── CDIError                      anything below
        ├── SpecError                 a file or text that isn't a spec (with line and column)
        ├── ValidationError           a spec that breaks a rule (with the field's path)
        ├── LoweringError             a spec that a lower version can't express (feature, path, first version)
        ├── DeviceNameError           not a vendor, class, device or qualified name
        ├── AnnotationError           not a CDI request in container annotations
        ├── ConflictError             two files of one directory define the same device
        ├── DirectoryError            a spec directory that exists but can't be read
        ├── WriteError                a spec file that can't be written or removed
        └── InjectionError            devices that can't be injected; the OCI spec is unchanged
            ├── UnresolvableDeviceError   names that no readable spec defines
            └── HostDeviceError           a device node that is missing on the host or is something else

`Cache` raises only for requests (`inject`, `edits_for`); what is wrong with files is recorded beside them.
"""

from __future__ import annotations

from draht.cdi.annotations import (
    annotation_key,
    annotation_value,
    parse_annotations,
    update_annotations,
)
from draht.cdi.cache import DEFAULT_DIRECTORIES, Cache, DirectoryState, LoadedDevice, LoadedSpec
from draht.cdi.check import Problem, check
from draht.cdi.decode import decode
from draht.cdi.diagnosis import Diagnosis, DirectoryReport, Finding, NameDiagnosis
from draht.cdi.edits import apply, collect
from draht.cdi.errors import (
    AnnotationError,
    CDIError,
    ConflictError,
    DeviceNameError,
    DirectoryError,
    HostDeviceError,
    InjectionError,
    LoweringError,
    SpecError,
    UnresolvableDeviceError,
    ValidationError,
    WriteError,
)
from draht.cdi.explain import explain_unresolvable
from draht.cdi.host import HostDevices, HostNode, HostNodes
from draht.cdi.lower import lower
from draht.cdi.names import (
    QualifiedName,
    is_qualified_name,
    parse_qualified_name,
    qualified_name,
    spec_file_name,
    transient_spec_file_name,
)
from draht.cdi.schema import json_schema
from draht.cdi.spec import (
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    IntelRdt,
    Mount,
    NetDevice,
    Spec,
    encode,
)
from draht.cdi.validate import problems, validate
from draht.cdi.version import VERSIONS, minimum_version
from draht.cdi.watch import changes
from draht.cdi.write import remove_spec, write_spec

__all__ = [
    "DEFAULT_DIRECTORIES",
    "VERSIONS",
    "AnnotationError",
    "CDIError",
    "Cache",
    "ConflictError",
    "ContainerEdits",
    "Device",
    "DeviceNameError",
    "DeviceNode",
    "Diagnosis",
    "DirectoryError",
    "DirectoryReport",
    "DirectoryState",
    "Finding",
    "Hook",
    "HostDeviceError",
    "HostDevices",
    "HostNode",
    "HostNodes",
    "InjectionError",
    "IntelRdt",
    "LoadedDevice",
    "LoadedSpec",
    "LoweringError",
    "Mount",
    "NameDiagnosis",
    "NetDevice",
    "Problem",
    "QualifiedName",
    "Spec",
    "SpecError",
    "UnresolvableDeviceError",
    "ValidationError",
    "WriteError",
    "annotation_key",
    "annotation_value",
    "apply",
    "changes",
    "check",
    "collect",
    "decode",
    "encode",
    "explain_unresolvable",
    "is_qualified_name",
    "json_schema",
    "lower",
    "minimum_version",
    "parse_annotations",
    "parse_qualified_name",
    "problems",
    "qualified_name",
    "remove_spec",
    "spec_file_name",
    "transient_spec_file_name",
    "update_annotations",
    "validate",
    "write_spec",
]
