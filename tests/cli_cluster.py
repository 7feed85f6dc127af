"""Two nodes, three devices, a class: the smallest cluster that the commands about manifests can be tried on."""

from __future__ import annotations

from typing import Final

__all__ = ["CLAIM", "CLASS", "HOLDER", "NODE_1", "NODE_2", "PODS", "RULE", "SLICES", "as_list"]

NODE_1: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-1}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
    - {name: small, attributes: {model: {string: A2}}, capacity: {memory: {value: 16Gi}}}
"""

NODE_2: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice-2}
spec:
  driver: gpu.example.com
  nodeName: node-2
  pool: {name: node-2, generation: 1, resourceSliceCount: 1}
  devices:
    - {name: big-0, attributes: {model: {string: A100}}, capacity: {memory: {value: 80Gi}}}
    - {name: big-1, attributes: {model: {string: A100}}, capacity: {memory: {value: 80Gi}}}
"""

CLASS: Final = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
"""

SLICES: Final = f"{NODE_1}---{NODE_2}---{CLASS}"

CLAIM: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec:
  devices:
    requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          count: 2
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "A100"'}}]
"""

HOLDER: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: holder, namespace: team-a}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: node-2, device: big-0}]}
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-2]}]}]}
"""

RULE: Final = """
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: broken}
spec:
  deviceSelector: {driver: gpu.example.com, pool: node-2}
  taint: {key: example.com/broken, effect: NoSchedule}
"""

PODS: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, count: 2}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: two}], containers: [{name: main, image: any}]}
---
apiVersion: v1
kind: Pod
metadata: {name: second}
spec: {resourceClaims: [{name: gpus, resourceClaimTemplateName: two}], containers: [{name: main, image: any}]}
"""
"""Two pods that want two devices each; there is room for one."""


def as_list(*documents: str) -> str:
    """Single objects as one ``v1 List``, as ``kubectl get -o yaml`` prints several."""
    items = []
    for document in "\n---\n".join(documents).split("---\n"):
        lines = [line for line in document.splitlines() if line.strip()]
        items += [f"{'- ' if number == 0 else '  '}{line}" for number, line in enumerate(lines)]
    return "\n".join(["apiVersion: v1", "kind: List", "metadata: {resourceVersion: ''}", "items:", *items, ""])
