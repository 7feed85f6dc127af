"""Privileges and identities of containers and pods."""

from __future__ import annotations

from draht.api.wire import Int64, Wire

__all__ = [
    "AppArmorProfile",
    "Capabilities",
    "PodSecurityContext",
    "SELinuxOptions",
    "SeccompProfile",
    "SecurityContext",
    "Sysctl",
    "WindowsSecurityContextOptions",
]


class Capabilities(Wire, frozen=True, kw_only=True):
    """Linux capabilities added to and dropped from the engine's default set."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SELinuxOptions(Wire, frozen=True, kw_only=True):
    """An SELinux context."""

    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""


class WindowsSecurityContextOptions(Wire, frozen=True, kw_only=True):
    """Identity of Windows containers."""

    gmsa_credential_spec_name: str | None = None
    gmsa_credential_spec: str | None = None
    run_as_user_name: str | None = None
    host_process: bool | None = None


class SeccompProfile(Wire, frozen=True, kw_only=True):
    """Which seccomp filter applies."""

    type: str
    localhost_profile: str | None = None


class AppArmorProfile(Wire, frozen=True, kw_only=True):
    """Which AppArmor profile applies."""

    type: str
    localhost_profile: str | None = None


class SecurityContext(Wire, frozen=True, kw_only=True):
    """Privileges of one container; wins over the pod's."""

    capabilities: Capabilities | None = None
    privileged: bool | None = None
    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    proc_mount: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None


class Sysctl(Wire, frozen=True, kw_only=True):
    """One namespaced kernel parameter."""

    name: str
    value: str = ""


class PodSecurityContext(Wire, frozen=True, kw_only=True):
    """Privileges that all containers of a pod share."""

    se_linux_options: SELinuxOptions | None = None
    windows_options: WindowsSecurityContextOptions | None = None
    run_as_user: Int64 | None = None
    run_as_group: Int64 | None = None
    run_as_non_root: bool | None = None
    supplemental_groups: tuple[Int64, ...] = ()
    supplemental_groups_policy: str | None = None
    fs_group: Int64 | None = None
    sysctls: tuple[Sysctl, ...] = ()
    fs_group_change_policy: str | None = None
    seccomp_profile: SeccompProfile | None = None
    app_armor_profile: AppArmorProfile | None = None
    se_linux_change_policy: str | None = None
