"""A running kube-apiserver as the judge of `draht.validation` and of the conversion between API versions."""
