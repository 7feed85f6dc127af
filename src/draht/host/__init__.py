"""One host: containers with GPUs through podman, docker or runc."""
