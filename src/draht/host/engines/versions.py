"""Which CDI version an engine reads, as data.

An engine reads the versions that the Go CDI library it was built with knows. Sources: ``go.mod`` of podman's releases
4.1.1 to 6.0.0, ``vendor.mod`` of docker 25.0.5 to 28.5.2 and ``go.mod`` of moby/v2 up to 2.0.0-beta.24; the library's
``CurrentVersion`` is the spec version of its major and minor number.

Rules for what is not listed, all on the careful side: an engine between two entries is taken as the older one, a newer
one than the last as the last, and one whose version can't be understood as the oldest that reads CDI at all.
"""

from __future__ import annotations

import re

__all__ = ["DOCKER", "PODMAN", "docker_cdi_version", "podman_cdi_version", "release"]

Table = tuple[tuple[tuple[int, int], str], ...]

PODMAN: Table = (
    ((4, 1), "0.4.0"),
    ((4, 3), "0.5.0"),
    ((4, 7), "0.6.0"),
    ((5, 1), "0.7.0"),
    ((5, 2), "0.8.0"),
    ((5, 5), "1.0.0"),
    ((6, 0), "1.1.0"),
)
"""First podman release → highest CDI version it reads."""

DOCKER: Table = (
    ((1, 44), "0.6.0"),
    ((1, 45), "0.7.0"),
    ((1, 48), "0.8.0"),
    ((1, 49), "1.0.0"),
    ((1, 54), "1.1.0"),
)
"""First API version of the daemon → highest CDI version it reads.

By API version because distributions and own builds name the daemon as they like, while the API version is compiled in:
1.44 is docker 25.0, 1.45 is 26, 1.47 is 27.2 to 27.5 (the last of these read 0.8.0), 1.48 is 28.0, 1.49 is 28.1,
1.52 is 29.0."""

DOCKER_CDI_DEFAULT = (1, 50)
"""First API version (docker 28.2) of daemons that have ``features.cdi`` on unless told otherwise."""

_RELEASE = re.compile(r"(\d{1,6})\.(\d{1,6})")


def release(version: str) -> tuple[int, int] | None:
    """Major and minor number of a version text such as ``4.3.1``, ``5.4.2-rhel`` or ``v5.0``; None if it has none."""
    match = _RELEASE.search(version)
    return (int(match[1]), int(match[2])) if match else None


def podman_cdi_version(version: str) -> tuple[str | None, str]:
    """Highest CDI version of a podman version, or None if it is too old for CDI; and why."""
    return _look_up(PODMAN, version, "podman")


def docker_cdi_version(api_version: str) -> tuple[str | None, str]:
    """Highest CDI version of a docker daemon with this API version, or None if it is too old for CDI; and why."""
    return _look_up(DOCKER, api_version, "docker API")


def _look_up(table: Table, version: str, what: str) -> tuple[str | None, str]:
    number = release(version)
    if number is None:
        return table[0][1], f"{what} version {version!r} is not understood, so the oldest that reads CDI is assumed"
    found: str | None = None
    since = table[0][0]
    for first, cdi_version in table:
        if number < first:
            break
        found, since = cdi_version, first
    if found is None:
        return None, f"CDI came with {what} {since[0]}.{since[1]}"
    if number > table[-1][0]:
        return found, f"the newest known is {what} {since[0]}.{since[1]}, and what it reads is assumed for newer ones"
    return found, f"go.mod of {what} {since[0]}.{since[1]}"
