"""Why a device can't be resolved: each cause is found, and the step that is given really removes it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from cdi_command import run
from cdi_corpus import CORPUS, CorpusHost
from draht import cdi
from draht.cdi.suggestions import near_names

SMALL = CORPUS / "valid" / "nvidia-small.yaml"
UUID = "GPU-133cc9e2-1ed9-5f67-89a5-88f646873531"


class Machine:
    """Two spec directories, a host, and the questions about them."""

    def __init__(self, root: Path) -> None:
        self.etc = root / "etc"
        self.run = root / "run"
        self.etc.mkdir()
        self.run.mkdir()
        self.other = root / "other"
        self.host = CorpusHost()
        self.directories = [self.etc, self.run]

    def cache(self) -> cdi.Cache:
        return cdi.Cache(self.directories, host=self.host)

    def put(self, file: str, target: Path) -> Path:
        target.parent.mkdir(exist_ok=True)
        shutil.copy(CORPUS / file, target)
        return target

    def ask(self, *names: str) -> cdi.Diagnosis:
        return cdi.explain_unresolvable(self.cache(), names, others=[str(self.other)])

    def first(self, name: str) -> cdi.Finding:
        """The most likely cause, which is in the error and in the lines too."""
        diagnosis = self.ask(name)
        (known,) = diagnosis.names
        assert not known.resolvable
        finding = known.findings[0]
        assert diagnosis.next_step == finding.next_step
        assert finding.message in str(diagnosis.error())
        assert diagnosis.error().hint == finding.next_step
        assert f"  {finding.message}" in diagnosis.lines()
        return finding

    def resolves(self, name: str) -> bool:
        """Whether it can be injected now, by the answer and in truth."""
        known = self.ask(name).names[0]
        oci: dict[str, object] = {}
        try:
            self.cache().inject(oci, [name])
        except cdi.InjectionError:
            assert not known.resolvable
            return False
        assert known.resolvable
        assert known.findings == ()
        return True


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without any spec."""
    return Machine(tmp_path)


def _command(step: str) -> list[str]:
    """The command of a step that ends with one: ``…: chmod a+r PATH``."""
    found = re.search(r"(?:as with: |everybody read it: |remove it: )(.+)$", step)
    assert found is not None, step
    return shlex.split(found[1])


def test_a_resolvable_name_needs_no_explanation(machine: Machine) -> None:
    """A name that can be injected has no findings, and the diagnosis says so."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    assert machine.resolves("nvidia.com/gpu=0")
    diagnosis = machine.ask("nvidia.com/gpu=0")
    assert diagnosis.unresolvable == ()
    assert diagnosis.next_step is None
    assert diagnosis.lines()[0] == "nvidia.com/gpu=0: can be injected"


def test_no_directories(machine: Machine) -> None:
    """Where no spec directory exists, it says so and names the vendor's generator; a spec written there resolves."""
    machine.etc.rmdir()
    machine.run.rmdir()
    finding = machine.first("nvidia.com/gpu=all")
    assert finding.cause == "no-specs"
    assert f"{machine.etc} and {machine.run} do not exist" in finding.message
    assert "nvidia-ctk cdi generate" in finding.next_step
    assert [report.state for report in machine.ask("nvidia.com/gpu=all").directories] == ["missing", "missing"]
    machine.put("valid/nvidia-small.yaml", machine.run / "nvidia.yaml")
    assert machine.resolves("nvidia.com/gpu=all")


def test_empty_directories(machine: Machine) -> None:
    """Directories without specs are told from missing ones; AMD's generator is named for AMD's kind."""
    finding = machine.first("amd.com/gpu=0")
    assert finding.cause == "no-specs"
    assert finding.message == f"there is no usable spec in {machine.etc} and {machine.run}"
    assert "amd-ctk cdi generate" in finding.next_step
    machine.put("valid/amd-mi300x.json", machine.run / "amd.json")
    assert machine.resolves("amd.com/gpu=0")


