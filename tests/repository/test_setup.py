"""The set-up: what is missing is named before it is installed, failures are one sentence, nothing is done twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import buildcache
import debian
import environment
import gotoolchain
import setup
from failure import SetupError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty build cache."""
    monkeypatch.setenv("DRAHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def executable(path: Path, script: str) -> Path:
    """A program that does what a shell script says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


class TestBuildCache:
    def test_an_entry_is_built_once_for_many(self, cache: Path) -> None:
        """Builders that start at the same time wait for one of them and share what it built."""
        built: list[Path] = []
        started = threading.Barrier(4)

        def build(directory: Path) -> None:
            built.append(directory)
            (directory / "program").write_text("x")

        def want() -> None:
            started.wait()
            assert (buildcache.entry("thing", "key", build) / "program").read_text() == "x"

        threads = [threading.Thread(target=want) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(built) == 1

    def test_a_failed_build_leaves_no_entry(self, cache: Path) -> None:
        """What a build left when it failed is never taken for the result."""

        def fail(directory: Path) -> None:
            (directory / "half").write_text("x")
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            buildcache.entry("thing", "key", fail)
        assert [path.name for path in (cache / "thing").iterdir()] == [".lock"]
        assert list(buildcache.entry("thing", "key", lambda directory: None).iterdir()) == []

    def test_the_entries_used_last_stay(self, cache: Path) -> None:
        """Old entries go when new ones come, the one that was just asked for never."""
        for number in range(5):
            made = buildcache.entry("thing", f"key{number}", lambda directory: None, keep=3)
            os.utime(made, (number, number))
        kept = buildcache.entry("thing", "key5", lambda directory: None, keep=3)
        assert kept.is_dir()
        assert sorted(path.name for path in (cache / "thing").glob("key*")) == ["key3", "key4", "key5"]

    def test_a_digest_knows_names_contents_and_more(self, tmp_path: Path) -> None:
        """Renaming a file, changing it or changing a flag gives another key; the order of paths doesn't."""
        one, two = tmp_path / "one", tmp_path / "two"
        one.write_text("1")
        two.write_text("2")
        key = buildcache.digest([one, two])
        assert key == buildcache.digest([two, one])
        assert key != buildcache.digest([one, two], "flag")
        renamed = one.rename(tmp_path / "three")
        assert key != buildcache.digest([renamed, two])
        two.write_text("3")
        assert buildcache.digest([renamed, two]) != buildcache.digest([renamed])

    def test_only_a_cache_of_its_own_is_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`make clean` deletes the directory that was made as a cache, and never somebody's own that was given."""
        monkeypatch.setattr(sys, "argv", ["buildcache.py", "clean"])
        own, given = tmp_path / "own", tmp_path / "given"
        given.mkdir()
        (given / "precious").touch()
        for place in (own, given):
            monkeypatch.setenv("DRAHT_CACHE", str(place))
            buildcache.entry("thing", "key", lambda directory: None)
            buildcache.main()
        assert not own.exists()
        assert (given / "precious").exists()


class TestGoToolchain:
    @pytest.mark.parametrize(
        ("directives", "needed"),
        [(["go 1.26.0"], (1, 26, 0)), (["go 1.9", "go 1.26", "go 1.25.7"], (1, 26)), (["// go 9.9"], (1, 0))],
    )
    def test_the_highest_go_directive_counts(self, tmp_path: Path, directives: list[str], needed: tuple[int]) -> None:
        """Versions are compared as numbers, over all modules."""
        modules = [tmp_path / str(number) for number in range(len(directives))]
        for module, directive in zip(modules, directives, strict=True):
            module.mkdir()
            (module / "go.mod").write_text(f"module x\n\n{directive}\n")
        assert gotoolchain.required_version(modules) == needed

    def test_a_go_that_is_too_old_is_passed_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The system's go is used if it is new enough, else the environment's."""
        old = executable(tmp_path / "system" / "go", "echo go1.19.8")
        new = executable(tmp_path / "venv" / "bin" / "go", "echo go1.99.1")
        monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
        monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
        monkeypatch.setattr(gotoolchain, "__file__", str(tmp_path / "checkout" / "tools" / "gotoolchain.py"))
        assert gotoolchain.find((1, 18)) == old
        assert gotoolchain.find((1, 26)) == new
        with pytest.raises(
            gotoolchain.GoMissingError, match=r"no Go toolchain ≥ 2\.0 .*go is 1\.19\.8.*go is 1\.99\.1"
        ):
            gotoolchain.find((2, 0))

    def test_a_go_that_does_not_run_is_passed_over(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A wrapper without a toolchain behind it is named as broken."""
        broken = executable(tmp_path / "go", "exit 1")
        monkeypatch.setenv("PATH", f"{broken.parent}:/usr/bin:/bin")
        monkeypatch.setattr(sys, "prefix", str(tmp_path))
        monkeypatch.setattr(gotoolchain, "__file__", str(tmp_path / "checkout" / "tools" / "gotoolchain.py"))
        with pytest.raises(gotoolchain.GoMissingError, match="go is broken"):
            gotoolchain.find((1, 0))


class TestDebianPackages:
    @pytest.fixture(autouse=True)
    def something_is_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        """A package that appears when the stand-in for apt-get is told to install it."""
        installed = tmp_path / "installed"
        package = debian.Package("libthing-dev", "builds the thing", installed.exists)
        monkeypatch.setattr(debian, "NEEDS", {"thing": (package,), "again": (package,)})
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
        return installed

    def test_packages_are_named_before_they_are_installed(
        self, tmp_path: Path, something_is_missing: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The person reads what will be installed and why; each package once; nothing the second time."""
        executable(tmp_path / "bin" / "apt-get", f'echo "$@" >> {tmp_path}/calls; touch {something_is_missing}')
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        said: list[str] = []
        debian.ensure(["thing", "again"], said.append)
        assert said == ["Debian package libthing-dev: missing, builds the thing; installing it"]
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[0].startswith("update")
        assert calls[1].startswith("install -y")
        assert calls[1].endswith(" libthing-dev")
        debian.ensure(["thing", "again"], said.append)
        assert len(said) == 1

    def test_a_failing_update_does_not_matter_a_failing_install_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A broken third-party source doesn't stop the set-up; what apt-get said about the package is shown."""
        executable(tmp_path / "bin" / "apt-get", 'echo "E: no $1" >&2; exit 100')
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(SetupError, match="E: no install"):
            debian.ensure(["thing"], lambda line: None)

    def test_without_root_and_sudo_there_is_a_hint(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody who can't install packages learns what would help."""
        executable(tmp_path / "bin" / "apt-get", "exit 0")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(SetupError, match="needs root") as error:
            debian.ensure(["thing"], lambda line: None)
        assert "sudo" in error.value.hint

    def test_sudo_is_used_by_others(
        self, tmp_path: Path, something_is_missing: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who isn't root installs with sudo, which doesn't ask when nobody is there to answer."""
        executable(tmp_path / "bin" / "apt-get", f"touch {something_is_missing}")
        executable(tmp_path / "bin" / "sudo", f'echo "$@" >> {tmp_path}/calls; shift; exec "$@"')
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        debian.ensure(["thing"], lambda line: None)
        assert (tmp_path / "calls").read_text().startswith("--non-interactive apt-get update")

    def test_elsewhere_the_packages_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """On a system without apt-get the person learns what to install."""
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        with pytest.raises(SetupError, match="not found: libthing-dev"):
            debian.ensure(["thing"], lambda line: None)


def test_every_target_that_sets_up_is_known() -> None:
    """Each ``setup-TARGET`` that the Makefile asks for is one that tools/setup.py has, and the other way round."""
    asked = set(re.findall(r"\bsetup-([a-z]+)", (ROOT / "Makefile").read_text()))
    assert asked == set(setup.PARTS)


def test_an_unknown_target_is_one_line() -> None:
    """A mistyped target says what there is."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "setup.py", "tset"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("usage: ")
    assert done.stderr.count("\n") == 1


def test_a_broken_package_index_is_a_sentence_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the installer said about the failure comes with a hint, not with a traceback."""
    python = executable(tmp_path / "bin" / "python", 'case "$*" in *install*) echo "no index" >&2; exit 1;; esac')
    monkeypatch.setattr(environment, "PYTHON", python)
    monkeypatch.setattr(environment, "_has_uv", lambda: False)
    with pytest.raises(SetupError, match="installing Python packages failed:\nno index") as error:
        environment.add_go(lambda line: None)
    assert "make clean" in error.value.hint
