"""What is answered for a claim, and what containers find."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from draht import cdi
from draht.api.errors import DrahtError
from draht.api.resource import NetworkDeviceData, ResourceClaimStatus
from draht.driver.claims.preparation import Preparer
from draht.driver.errors import (
    ClaimBusyError,
    ClaimError,
    DeviceMissingError,
    DriverFailedError,
    NotAllocatedError,
    ParametersError,
    StateError,
)
from draht.driver.framework import ClaimDevices, Offer, Offered, Pool, Prepared
from toy_driver import NODE, ToyDriver, claim, device, preparer


@pytest.fixture
def driver(tmp_path: Path) -> ToyDriver:
    """Eight toys and a network device."""
    return ToyDriver(tmp_path / "effects", [*(f"toy-{number}" for number in range(8)), "nic-0"])


@pytest.fixture
def place(tmp_path: Path, driver: ToyDriver) -> Preparer:
    """A node on which nothing is prepared."""
    return preparer(tmp_path, driver)


def spec_of(root: Path, uid: str, driver: str = ToyDriver.name) -> cdi.Spec:
    """The CDI spec of a claim, read as an engine reads it."""
    return cdi.decode((root / "cdi" / f"k8s.{driver}-claim_{uid}.json").read_bytes())


def test_the_answer_has_a_device_for_each_result(place: Preparer) -> None:
    """Requests, pool and names are those of the allocation, and each device has a CDI name of its own."""
    answer = place.prepare(claim("u1", device("toy-0", request="big/first"), device("toy-1", request="small")))
    assert [(one.requests, one.base_requests, one.pool, one.device) for one in answer.devices] == [
        (("big/first",), ("big",), NODE, "toy-0"),
        (("small",), ("small",), NODE, "toy-1"),
    ]
    assert [one.cdi_device_ids for one in answer.devices] == [
        ("k8s.toy.example.com/claim=u1-toy-0",),
        ("k8s.toy.example.com/claim=u1-toy-1",),
    ]


def test_a_container_receives_what_the_driver_says(place: Preparer, tmp_path: Path) -> None:
    """An engine that is given one of the names finds the device, the common edits once, and its metadata file."""
    answer = place.prepare(claim("u1", "toy-0", "toy-1"))
    cache = cdi.Cache([tmp_path / "cdi"])
    config: dict[str, object] = {"process": {"env": []}, "linux": {}}
    cache.inject(config, [answer.devices[1].cdi_device_ids[0]])
    process, linux, mounts = config["process"], config["linux"], config["mounts"]
    assert isinstance(process, dict)
    assert isinstance(linux, dict)
    assert isinstance(mounts, list)
    assert process["env"] == ["TOY_CLAIM=claim-u1", "TOY_TOY_1=yes"]
    assert [node["path"] for node in linux["devices"]] == ["/dev/toy-1"]
    assert sorted(mount["destination"] for mount in mounts) == [
        "/toy.txt",
        "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/claim-u1/toys/toy.example.com-metadata.json",
    ]
    assert all(Path(mount["source"]).is_file() for mount in mounts)


def test_a_claim_prepared_twice_answers_the_same(place: Preparer, driver: ToyDriver, tmp_path: Path) -> None:
    """The second call does nothing, whichever instance it comes to."""
    first = place.prepare(claim("u1", "toy-0"))
    assert place.prepare(claim("u1", "toy-0")) == first
    other = preparer(tmp_path, ToyDriver(tmp_path / "effects", ["gone"]))
    assert other.prepare(claim("u1", "toy-0")) == first
    assert driver.calls.count(("prepare", "u1")) == 1
    assert place.prepared() == [first]


def test_a_lost_file_is_made_again_by_the_next_call(place: Preparer, tmp_path: Path) -> None:
    """Somebody emptied the directory of CDI specs, or changed one, while the node ran."""
    first = place.prepare(claim("u1", "toy-0"))
    path = tmp_path / "cdi/k8s.toy.example.com-claim_u1.json"
    content = path.read_bytes()
    for harm in (path.unlink, lambda: path.write_bytes(b"{}")):
        harm()
        assert place.prepare(claim("u1", "toy-0")) == first
        assert path.read_bytes() == content


def test_a_right_metadata_file_keeps_its_inode(place: Preparer, tmp_path: Path) -> None:
    """Containers that run have it mounted; a new file of that name would not be seen by them."""
    place.prepare(claim("u1", "toy-0"))
    path = tmp_path / "metadata/toy.example.com/u1/toys.json"
    inode = path.stat().st_ino
    (tmp_path / "cdi/k8s.toy.example.com-claim_u1.json").unlink()
    assert preparer(tmp_path).recover().restored == ("u1",)
    assert path.stat().st_ino == inode


def test_unprepare_leaves_nothing_and_can_be_repeated(place: Preparer, driver: ToyDriver, tmp_path: Path) -> None:
    """A claim that was never prepared, too, is unprepared with success."""
    place.prepare(claim("u1", "toy-0"))
    for uid in ("u1", "u1", "never"):
        place.unprepare(uid)
    assert driver.prepared() == {}
    assert place.prepared() == []
    left = [path for path in tmp_path.rglob("*") if "u1" in path.name or "never" in path.name]
    assert left == []


def test_a_claim_with_another_allocation_is_prepared_anew(place: Preparer, driver: ToyDriver) -> None:
    """The same claim can be deallocated and allocated again; what it had before is undone first."""
    place.prepare(claim("u1", "toy-0"))
    answer = place.prepare(claim("u1", "toy-3"))
    assert [one.device for one in answer.devices] == ["toy-3"]
    assert driver.prepared() == {"u1": ["toy-3"]}
    place.prepare(claim("u2", "toy-0"))


def test_a_device_that_comes_twice_has_two_names(place: Preparer, tmp_path: Path) -> None:
    """Two shares of one device, and a name that an index could make equal to another."""
    shares = [device("toy-0", share="a", request="one"), device("toy-0", share="b", request="two")]
    answer = place.prepare(claim("u1", *shares))
    names = [one.cdi_device_ids[0] for one in answer.devices]
    assert names == ["k8s.toy.example.com/claim=u1-toy-0", "k8s.toy.example.com/claim=u1-toy-0-1"]
    assert [one.share_id for one in answer.devices] == ["a", "b"]
    assert len(spec_of(tmp_path, "u1").devices) == 2


@pytest.mark.parametrize(
    ("bad", "error", "text"),
    [
        pytest.param(
            msgspec.structs.replace(claim("u1", "toy-0"), status=ResourceClaimStatus()),
            NotAllocatedError,
            "default/claim-u1: the claim has no allocation",
            id="not allocated",
        ),
        pytest.param(
            claim("u1", device("x", driver="other.example.com")),
            NotAllocatedError,
            "no device of toy.example.com was allocated",
            id="another driver's",
        ),
        pytest.param(claim("u1", "toy-9"), DeviceMissingError, "device toy-9 of pool node-1", id="no such device"),
        pytest.param(
            claim("u1", device("toy-0", pool="elsewhere")),
            DeviceMissingError,
            "device toy-0 of pool elsewhere",
            id="another node's pool",
        ),
        pytest.param(claim("../u1", "toy-0"), ClaimError, "not the UID of a claim", id="uid is a path"),
        pytest.param(claim("u1", "toy-0", name="../x"), ClaimError, "can't be part of a path", id="name is a path"),
        pytest.param(
            claim("u1", "toy-0", template="a/b"), ClaimError, "can't be part of a path", id="template is a path"
        ),
        pytest.param(
            claim("u1", device("toy-0", request="../x")), ClaimError, "can't be part of", id="request is a path"
        ),
    ],
)
def test_what_cannot_be_prepared_is_told_and_leaves_nothing(
    place: Preparer, driver: ToyDriver, tmp_path: Path, bad: object, error: type[ClaimError], text: str
) -> None:
    """One sentence that says what is wrong; no row, no effect, no file."""
    with pytest.raises(error, match=text.replace(".", r"\.")):
        place.prepare(bad)  # type: ignore[arg-type]  # a table of claims
    assert driver.prepared() == {}
    assert place.recover().rolled_back == ()
    assert not list((tmp_path / "cdi").glob("*"))


def test_a_missing_device_node_is_named_and_its_return_is_enough(tmp_path: Path) -> None:
    """The node of a device vanished; once it is back the next try succeeds without a restart."""
    driver = ToyDriver(tmp_path / "effects", paths={"toy-0": ("/dev/toy0", "/usr/lib/libtoy.so")})
    place = preparer(tmp_path, driver)
    (tmp_path / "dev").mkdir()
    (tmp_path / "usr/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/libtoy.so").symlink_to("/nowhere/libtoy.so.1")
    with pytest.raises(DeviceMissingError, match="device toy-0 needs /dev/toy0, which isn't there") as caught:
        place.prepare(claim("u1", "toy-0"))
    assert caught.value.hint
    assert driver.calls.count(("prepare", "u1")) == 0
    (tmp_path / "dev/toy0").touch()
    assert place.prepare(claim("u1", "toy-0")).uid == "u1"


def test_a_device_that_appears_later_is_discovered(place: Preparer, driver: ToyDriver) -> None:
    """An allocation may name a device that was plugged in after the last look."""
    place.offer()
    driver.devices.append("toy-new")
    assert place.prepare(claim("u1", "toy-new")).devices[0].device == "toy-new"


def test_parameters_apply_to_their_requests_and_the_claims_win(place: Preparer, driver: ToyDriver) -> None:
    """Those of the class come first; a request means all of its alternatives, and no request means all."""
    seen: dict[str, list[object]] = {}

    def look(what: str, given: ClaimDevices) -> None:
        for one in given.devices:
            seen[one.result.device] = [(found.value, found.index) for found in one.parameters]

    driver.hook = look
    config = [
        ("FromClaim", ("big",), "claim, big"),
        ("FromClass", (), "class, all"),
        ("FromClaim", ("big/second",), "claim, other alternative"),
        ("FromClaim", ("big/first",), "claim, this alternative"),
    ]
    devices = [device("toy-0", request="big/first"), device("toy-1", request="small")]
    place.prepare(claim("u1", *devices, config=config))
    assert seen == {
        "toy-0": [("class, all", 1), ("claim, big", 0), ("claim, this alternative", 3)],
        "toy-1": [("class, all", 1)],
    }


def raise_(error: Exception) -> None:
    """For a lambda."""
    raise error


@pytest.mark.parametrize(
    ("error", "seen", "text"),
    [
        (ParametersError("interval `x` isn't known", where="config[0].opaque"), ParametersError, "config[0].opaque:"),
        (ValueError("bad\nvalue"), DriverFailedError, "failed to prepare the claim (ValueError: bad value)"),
        (OSError(5, "Input/output error"), DriverFailedError, "Input/output error"),
    ],
)
def test_what_a_driver_raises_is_told_and_undone(
    place: Preparer, driver: ToyDriver, error: Exception, seen: type[DrahtError], text: str
) -> None:
    """The half of the work that was done is undone, and the device is free for others."""
    driver.hook = lambda what, _claim: raise_(error) if what == "prepare" else None
    with pytest.raises(seen) as caught:
        place.prepare(claim("u1", "toy-0"))
    assert text in str(caught.value)
    assert driver.prepared() == {}
    driver.hook = lambda _what, _claim: None
    place.prepare(claim("u2", "toy-0"))


def test_what_is_prepared_needs_no_discovery(tmp_path: Path) -> None:
    """The failure is one sentence for what needs the devices, and no obstacle for what doesn't."""
    driver = ToyDriver(tmp_path / "effects")
    prepared = preparer(tmp_path, driver).prepare(claim("u1", "toy-0"))

    class Blind(ToyDriver):
        def discover(self) -> Offer:
            raise OSError(5, "Input/output error")

    blind = preparer(tmp_path, Blind(tmp_path / "effects"))
    assert blind.prepare(claim("u1", "toy-0")) == prepared
    assert blind.recover().kept == ("u1",)
    for action in (blind.offer, blind.refresh, lambda: blind.prepare(claim("u2", "toy-1"))):
        with pytest.raises(DriverFailedError, match="failed to discover its devices"):
            action()
    blind.unprepare("u1")
    assert driver.prepared() == {}