def test_a_broken_file_of_the_kind(machine: Machine) -> None:
    """The file, the line and the mistake are named, and mending it as the hint says resolves the name."""
    path = machine.put("broken/unknown-key.yaml", machine.etc / "nvidia.yaml")
    machine.put("valid/intel-npu.yaml", machine.etc / "npu.yaml")
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "broken-file"
    assert finding.paths == (str(path),)
    assert f"{path} is of this kind and can't be used: 22:11: there is no field 'hostpath'" in finding.message
    assert "it is spelled hostPath" in finding.next_step
    path.write_text(path.read_text().replace("hostpath", "hostPath"))
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_broken_file_that_explains_everything_is_the_only_reason(machine: Machine) -> None:
    """That the kind isn't offered is no second reason where the file that should offer it is broken."""
    machine.put("broken/unknown-key.yaml", machine.etc / "nvidia.yaml")
    machine.put("valid/intel-npu.yaml", machine.etc / "npu.yaml")
    assert [each.cause for each in machine.ask("nvidia.com/gpu=0").names[0].findings] == ["broken-file"]


def test_a_broken_file_that_does_not_mention_the_device_comes_last(machine: Machine) -> None:
    """A broken file of the kind is less likely the reason if the device isn't in it, and is shown nevertheless."""
    machine.put("broken/unknown-key.yaml", machine.etc / "broken.yaml")
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    causes = [finding.cause for finding in machine.ask("nvidia.com/gpu=77").names[0].findings]
    assert causes == ["unknown-device", "broken-file"]


def test_a_version_that_is_too_low(machine: Machine) -> None:
    """The file that said 0.4.0 and used more: the hint's version makes it valid."""
    path = machine.put("broken/nvidia-0.4.0-hostpath.yaml", machine.etc / "nvidia.yaml")
    finding = machine.first("nvidia.com/gpu=all")
    assert finding.cause == "broken-file"
    assert "write cdiVersion: 0.5.0" in finding.next_step
    path.write_text(path.read_text().replace("cdiVersion: 0.4.0", "cdiVersion: 0.5.0"))
    assert machine.resolves("nvidia.com/gpu=all")


@pytest.mark.parametrize("file", ["log-lines-on-top.yaml", "truncated.yaml", "json-trailing-comma.json"])
def test_a_file_that_is_no_document(machine: Machine, file: str) -> None:
    """Even of a file that can't be parsed the kind is found, and writing it anew resolves the name."""
    path = machine.put(f"broken/{file}", machine.etc / file)
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "broken-file"
    assert finding.message.startswith(f"{path} is of this kind")
    assert "nvidia-ctk cdi generate" in finding.next_step
    shutil.copy(SMALL, path)
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_broken_file_of_another_kind_is_not_blamed(machine: Machine) -> None:
    """Somebody else's broken file is no reason; an empty one, whose kind nobody knows, may be."""
    machine.put("broken/rdt-enable-cmt.yaml", machine.etc / "rdt.yaml")
    assert [finding.cause for finding in machine.ask("nvidia.com/gpu=0").names[0].findings] == ["no-specs"]
    empty = machine.put("broken/empty.yaml", machine.etc / "nvidia.yaml")
    causes = [(finding.cause, finding.paths) for finding in machine.ask("nvidia.com/gpu=0").names[0].findings]
    assert causes == [("no-specs", ()), ("broken-file", (str(empty),))]


def test_a_device_without_edits(machine: Machine) -> None:
    """A device that changes nothing makes its whole file useless; giving it an edit brings all devices back."""
    path = machine.put("broken/device-without-edits.yaml", machine.etc / "nvidia.yaml")
    finding = machine.first("nvidia.com/gpu=all")
    assert finding.cause == "no-edits"
    assert "the device '0' changes nothing" in finding.message
    assert "at least one of env" in finding.next_step
    path.write_text(path.read_text().replace("containerEdits: {}", "containerEdits: {env: [A=b]}"))
    assert machine.resolves("nvidia.com/gpu=all")


def test_two_files_in_conflict(machine: Machine) -> None:
    """Both files are named, and removing one as the step says gives the device back."""
    one = machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    two = machine.put("valid/nvidia-nixos.json", machine.etc / "nvidia-container-toolkit.json")
    finding = machine.first("nvidia.com/gpu=all")
    assert finding.cause == "conflict"
    assert set(finding.paths) == {str(one), str(two)}
    subprocess.run(_command(finding.next_step), check=True)
    assert machine.resolves("nvidia.com/gpu=all")


