"""The list of tested versions, and what the canary makes of a test that fails on a new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recoveryd.clients.opencode.versions import TESTED, version_text
from tests import canary
from tests.e2e.install import UnavailableError


@pytest.mark.parametrize(
    ("version", "after"),
    [
        ("1.18.34", ["1.1.53", "1.2.1", "1.18.34"]),
        ("1.18.9", ["1.1.53", "1.2.1", "1.18.33"]),
        ("1.19.0", ["1.1.53", "1.2.1", "1.18.33", "1.19.0"]),
    ],
)
def test_a_version_takes_the_place_of_an_older_one_of_its_line(version: str, after: list[str]) -> None:
    assert canary.merged(["1.1.53", "1.2.1", "1.18.33"], version) == after


def test_of_a_client_whose_every_version_is_a_line_the_newest_alone_is_kept() -> None:
    assert canary.merged(["0.169.0"], "0.170.0", canary.CLIENTS["codex"].line) == ["0.170.0"]


def test_what_is_written_is_what_doctor_reads_and_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = list(map(version_text, TESTED))
    page = f"Clients: tested on {canary.listed(versions)}. Linux."
    assert page.removeprefix("Clients: ").removesuffix(" Linux.") in canary.README.read_text(encoding="utf-8")
    for name, text in (("TESTED", canary.TESTED.read_text(encoding="utf-8")), ("README", page)):
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.setattr(canary, name, tmp_path / name)
    canary.write("opencode", "9.1.2")
    assert json.loads((tmp_path / "TESTED").read_text())["opencode"] == [*versions, "9.1.2"]
    assert (tmp_path / "README").read_text() == f"Clients: tested on {', '.join(versions)} and 9.1.2. Linux."


@pytest.mark.live
def test_a_test_that_fails_is_told_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test = tmp_path / "test_new.py"
    test.write_text("import os\ndef test_it():\n assert os.environ['TEST_RECOVERYD_VERSIONS'] == 'old'\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-n0 -p no:cacheprovider")
    monkeypatch.setitem(canary.CLIENTS, "opencode", canary.Client(lambda: "9.9.9", Path, (str(test),)))
    monkeypatch.setattr(canary, "write", lambda *_: pytest.fail("it was written"))
    assert canary.main(["opencode", "--write"]) == 1
    said = capsys.readouterr().out
    assert "opencode 9.9.9: it differs:\n  test_it: AssertionError: assert '9.9.9' == 'old'" in said


def test_a_client_that_cannot_be_had_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone() -> str:
        raise UnavailableError("npm is missing")

    monkeypatch.setitem(canary.CLIENTS, "opencode", canary.Client(gone, Path, ()))
    assert canary.main(["opencode"]) == 2
    assert "npm is missing" in capsys.readouterr().out