def test_a_row_that_cannot_be_read_is_one_sentence(place: Preparer) -> None:
    """As another version might leave it."""
    place.prepare(claim("u1", "toy-0"))
    with place.database.transaction() as tx:
        tx.connection.execute("UPDATE claims SET record = '{\"uid\": 3}'")
    for action in (place.prepared, place.recover, lambda: place.prepare(claim("u1", "toy-0"))):
        with pytest.raises(StateError, match="a claim that this draht can't read"):
            action()


class Careless(ToyDriver):
    """A driver whose answer is wrong."""

    answer: object = None

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Say it."""
        super().prepare(claim)
        return self.answer  # type: ignore[return-value]  # that is the point


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "answered NoneType"),
        (Prepared(edits={"toys/node-1/toy-7": cdi.ContainerEdits()}), "speaks of toys/node-1/toy-7"),
        (Prepared(edits={}, data={"toys/node-1/toy-0": object()}), "isn't JSON"),
        (Prepared(edits={}, files={"../x": (b"", 0o444)}), "can't be the name of a file"),
        (Prepared(edits={}, common=cdi.ContainerEdits(env=("nonsense",))), "nonsense"),
        (Prepared(edits={}, common=cdi.ContainerEdits(env=(3,))), "edits that a CDI spec can't say"),  # type: ignore[arg-type]  # that is the point
    ],
)
def test_a_wrong_answer_of_a_driver_is_refused(tmp_path: Path, answer: object, text: str) -> None:
    """Nothing of it reaches a container, and what it did is undone."""
    driver = Careless(tmp_path / "effects")
    driver.answer = answer
    with pytest.raises(DrahtError) as caught:
        preparer(tmp_path, driver).prepare(claim("u1", "toy-0"))
    assert text in str(caught.value)
    assert driver.prepared() == {}
    assert not list((tmp_path / "cdi").glob("*"))


def test_a_device_without_edits_still_brings_the_common_ones(tmp_path: Path) -> None:
    """A CDI device can't be empty; its metadata file keeps it from being so."""
    driver = Careless(tmp_path / "effects")
    driver.answer = Prepared(edits={}, common=cdi.ContainerEdits(env=("A=b",)))
    preparer(tmp_path, driver).prepare(claim("u1", "toy-0", "toy-1"))
    spec = spec_of(tmp_path, "u1")
    assert spec.container_edits.env == ("A=b",)
    assert all(one.container_edits.mounts for one in spec.devices)