def test_a_conflict_about_other_devices_is_not_blamed(machine: Machine) -> None:
    """For a name that none of the files in conflict defines, the reason is that nobody offers it."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    machine.put("valid/nvidia-nixos.json", machine.etc / "nvidia-container-toolkit.json")
    assert [each.cause for each in machine.ask("nvidia.com/gpu=7").names[0].findings] == ["unknown-device"]


def test_a_conflict_hides_a_clean_definition_of_another_directory(machine: Machine) -> None:
    """A name in conflict is gone even where /var/run/cdi defines it alone, and the answer still is the conflict."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "a.yaml")
    machine.put("valid/nvidia-small.yaml", machine.etc / "b.yaml")
    machine.put("valid/nvidia-small.yaml", machine.run / "c.yaml")
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "conflict"
    subprocess.run(_command(finding.next_step), check=True)
    assert machine.resolves("nvidia.com/gpu=0")


@pytest.mark.parametrize("name", ["nvidia.yml", "nvidia.YAML", "nvidia.yaml.bak", "my gpus;$(id).yml"])
def test_a_file_with_another_ending(machine: Machine, name: str) -> None:
    """A spec whose name doesn't end in .json or .yaml is found, and renaming it as the step says resolves the name."""
    machine.put("valid/nvidia-small.yaml", machine.etc / name)
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "ignored-file"
    subprocess.run(_command(finding.next_step), check=True)
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_backup_beside_the_file_is_no_likely_reason(machine: Machine) -> None:
    """Nobody is told to rename a backup, which would then be in conflict with the file that is read."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml.bak")
    first, second = machine.ask("nvidia.com/gpu=7").names[0].findings
    assert (first.cause, second.cause) == ("unknown-device", "ignored-file")
    assert second.next_step.startswith(f"compare it with {machine.etc}/nvidia.yaml, which is read; or generate it")


def test_temporary_files_and_other_kinds_are_not_blamed(machine: Machine) -> None:
    """A file that is being written, a README, and a spec of another kind with a wrong ending are no reasons."""
    machine.put("valid/nvidia-small.yaml", machine.etc / ".spec.1234.tmp")
    machine.put("valid/intel-npu.yaml", machine.etc / "npu.yml")
    (machine.etc / "README").write_text("specs of this host")
    assert [finding.cause for finding in machine.ask("nvidia.com/gpu=0").names[0].findings] == ["no-specs"]


def test_a_directory_in_a_spec_directory_is_no_reason(machine: Machine) -> None:
    """People keep old specs in a directory below; it isn't read, and in nobody's way."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "old" / "nvidia.yaml")
    (machine.etc / "old.yaml").mkdir()
    assert [finding.cause for finding in machine.ask("nvidia.com/gpu=0").names[0].findings] == ["no-specs"]
    listed = run("cdi", "dirs", "--dir", str(machine.etc))
    assert listed.lines[1].split() == [str(machine.etc), "read", "0", "0", "0"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_directory_that_cant_have_that_name(machine: Machine, name: str) -> None:
    """What no file system has as a name is a directory that can't be read."""
    machine.directories = [machine.etc / name]
    diagnosis = machine.ask("nvidia.com/gpu=0")
    assert diagnosis.names[0].findings[0].cause == "unreadable-directory"
    assert all(line.isprintable() and line.count("can't be read") <= 1 for line in diagnosis.lines())


def test_a_usual_directory_that_is_not_read(machine: Machine) -> None:
    """Where tools wrote to a directory that this cache doesn't read, it is named, and reading it resolves the name."""
    machine.put("valid/nvidia-small.yaml", machine.other / "nvidia.yaml")
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "elsewhere"
    setting = re.search(r"DRAHT_CDI_DIRS=(\S+) draht cdi devices", finding.next_step)
    assert setting is not None
    listed = run("cdi", "devices", environment={"DRAHT_CDI_DIRS": setting[1]})
    assert "nvidia.com/gpu=0" in listed.stdout
    assert setting[1].split(":")[:-1] == [str(machine.etc), str(machine.run)]
    machine.directories.append(machine.other)
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_link_to_nowhere(machine: Machine) -> None:
    """A broken symbolic link is called that; with the target there, the name resolves."""
    (machine.etc / "nvidia.yaml").symlink_to(machine.other / "nvidia.yaml")
    findings = {each.cause: each for each in machine.ask("nvidia.com/gpu=0").names[0].findings}
    assert "a symbolic link to nowhere" in findings["unreadable-file"].message
    machine.put("valid/nvidia-small.yaml", machine.other / "nvidia.yaml")
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_missing_host_node(machine: Machine) -> None:
    """A device that is defined but whose nodes are gone: file and nodes are named; with the node back it resolves."""
    path = machine.put("valid/nvidia-stale-render-node.yaml", machine.etc / "nvidia.yaml")
    machine.host = CorpusHost(missing=["/dev/dri/renderD129", "/dev/nvidia-uvm"])
    finding = machine.first("nvidia.com/gpu=0")
    assert finding.cause == "missing-node"
    assert finding.paths == (str(path), "/dev/nvidia-uvm", "/dev/dri/renderD129")
    assert "/dev/dri/renderD129 (no such file or directory)" in finding.message
    assert "load the driver" in finding.next_step
    assert "nvidia-ctk cdi generate" in finding.next_step
    assert not isinstance(machine.ask("nvidia.com/gpu=0").error(), cdi.UnresolvableDeviceError)
    machine.host = CorpusHost()
    assert machine.resolves("nvidia.com/gpu=0")


def test_a_regenerated_file_ends_the_trouble_with_missing_nodes(machine: Machine) -> None:
    """The other half of the step: a file with today's numbers resolves on the same host."""
    path = machine.put("valid/nvidia-stale-render-node.yaml", machine.etc / "nvidia.yaml")
    machine.host = CorpusHost(missing=["/dev/dri/renderD129"])
    assert not machine.resolves("nvidia.com/gpu=all")
    path.write_text(path.read_text().replace("renderD129", "renderD128"))
    assert machine.resolves("nvidia.com/gpu=all")


# name asked for, file of the corpus, words of the message, words of the step, name that the step says to use
_NAMES = [
    pytest.param(
        "nvidia.com/gpu=all", "nvidia-imex-channels.yaml", "no spec is of kind", "", None, id="kind-not-there"
    ),
    pytest.param(
        f"management.nvidia.com/gpu={UUID}",
        "nvidia-small.yaml",
        "no spec is of kind",
        "ask for",
        "first",
        id="management",
    ),
    pytest.param("management.nvidia.com/gpu=0", "nvidia-management.yaml", "only all", "=all", "all", id="only-all"),
    pytest.param(
        "k8s.device-plugin.nvidia.com/gpu=all", "nvidia-device-plugin.json", "all", "by name", None, id="no-all"
    ),
    pytest.param("nvidia.com/gpu=GPU-00000000", "nvidia-jetson-orin-csv.json", "no UUIDs", "", None, id="no-uuids"),
    pytest.param("nvidia.com/gpu=0", "nvidia-mig-h100.yaml", "partitioned", "=0:0", "0:0", id="partitioned"),
    pytest.param(
        "nvidia.com/gpu=0:5", "nvidia-mig-h100.yaml", "0:5", "partitions have changed", None, id="mig-changed"
    ),
    pytest.param("nvidia.com/gpu=0:0", "nvidia-small.yaml", "no GPU was partitioned", "generate", None, id="no-mig"),
    pytest.param("nvidia.com/gpu=gpu0", "nvidia-early-0.4.0.yaml", "", "", "gpu0", id="resolvable"),
    pytest.param("nvidia.com/gpu=0", "nvidia-early-0.4.0.yaml", "no index numbers", "=gpu0", "gpu0", id="type-index"),
    pytest.param(f"nvidia.com/gpu={UUID.upper()}", "nvidia-small.yaml", "", "ask for", "first", id="case"),
    pytest.param("nvidia.com/gpu=9", "nvidia-nvml-dgx-a100.yaml", "no device '9'", "ask for", None, id="ninth-gpu"),
    pytest.param(
        "runtime.nvidia.com/gpu=all", "nvidia-small.yaml", "never in a file", "nvidia.com/gpu=all", "all", id="jit"
    ),
]


@pytest.mark.parametrize(("name", "file", "words", "step", "instead"), _NAMES)
def test_a_name_that_the_specs_do_not_offer(
    machine: Machine, name: str, file: str, words: str, step: str, instead: str | None
) -> None:
    """What is different about the names on offer is said; where another name is suggested, that one resolves."""
    machine.put(f"valid/{file}", machine.etc / file)
    if instead == name.partition("=")[2]:
        assert machine.resolves(name) or "runtime." in name
        if "runtime." not in name:
            return
    finding = machine.first(name)
    assert finding.cause in {"unknown-device", "unknown-kind", "never-on-disk"}
    assert words in finding.message
    assert step in finding.next_step
    if instead is not None:
        found = re.search(
            r"(?:ask for|as) (?:one of its parts, as )?(?:one that is offered, as )?(\S+/\S+=[^\s;,]+)",
            finding.next_step,
        )
        assert found is not None, finding.next_step
        assert machine.resolves(found[1])


@pytest.mark.parametrize(
    ("name", "words", "near"),
    [
        ("all", "vendor/class=name", "nvidia.com/gpu=all"),
        ("nvidia.com/gpu", "nvidia.com/gpu=0", "nvidia.com/gpu=0"),
        ("nvidia.com/gpu:0", "nvidia.com/gpu=0", "nvidia.com/gpu=0"),
        ("gpu=0", "nvidia.com/gpu=0", "nvidia.com/gpu=0"),
        ("/dev/nvidia0", "--device", None),
        ("", "vendor/class=name", None),
    ],
)
def test_a_text_that_is_no_device_name(machine: Machine, name: str, words: str, near: str | None) -> None:
    """An unqualified name is explained and, where one can be told, the qualified one is suggested, which resolves."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    finding = machine.first(name)
    assert finding.cause == "not-qualified"
    if near is None:
        assert words in finding.next_step
        return
    assert finding.next_step == f"ask for {near}"
    assert machine.resolves(near)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("draht.dev/gpu=hold-1", "draht run"),
        ("k8s.gpu.nvidia.com/claim=gone-gpu-0", "the log of its DRA driver"),
        ("example.com/gpu=0", "by the vendor's tool"),
    ],
)
def test_who_writes_the_spec_is_said(machine: Machine, name: str, words: str) -> None:
    """For kinds that no command generates, the step names who does."""
    assert words in machine.first(name).next_step


def test_several_names_are_answered_each(machine: Machine) -> None:
    """A request of several names gives one answer per name, in order, and an error that lists the refused ones."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    diagnosis = machine.ask("nvidia.com/gpu=0", "nvidia.com/gpu=7", "amd.com/gpu=0", "nvidia.com/gpu=7")
    assert [name.resolvable for name in diagnosis.names] == [True, False, False]
    error = diagnosis.error()
    assert isinstance(error, cdi.UnresolvableDeviceError)
    assert error.names == ("nvidia.com/gpu=7", "amd.com/gpu=0")
    assert "\n" not in str(error)


def test_offers_are_bounded(machine: Machine) -> None:
    """Of thousands of devices the first are listed with the number of the rest, and the comparison stays bounded."""
    devices = tuple(
        cdi.Device(name=f"d{index:05}", container_edits=cdi.ContainerEdits(env=("A=b",))) for index in range(5000)
    )
    spec = cdi.Spec(kind="example.com/many", devices=devices)
    cdi.write_spec(spec, machine.etc, "many")
    (known,) = machine.ask("example.com/many=d99999").names
    assert len(known.offered) == 20
    assert known.offered_total == 5000
    assert len(known.near) <= 5
    assert any("and 4980 more" in line for line in machine.ask("example.com/many=d99999").lines())


def test_similar_names_come_in_order_of_likeness(machine: Machine) -> None:
    """The same device of a related kind comes before similar devices of the kind itself."""
    machine.put("valid/nvidia-small.yaml", machine.etc / "nvidia.yaml")
    machine.put("valid/amd-mi300x.json", machine.etc / "amd.json")
    wanted = cdi.parse_qualified_name("management.nvidia.com/gpu=0")
    assert near_names(machine.cache(), wanted, [])[:2] == ("nvidia.com/gpu=0", "amd.com/gpu=0")


def test_a_diagnosis_is_json(machine: Machine) -> None:
    """Programs get the same facts: it goes to JSON and back without loss."""
    machine.put("broken/truncated.yaml", machine.etc / "nvidia.yaml")
    diagnosis = machine.ask("nvidia.com/gpu=0", "gpu")
    assert msgspec.json.decode(msgspec.json.encode(diagnosis), type=cdi.Diagnosis) == diagnosis


def test_hardly_readable_names_do_not_break_the_lines(machine: Machine, nasty: str) -> None:
    """Names with control characters are shown escaped, one line each."""
    for line in machine.ask(nasty).lines():
        assert "\n" not in line
        assert line.isprintable()


@pytest.fixture(params=["a\nb", "nvidia.com/gpu=\x1b[31m", "\x00", "x" * 10_000])
def nasty(request: pytest.FixtureRequest) -> str:
    """A name that nobody would type."""
    value = request.param
    assert isinstance(value, str)
    return value
