"""Node selectors: which nodes they select, and which are refused as malformed."""

from __future__ import annotations

import msgspec
import pytest

from draht.allocator.nodes import SelectorError, node_matches, selector_matches
from draht.api.core import Node
from draht.api.core.scheduling import NodeSelector

NODE = msgspec.convert(
    {
        "metadata": {
            "name": "node-1",
            "labels": {"zone": "a", "cores": "16", "empty": "", "large": "9223372036854775808"},
        }
    },
    Node,
)


def _selector(*requirements: tuple[str, str, list[str]], fields: bool = False) -> NodeSelector:
    listed = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    term = {"matchFields" if fields else "matchExpressions": listed}
    return msgspec.convert({"nodeSelectorTerms": [term]}, NodeSelector)


@pytest.mark.parametrize(
    ("key", "operator", "values", "selected"),
    [
        ("zone", "In", ["a", "b"], True),
        ("zone", "In", ["b"], False),
        ("nothing", "In", ["a"], False),
        ("empty", "In", [""], True),
        ("zone", "NotIn", ["b"], True),
        ("zone", "NotIn", ["a"], False),
        ("nothing", "NotIn", ["a"], True),
        ("zone", "Exists", [], True),
        ("nothing", "Exists", [], False),
        ("zone", "DoesNotExist", [], False),
        ("nothing", "DoesNotExist", [], True),
        ("cores", "Gt", ["15"], True),
        ("cores", "Gt", ["16"], False),
        ("cores", "Lt", ["17"], True),
        ("cores", "Lt", ["16"], False),
        ("zone", "Gt", ["1"], False),
        ("nothing", "Lt", ["1"], False),
        ("large", "Gt", ["1"], False),
    ],
)
def test_a_label_is_compared(key: str, operator: str, values: list[str], selected: bool) -> None:
    """Each operator, with a label that is there, one that isn't, and one that is no integer."""
    assert selector_matches(_selector((key, operator, values)), NODE) is selected


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("zone", "Like", ["a"]),
        ("zone", "In", []),
        ("zone", "Exists", ["a"]),
        ("cores", "Gt", ["1", "2"]),
        ("cores", "Gt", ["many"]),
        ("cores", "Lt", ["9223372036854775808"]),
        ("-bad-", "Exists", []),
        ("UPPER.example.com/x", "Exists", []),
        ("x" * 64, "Exists", []),
        ("zone", "In", ["not valid"]),
        ("zone", "In", ["v" * 64]),
    ],
)
def test_a_malformed_requirement_is_refused(key: str, operator: str, values: list[str]) -> None:
    """Upstream doesn't parse these, also where another term would select the node."""
    bad = _selector((key, operator, values))
    good = _selector(("zone", "Exists", []))
    both = NodeSelector(node_selector_terms=good.node_selector_terms + bad.node_selector_terms)
    for selector in (bad, both):
        with pytest.raises(SelectorError) as caught:
            selector_matches(selector, NODE)
        assert "nodeSelectorTerms[" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "operator", "value", "selected"),
    [
        ("metadata.name", "In", "node-1", True),
        ("metadata.name", "In", "node-2", False),
        ("metadata.name", "NotIn", "node-1", False),
        ("metadata.name", "NotIn", "node-2", True),
        ("metadata.uid", "In", "node-1", False),
        ("metadata.uid", "NotIn", "node-1", True),
    ],
)
def test_a_field_is_compared(key: str, operator: str, value: str, selected: bool) -> None:
    """The only field a node has is its name; others are empty."""
    assert selector_matches(_selector((key, operator, [value]), fields=True), NODE) is selected


@pytest.mark.parametrize(("operator", "values"), [("Exists", []), ("In", []), ("NotIn", ["a", "b"])])
def test_a_malformed_field_is_refused(operator: str, values: list[str]) -> None:
    """Fields know two operators and take one value."""
    with pytest.raises(SelectorError):
        selector_matches(_selector(("metadata.name", operator, values), fields=True), NODE)


def test_terms_are_alternatives_and_requirements_are_not() -> None:
    """One term must hold, with all its requirements; an empty term holds for nobody."""
    zone, cores = ("zone", "In", ["b"]), ("cores", "In", ["16"])
    assert not selector_matches(_selector(zone, cores), NODE)
    either = _selector(zone).node_selector_terms + _selector(cores).node_selector_terms
    assert selector_matches(NodeSelector(node_selector_terms=either), NODE)
    assert not selector_matches(msgspec.convert({"nodeSelectorTerms": [{}]}, NodeSelector), NODE)
    assert not selector_matches(NodeSelector(node_selector_terms=()), NODE)


def test_the_name_decides_before_all_nodes_and_selectors() -> None:
    """A node name is looked at first, then "all nodes", then the selector; without any there is no node."""
    no = _selector(("zone", "In", ["b"]))
    assert node_matches(NODE, "node-1", None, no)
    assert not node_matches(NODE, "node-2", True, None)
    assert node_matches(NODE, "", True, no)
    assert not node_matches(NODE, None, False, no)
    assert not node_matches(NODE, None, None, None)
