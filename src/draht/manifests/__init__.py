"""What a set of manifests asks for: objects by kind and name, defaulted, with templates made into claims.

Between files (or a server's lists) and whoever decides: a pod names claims and templates, a container names requests of
them, and an extended resource such as ``nvidia.com/gpu`` means a class. Here these references are followed as the API
server, the claim controller and the scheduler would. It reads no files, judges no object (that is `draht.validation`)
and chooses no devices.

Errors::

    DrahtError
    └── ManifestError    a reference leads nowhere, or two objects have one name
"""

from __future__ import annotations

from draht.manifests.claims import PodClaim, pod_claims, unserved_resources
from draht.manifests.containers import container_requests
from draht.manifests.defaults import defaulted
from draht.manifests.errors import ManifestError
from draht.manifests.objects import Manifests

__all__ = [
    "ManifestError",
    "Manifests",
    "PodClaim",
    "container_requests",
    "defaulted",
    "pod_claims",
    "unserved_resources",
]
