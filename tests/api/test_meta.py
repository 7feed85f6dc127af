"""Conventions that all wire structs share."""

from __future__ import annotations

import msgspec
import pytest

from draht.api import core, resource
from draht.api.kinds import KINDS, LISTS, describe, identity, item_type
from draht.api.meta import Object, ObjectMeta


@pytest.mark.parametrize("key", sorted([*KINDS, *LISTS]), ids="-".join)
def test_kind_and_version_are_always_written(key: tuple[str, str]) -> None:
    """An object says what it is, although both are defaults."""
    struct = KINDS.get(key) or LISTS[key]
    empty = msgspec.json.decode(b"{}", type=struct) if not _required(struct) else None
    if empty is not None:
        assert msgspec.json.decode(msgspec.json.encode(empty)) == {"apiVersion": key[0], "kind": key[1]}
    assert identity(struct) == key


def _required(struct: type[msgspec.Struct]) -> bool:
    return any(field.required for field in msgspec.structs.fields(struct))


def test_unset_and_zero_are_not_written() -> None:
    """Fields at their zero value stay out of the text; a pointer to zero doesn't."""
    request = resource.ExactDeviceRequest(device_class_name="c", count=0, admin_access=False)
    assert msgspec.json.decode(msgspec.json.encode(request)) == {"deviceClassName": "c", "adminAccess": False}


def test_structs_are_frozen() -> None:
    """A snapshot can be shared: nobody changes what another one reads."""
    metadata = ObjectMeta(name="a")
    with pytest.raises(AttributeError):
        metadata.name = "b"  # type: ignore[misc]
    assert msgspec.structs.replace(metadata, name="b").name == "b"


def test_another_version_is_refused() -> None:
    """Bytes of one version never pass as another, whose shape differs."""
    data = msgspec.json.encode({"apiVersion": "resource.k8s.io/v1beta1", "kind": "DeviceClass"})
    with pytest.raises(msgspec.ValidationError, match=r"Invalid enum value 'resource.k8s.io/v1beta1'"):
        msgspec.json.decode(data, type=resource.DeviceClass)


def test_every_list_has_its_items() -> None:
    """Each kind has a list kind of the same version, and the other way round."""
    assert {item_type(struct) for struct in LISTS.values()} == set(KINDS.values())


def test_the_kinds_are_described_in_a_line() -> None:
    """The hint for unknown kinds names each kind once, older versions behind the newest."""
    text = describe()
    assert text.startswith("v1: Event, Namespace, Node, Pod; resource.k8s.io/v1 (also v1beta2, v1beta1, v1alpha3): ")
    assert text.count("ResourceSlice") == 1


def test_names_that_python_reserves_have_an_underscore() -> None:
    """Attributes named like builtins are ``int_`` and ``bool_`` in Python and ``int`` and ``bool`` on the wire."""
    value = resource.DeviceAttribute(int_=1, bool_=False)
    assert msgspec.json.encode(value) == b'{"int":1,"bool":false}'


def test_objects_share_their_base() -> None:
    """Whatever has a name can be handled as an `Object`."""
    objects: list[Object] = [core.Namespace(metadata=ObjectMeta(name="a")), resource.DeviceClass()]
    assert [obj.metadata.name for obj in objects] == ["a", ""]
