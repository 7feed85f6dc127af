"""Talking to a Kubernetes API server: configuration, typed verbs, and a store that follows the server.

::

    from draht.kube import CLAIMS, Client, Config, Reflector

    async with Client(Config.load()) as client:
        claim = await client.get(CLAIMS, "train", namespace="ml")
        await client.patch(CLAIMS, "train", {"metadata": {"labels": {"a": "b"}}}, namespace="ml",
                           resource_version=claim.metadata.resource_version)

Objects are decoded leniently into the structs of `draht.api` and never written back whole, because fields of newer
servers would be lost: writes are patches of the fields that draht owns, bound to the version that was read. Kinds of
`resource.k8s.io` are v1's whatever the server speaks. Importing the package doesn't import aiohttp; connecting does.

Errors::

    draht.api.errors.DrahtError
    └── KubeError                     anything below
        ├── ConfigError               no usable kubeconfig, context, certificate or token
        ├── UnreachableError          no answer: name, connection, TLS, time-out
        ├── AnswerError               an answer that no API server gives: no JSON, cut off, too large
        ├── NotServedError            the server doesn't have the kind in any version that draht speaks
        └── StatusError               the server refused (code, reason, causes by field)
            ├── UnauthorizedError         401
            ├── ForbiddenError            403
            ├── NotFoundError             404
            ├── AlreadyExistsError        409, the name is taken
            ├── ConflictError             409, somebody else changed it
            ├── GoneError                 410, too old to go on from
            ├── InvalidError              422, it breaks rules
            └── TooManyRequestsError      429, later
"""

from draht.kube.backoff import Backoff
from draht.kube.client import Client, FieldValidation, Listed, PatchType, Propagation
from draht.kube.codec import Event, EventType, Key, Unreadable
from draht.kube.config import Config
from draht.kube.errors import (
    AlreadyExistsError,
    AnswerError,
    Cause,
    ConfigError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    KubeError,
    NotFoundError,
    NotServedError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreachableError,
)
from draht.kube.kinds import (
    CLAIM_TEMPLATES,
    CLAIMS,
    CLASSES,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    TAINT_RULES,
    Kind,
)
from draht.kube.reflector import Counters, Reflector
from draht.kube.store import Change, ChangeKind, Store
from draht.kube.subscription import Subscription

__all__ = [
    "CLAIMS",
    "CLAIM_TEMPLATES",
    "CLASSES",
    "EVENTS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "SLICES",
    "TAINT_RULES",
    "AlreadyExistsError",
    "AnswerError",
    "Backoff",
    "Cause",
    "Change",
    "ChangeKind",
    "Client",
    "Config",
    "ConfigError",
    "ConflictError",
    "Counters",
    "Event",
    "EventType",
    "FieldValidation",
    "ForbiddenError",
    "GoneError",
    "InvalidError",
    "Key",
    "Kind",
    "KubeError",
    "Listed",
    "NotFoundError",
    "NotServedError",
    "PatchType",
    "Propagation",
    "Reflector",
    "StatusError",
    "Store",
    "Subscription",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnreachableError",
    "Unreadable",
]
