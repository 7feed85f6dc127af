"""What the kubelet asks, over its sockets: registration, claims, health, extended resources."""