def test_an_undo_that_fails_is_done_by_the_next_call(place: Preparer, driver: ToyDriver) -> None:
    """The device stays taken until then; the row says so."""
    driver.hook = lambda what, _claim: raise_(ValueError(what))
    with pytest.raises(DriverFailedError, match="failed to prepare"):
        place.prepare(claim("u1", "toy-0"))
    with pytest.raises(DrahtError, match="device toy-0 is being prepared for claim default/claim-u1"):
        place.prepare(claim("u2", "toy-0"))
    with pytest.raises(DriverFailedError, match="failed to unprepare"):
        place.unprepare("u1")
    driver.hook = lambda _what, _claim: None
    place.prepare(claim("u1", "toy-0"))
    place.unprepare("u1")
    place.prepare(claim("u2", "toy-0"))


def test_pools_other_than_the_nodes_have_their_own_name(tmp_path: Path) -> None:
    """A pool for all nodes, and a device of the same name in the node's own."""

    class Pools(ToyDriver):
        def discover(self) -> Offer:
            own = super().discover()
            far = tuple((Offered(device=one.device),) for one in own.devices().values())
            return Offer(pools=(*own.pools, Pool(name="far", groups=far, all_nodes=True)))

    place = preparer(tmp_path, Pools(tmp_path / "effects"))
    answer = place.prepare(claim("u1", "toy-0", device("toy-0", pool="far", request="far")))
    assert [one.pool for one in answer.devices] == [NODE, "far"]
    place.prepare(claim("u2", "toy-1"))


