"""Semantic versions as values: the grammar's edges, precedence, normalisation, what the API server stores."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draht.api.semver import Version, VersionError, is_valid_attribute

# The order that Semantic Versioning 2.0.0 gives as its example (item 11), extended by the edges of each rule.
ORDERED = [
    "0.0.0",
    "0.9.9",
    "1.0.0-0",
    "1.0.0-9",
    "1.0.0-10",
    "1.0.0--",
    "1.0.0-0a",
    "1.0.0-Z",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "18446744073709551615.0.0",
]

REFUSED = [
    "",
    "1",
    "1.2",
    "1.2.3.4",
    "v1.2.3",
    "01.2.3",
    "1.02.3",
    "1.2.03",
    "1.2.3-",
    "1.2.3+",
    "1.2.3-a..b",
    "1.2.3-01",
    "1.2.3-a.00",
    "1.2.3+a+b",
    "1.2.3+a..b",
    "1.2.3-a_b",
    " 1.2.3",
    "1.2.3\n",
    "-1.2.3",
    "+1.2.3",
    "1.2.٣",
    "1..3",
    "..",
    "18446744073709551616.0.0",
    "1.2.3-18446744073709551616",
]

NUMBERS = st.integers(min_value=0, max_value=2**64 - 1)
WORDS = st.from_regex(r"[0-9]{0,3}[A-Za-z-][0-9A-Za-z-]{0,6}", fullmatch=True)
PRERELEASES = st.lists(st.one_of(WORDS, NUMBERS.map(str)), max_size=3)
BUILDS = st.lists(st.from_regex(r"[0-9A-Za-z-]{1,6}", fullmatch=True), max_size=3)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Versions in their own text."""
    text = f"{draw(NUMBERS)}.{draw(NUMBERS)}.{draw(NUMBERS)}"
    prerelease, build = draw(PRERELEASES), draw(BUILDS)
    return text + ("-" + ".".join(prerelease) if prerelease else "") + ("+" + ".".join(build) if build else "")


@pytest.mark.parametrize(("earlier", "later"), list(itertools.combinations(range(len(ORDERED)), 2)))
def test_precedence(earlier: int, later: int) -> None:
    """Each version of an ordered list precedes all that follow it."""
    low, high = Version(ORDERED[earlier]), Version(ORDERED[later])
    assert (low < high, low.compare(high), high.compare(low), low == high) == (True, -1, 1, False)


@pytest.mark.parametrize("text", REFUSED)
def test_refused_texts(text: str) -> None:
    """A text outside the grammar or above 64 bits is refused with the text and a hint."""
    with pytest.raises(VersionError) as caught:
        Version(text)
    assert repr(text)[:20] in caught.value.message
    assert caught.value.hint


def test_parts() -> None:
    """All parts of a version can be told."""
    version = Version("1.22.333-rc.1+build.007")
    assert (version.major, version.minor, version.patch) == (1, 22, 333)
    assert (version.prerelease, version.build) == (("rc", "1"), ("build", "007"))
    assert repr(version) == "Version('1.22.333-rc.1+build.007')"


def test_build_metadata_does_not_order() -> None:
    """Versions that differ in build metadata alone are equal, hash alike and keep their texts."""
    one, other = Version("1.0.0+a"), Version("1.0.0+b")
    assert one == other
    assert hash(one) == hash(other)
    assert [str(one), str(other)] == ["1.0.0+a", "1.0.0+b"]


def test_other_types_are_unequal_and_unordered() -> None:
    """A version never equals its text, and isn't ordered against it."""
    assert Version("1.0.0") != "1.0.0"
    with pytest.raises(TypeError):
        _ = Version("1.0.0") < "1.0.1"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("1.2.3", "1.2.3"),
        ("v1.2.3", "1.2.3"),
        ("1", "1.0.0"),
        ("v1.2", "1.2.0"),
        ("01.002.0003", "1.2.3"),
        ("00", "0.0.0"),
        ("1.2.00-rc.1+x", "1.2.0-rc.1+x"),
        ("535.104.05", "535.104.5"),
    ],
)
def test_normalized_texts(text: str, normalized: str) -> None:
    """A leading v is dropped, missing parts are zero, leading zeros go."""
    assert str(Version.normalized(text)) == normalized


@pytest.mark.parametrize(
    "text", ["", "v", "vv1.0.0", "V1.0.0", "1.0-rc.1", "1+x", " 1.0.0", "1.0.0 ", "1.0.0-01", "-1"]
)
def test_texts_beyond_normalisation(text: str) -> None:
    """Normalisation forgives no second v, no spaces, and no pre-release or build on a short version."""
    with pytest.raises(VersionError) as caught:
        Version.normalized(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("1.2.3-rc.1+b", True),
        ("1.2.3-01", False),
        ("1.2.3-0a", True),
        ("v1.2.3", False),
        ("1.0.0-" + "a" * 58, True),
        ("1.0.0-" + "a" * 59, False),
        ("99999999999999999999.0.0", True),
        ("1.0.0-99999999999999999999", True),
    ],
)
def test_what_the_api_server_stores(text: str, valid: bool) -> None:
    """The API server's rule is the grammar and 64 characters; numbers that no selector can read pass it."""
    assert is_valid_attribute(text) is valid


@pytest.mark.parametrize(
    "text",
    [
        "1" * 1_000_000,
        "1.1." + "1" * 1_000_000,
        "1.0.0-" + "1." * 500_000,
        "1.0.0-" + "a" * 1_000_000 + "!",
        "." * 10**6,
    ],
)
def test_hostile_texts_are_refused_briefly(text: str) -> None:
    """A megabyte of digits, dots or letters is refused without being converted, in a message of one line."""
    with pytest.raises(VersionError) as caught:
        Version(text)
    assert len(str(caught.value)) < 200


@given(texts())
def test_text_and_value_round_trip(text: str) -> None:
    """A version's text is the text it was read from."""
    assert str(Version(text)) == text
    assert str(pickle.loads(pickle.dumps(Version(text)))) == text
    assert Version.normalized("v" + text) == Version(text)


@given(st.lists(texts().map(Version), min_size=3, max_size=3))
def test_order_is_total(versions: list[Version]) -> None:
    """Of any two versions exactly one relation holds, and the order is transitive."""
    a, b, c = versions
    assert (a < b) + (a == b) + (a > b) == 1
    assert a.compare(b) == -b.compare(a)
    if a <= b <= c:
        assert a <= c
    if a == b:
        assert hash(a) == hash(b)
