"""Names of vendors, classes, devices and spec files."""

from __future__ import annotations

import pytest

from draht import cdi


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("nvidia.com/gpu=0", ("nvidia.com", "gpu", "0")),
        ("a/b=c", ("a", "b", "c")),
        ("v_1-x.y/c.d=GPU-1:2_3", ("v_1-x.y", "c.d", "GPU-1:2_3")),
        (f"{'v' * 300}/c={'0' * 300}", ("v" * 300, "c", "0" * 300)),
    ],
)
def test_a_qualified_name_is_taken_apart(name: str, parts: tuple[str, str, str]) -> None:
    """Vendor, class and device come out, and the name goes together again; nothing limits its length."""
    parsed = cdi.parse_qualified_name(name)
    assert tuple(parsed) == parts
    assert str(parsed) == cdi.qualified_name(*parts) == name
    assert parsed.kind == f"{parts[0]}/{parts[1]}"
    assert cdi.is_qualified_name(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is not a qualified device name"),
        ("gpu0", "is not a qualified device name"),
        ("/dev/nvidia0", "is not a qualified device name"),
        ("nvidia.com/gpu", "is not a qualified device name"),
        ("nvidia.com/gpu=", "is not a qualified device name"),
        ("nvidia.com=0", "is not a qualified device name"),
        ("/gpu=0", "is not a qualified device name"),
        ("1v/c=0", "'1v' is not a vendor"),
        ("v-/c=0", "'v-' is not a vendor"),
        ("v/1c=0", "'1c' is not a class"),
        ("v/c/d=0", "'c/d' is not a class"),
        ("v/c=-0", "'-0' is not a device name"),
        ("v/c=0=1", "'0=1' is not a device name"),
        ("v/c=0\n", "is not a device name"),
        ("v/c=é", "'é' is not a device name"),
    ],
)
def test_what_is_no_qualified_name_says_why(name: str, message: str) -> None:
    """The message names the part that is missing or wrong."""
    assert not cdi.is_qualified_name(name)
    with pytest.raises(cdi.DeviceNameError, match=message):
        cdi.parse_qualified_name(name)


def test_file_names_are_those_of_the_go_library() -> None:
    """A kind has one usual file name, and transient ones with an id whose slashes are replaced."""
    assert cdi.spec_file_name("nvidia.com", "gpu") == "nvidia.com-gpu"
    assert cdi.transient_spec_file_name("draht.dev", "gpu", "a/b") == "draht.dev-gpu_a_b"
