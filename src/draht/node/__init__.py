"""The node side of Kubernetes: what the kubelet asks of a driver, and what a driver tells the cluster.

Errors::

    DrahtError
    └── NodeError
        ├── SocketError              a socket can't be made: path too long, directory not writable, somebody listens
        │   └── DriverRegisteredError  another plugin serves this driver's name on this node
        ├── ClaimReferenceError      what the kubelet asks for isn't what the API server has
        │   ├── ClaimGoneError         the claim doesn't exist any more
        │   └── ClaimReplacedError     it was deleted, and another one has its name
        ├── DevicePluginError        devices were asked for that the plugin can't give
        └── KubeletError             the kubelet can't be reached, or refuses
"""
