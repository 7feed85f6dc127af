"""A real Kubernetes for tests and for people: etcd, the control plane, and nodes with kubelet and containerd.

Everything runs on this machine from programs that are built from source, without a registry and without a container
engine around it. `cluster.cluster.Cluster` is the entry; ``docs/cluster.md`` says what differs from production.

Errors::

    ClusterError            a cluster can't be made, or something in it failed; ends with the log of what failed
    └── CommandError        a command against the cluster (kubectl, ctr) failed; carries what it said
"""
