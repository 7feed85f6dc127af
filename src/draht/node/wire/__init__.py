"""Messages between the kubelet and its plugins, generated from ``proto/`` by ``tools/wire.py``; not edited by hand."""
