"""What kube-apiserver would say about a resource.k8s.io object: every error with its Kubernetes field path.

Pure functions of wire structs. It doesn't read files and doesn't change objects.
"""

from __future__ import annotations

from draht.validation.errors import FieldError, Kind
from draht.validation.gates import ALL, DEFAULT, Gates
from draht.validation.judge import dropped_fields, is_judged, validate, written_path

__all__ = ["ALL", "DEFAULT", "FieldError", "Gates", "Kind", "dropped_fields", "is_judged", "validate", "written_path"]
