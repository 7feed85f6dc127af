"""Ordinary manifests of pods and nodes read without a false alarm (all synthetic)."""

from __future__ import annotations

import pytest

from draht.api import core
from draht.api.reader import read_text

DRA_POD = """\
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels: {run: train}
  name: train
spec:
  restartPolicy: Never
  runtimeClassName: nvidia
  schedulingGates: [{name: draht.dev/placement}]
  tolerations:
  - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: nvidia.com/gpu.product, operator: In, values: [NVIDIA-H100-80GB-HBM3]}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {run: train}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
  resourceClaims:
  - {name: gpus, resourceClaimTemplateName: two-gpus}
  - {name: shared, resourceClaimName: shared-gpu}
  initContainers:
  - name: wait
    image: busybox
    command: [sh, -c, "until nslookup db; do sleep 2; done"]
    restartPolicy: Always
  containers:
  - name: train
    image: example.com/train:1
    args: ["--epochs", "3"]
    envFrom: [{configMapRef: {name: settings, optional: true}}]
    env:
    - name: NODE
      valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
    - name: TOKEN
      valueFrom: {secretKeyRef: {name: token, key: value}}
    ports: [{containerPort: 8080, name: http}]
    readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 5}
    livenessProbe: {tcpSocket: {port: 8080}}
    lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
    securityContext: {runAsUser: 1000, capabilities: {add: [IPC_LOCK]}, seccompProfile: {type: RuntimeDefault}}
    resources:
      claims: [{name: gpus, request: gpu}, {name: shared}]
      requests: {cpu: 500m, memory: 16Gi}
      limits: {cpu: 2, memory: 16Gi, hugepages-2Mi: 1Gi}
    volumeMounts:
    - {name: shm, mountPath: /dev/shm}
    - {name: data, mountPath: /data, readOnly: true}
  volumes:
  - name: shm
    emptyDir: {medium: Memory, sizeLimit: 8Gi}
  - name: data
    persistentVolumeClaim: {claimName: data}
  - name: all
    projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 3600}}, {configMap: {name: ca}}]}
  - name: scratch
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Ti}}}
status: {}
"""

DEVICE_PLUGIN_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: cuda, namespace: team-a}
spec:
  containers:
  - {name: cuda, image: nvidia/cuda, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/mig-1g.10gb: 2}}}
"""

RUNNING_POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
  uid: 9a1f
  managedFields:
  - {manager: kubelet, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:status": {}}}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: 77a, controller: true}]
spec: {nodeName: node-1, containers: [{name: c}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True", lastProbeTime: null, lastTransitionTime: 2026-01-31T10:00:00Z}]
  resourceClaimStatuses: [{name: gpus, resourceClaimName: train-gpus-x7k2q}]
  extendedResourceClaimStatus:
    resourceClaimName: train-extended
    requestMappings: [{containerName: c, resourceName: nvidia.com/gpu, requestName: container-0-request-0}]
  containerStatuses:
  - name: c
    ready: true
    restartCount: 0
    image: x
    imageID: sha256:1b
    state: {running: {startedAt: 2026-01-31T10:00:00Z}}
    allocatedResourcesStatus:
    - {name: "claim:gpus/gpu", resources: [{resourceID: GPU-1, health: Healthy}]}
"""

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {nvidia.com/gpu.count: "8", node-role.kubernetes.io/gpu: ""}}
spec: {podCIDR: 10.0.1.0/24, taints: [{key: nvidia.com/gpu, effect: NoSchedule}]}
status:
  capacity: {cpu: 224, memory: 2113559648Ki, nvidia.com/gpu: 8, pods: "110"}
  allocatable: {cpu: "222", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True"}]
  daemonEndpoints: {kubeletEndpoint: {Port: 10250}}
  nodeInfo: {kernelVersion: 6.8.0, kubeletVersion: v1.37.2}
"""


@pytest.mark.parametrize(
    "text", [DRA_POD, DEVICE_PLUGIN_POD, RUNNING_POD, NODE], ids=["dra", "plugin", "running", "node"]
)
def test_ordinary_manifests_raise_no_alarm(text: str) -> None:
    """A manifest that a cluster accepts reads without any problem."""
    result = read_text(text)
    assert list(map(str, result.problems)) == []
    assert len(result.objects) == 1


def test_what_a_scheduler_needs_is_there() -> None:
    """The claims of a pod, and how its containers use them, come out as they were written."""
    pod = read_text(DRA_POD).objects[0].object
    assert isinstance(pod, core.Pod)
    assert [claim.name for claim in pod.spec.resource_claims] == ["gpus", "shared"]
    assert pod.spec.containers[0].resources.claims == (
        core.ResourceClaim(name="gpus", request="gpu"),
        core.ResourceClaim(name="shared"),
    )
    assert pod.spec.scheduling_gates == (core.PodSchedulingGate(name="draht.dev/placement"),)


def test_status_fields_that_say_nothing_may_be_left_out() -> None:
    """A hand-written snapshot of a node needs no machine id and no image list."""
    node = read_text(NODE).objects[0].object
    assert isinstance(node, core.Node)
    assert node.status.daemon_endpoints.kubelet_endpoint.port == 10250
    assert node.status.node_info.machine_id == ""
    assert node.status.capacity["nvidia.com/gpu"] == 8
