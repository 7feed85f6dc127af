"""CDI requests in container annotations."""

from __future__ import annotations

import pytest

from draht import cdi


def test_a_request_is_written_and_read_back() -> None:
    """What `update_annotations` writes, `parse_annotations` reads; other annotations and the input stay as they are."""
    before = {"io.kubernetes.pod": "x"}
    after = cdi.update_annotations(before, "vendor.gpu", "pci/0", ["nvidia.com/gpu=0", "nvidia.com/gpu=1"])
    assert before == {"io.kubernetes.pod": "x"}
    assert after == {**before, "cdi.k8s.io/vendor.gpu_pci_0": "nvidia.com/gpu=0,nvidia.com/gpu=1"}
    assert cdi.parse_annotations(after) == (
        ("cdi.k8s.io/vendor.gpu_pci_0",),
        ("nvidia.com/gpu=0", "nvidia.com/gpu=1"),
    )


def test_requests_are_read_in_the_order_of_their_keys() -> None:
    """The order doesn't depend on the mapping's, and a device that is asked for twice is there twice."""
    annotations = {"cdi.k8s.io/b": "a/b=1", "cdi.k8s.io/a": "a/b=2,a/b=1"}
    assert cdi.parse_annotations(annotations).devices == ("a/b=2", "a/b=1", "a/b=1")


@pytest.mark.parametrize(
    ("plugin", "device", "message"),
    [
        ("", "0", "the plugin is empty"),
        ("p", "", "the device id is empty"),
        ("p" * 32, "d" * 31, "longer than 63"),
        ("é" * 20, "d" * 30, "longer than 63"),
        ("-p", "0", "can't be part"),
        ("p", "0-", "can't be part"),
        ("p", "0000:01", "can't be part"),
    ],
)
def test_a_key_that_kubernetes_refuses_is_refused(plugin: str, device: str, message: str) -> None:
    """Empty, long and odd keys are refused."""
    with pytest.raises(cdi.AnnotationError, match=message):
        cdi.annotation_key(plugin, device)
    assert len(cdi.annotation_key("p" * 32, "d" * 30)) == len("cdi.k8s.io/") + 63


def test_an_existing_request_is_not_overwritten() -> None:
    """The same plugin and device id can't ask twice."""
    annotations = cdi.update_annotations(None, "p", "0", ["a/b=c"])
    with pytest.raises(cdi.AnnotationError, match="is there already"):
        cdi.update_annotations(annotations, "p", "0", ["a/b=d"])


@pytest.mark.parametrize("value", ["", "a/b", "a/b=c, a/b=d", "a/b=c,"])
def test_one_bad_name_spoils_all_requests(value: str) -> None:
    """A request that can't be read may not be half fulfilled."""
    with pytest.raises(cdi.AnnotationError, match="is not a qualified device name"):
        cdi.parse_annotations({"cdi.k8s.io/x": value, "cdi.k8s.io/a": "a/b=c"})
    with pytest.raises(cdi.AnnotationError, match="is not a"):
        cdi.annotation_value(["a/b=c", value])
