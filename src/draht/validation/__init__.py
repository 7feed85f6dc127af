"""What kube-apiserver would say about a resource.k8s.io object: every error with its Kubernetes field path.

Pure functions of wire structs. It doesn't read files and doesn't change objects.
"""
