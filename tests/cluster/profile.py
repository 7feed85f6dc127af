"""What a cluster is made of: a release of Kubernetes, and which of its unfinished features are on.

Owns the list of feature gates and API versions per profile. Gates are those of the running releases (stages as of
1.37.2); a gate that a release doesn't know would keep its programs from starting, so the lists are per release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster_programs import Version

__all__ = ["Gates", "Profile", "profile"]

Gates = Literal["default", "alpha"]

DRA_ALPHA = (
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAResourcePoolStatus",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevicesType",
    # Beta, but off in 1.37.2: they belong to what comes next.
    "DRAFractionalCapacityRange",
    "DRAWorkloadResourceClaims",
    "GenericWorkload",
)
WORKLOAD_ALPHA = ("TopologyAwareWorkloadScheduling", "CompositePodGroup", "PodGroupPreemptionPolicy", "WorkloadWithJob")


@dataclass(frozen=True)
class Profile:
    """Feature gates and API versions of a cluster.

    Attributes:
        version: The minor release.
        gates: Feature gates to turn on, for every component.
        apis: API versions to serve besides those that are on by default.
    """

    version: Version
    gates: tuple[str, ...]
    apis: tuple[str, ...]

    @property
    def gate_flags(self) -> list[str]:
        """The flag for components that take gates on their command line."""
        return [f"--feature-gates={','.join(f'{gate}=true' for gate in self.gates)}"] if self.gates else []

    @property
    def runtime_config(self) -> str:
        """Value of the API server's ``--runtime-config``."""
        return ",".join(f"{api}=true" for api in self.apis)


def profile(version: Version, gates: Gates) -> Profile:
    """The profile of a release.

    Raises:
        ValueError: There is none.
    """
    older = ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2")
    match version, gates:
        case "1.37", "default":
            return Profile(version, (), older)
        case "1.37", "alpha":
            # `api/alpha` alone would leave out what is beta and off.
            apis = ("resource.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3")
            return Profile(version, (*DRA_ALPHA, *WORKLOAD_ALPHA), (*older, *apis))
        case "1.33", "default":
            return Profile(version, ("DynamicResourceAllocation",), older)
        case _:
            raise ValueError(f"no profile {gates!r} of Kubernetes {version}")