def test_network_data_reaches_status_and_metadata(place: Preparer, tmp_path: Path) -> None:
    """Addresses are told to the API server and to the container alike."""
    answer = place.prepare(claim("u1", "nic-0"))
    assert answer.status[0].network_data == NetworkDeviceData(interface_name="nic-0")
    text = (tmp_path / "metadata/toy.example.com/u1/toys.json").read_text()
    first, _ = json.JSONDecoder().raw_decode(text)
    assert first["requests"][0]["devices"][0]["networkData"] == {"interfaceName": "nic-0"}


@pytest.mark.parametrize(("highest", "noted"), [(None, True), ("0.6.0", True), ("0.5.0", False)])
def test_a_spec_suits_the_runtime(tmp_path: Path, highest: str | None, noted: bool) -> None:
    """An older runtime gets what it can read; it has no annotations before CDI 0.6.0."""
    preparer(tmp_path, cdi_version=highest).prepare(claim("u1", "toy-0"))
    spec = spec_of(tmp_path, "u1")
    assert cdi.VERSIONS.index(spec.cdi_version) <= cdi.VERSIONS.index(highest or cdi.VERSIONS[-1])
    assert bool(spec.annotations) == noted


def test_a_runtime_that_is_too_old_is_an_error_and_undone(tmp_path: Path) -> None:
    """A node with a host path is needed, and names that begin with a digit: CDI 0.5.0."""
    driver = ToyDriver(tmp_path / "effects")
    with pytest.raises(cdi.LoweringError):
        preparer(tmp_path, driver, cdi_version="0.3.0").prepare(claim("1", "toy-0"))
    assert driver.prepared() == {}


def test_a_call_that_never_ends_is_not_waited_for_for_ever(place: Preparer, driver: ToyDriver, tmp_path: Path) -> None:
    """Another agent is stuck in the claim: the kubelet gets an answer within its deadline, and other claims go on."""
    impatient = preparer(tmp_path, ToyDriver(tmp_path / "effects"), lock_seconds=0.05)

    def meanwhile(what: str, _claim: ClaimDevices) -> None:
        if what == "prepare":
            with pytest.raises(ClaimBusyError, match="another call works on claim u1"):
                impatient.prepare(claim("u1", "toy-0"))
            impatient.prepare(claim("u2", "toy-1"))
            assert impatient.recover().rolled_back == ()

    driver.hook = meanwhile
    place.prepare(claim("u1", "toy-0"))
