"""The release script: what becomes of the changelog, and what it refuses before anything is done."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci" / "release"
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n- This.\n\n## [0.1.0] - 2026-01-31\n\n### Added\n- That.\n"
EMPTY = CHANGELOG.replace("### Added\n- This.\n\n", "")


def _script() -> ModuleType:
    loader = SourceFileLoader("release", str(SCRIPT))
    spec = spec_from_loader("release", loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


release = _script()


def test_what_is_unreleased_gets_a_version_and_a_date() -> None:
    assert release.released(CHANGELOG, "0.2.0", "2026-11-22") == (
        "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n\n### Added\n- This.\n\n"
        "## [0.1.0] - 2026-01-31\n\n### Added\n- That.\n"
    )


@pytest.mark.parametrize("text", [EMPTY, EMPTY.replace("]\n\n## [0.1", "]\n\n### Added\n\n## [0.1"), "# Changelog\n"])
def test_without_an_entry_there_is_no_release(text: str) -> None:
    with pytest.raises(release.RefusedError, match=r"CHANGELOG\.md"):
        release.released(text, "0.2.0", "2026-11-22")


def test_a_second_release_needs_something_new() -> None:
    with pytest.raises(release.RefusedError, match="tells nothing under Unreleased"):
        release.released(release.released(CHANGELOG, "0.2.0", "2026-11-22"), "0.3.0", "2026-11-23")


def _git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org")
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with what the script reads, all of it committed."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "recoveryd" / "core").mkdir(parents=True)
    shutil.copy(SCRIPT, tmp_path / ".ci" / "release")
    (tmp_path / "recoveryd" / "core" / "version.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "--all")
    _git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


@pytest.mark.parametrize(
    ("version", "changed", "tag", "reason"),
    [
        ("0.2.0", "what is not committed", "", "the working tree has changes"),
        ("0.2.0", "", "v0.2.0", "the tag v0.2.0 exists already"),
        ("0.0.9", "", "", "0.0.9 is less than 0.1.0"),
        ("two", "", "", "two is no version"),
    ],
)
def test_what_is_refused_leaves_all_as_it_was(clone: Path, version: str, changed: str, tag: str, reason: str) -> None:
    if changed:
        (clone / "new.txt").write_text(changed)
    if tag:
        _git(clone, "tag", tag)
    before = _git(clone, "log", "--oneline"), _git(clone, "tag"), _git(clone, "status", "--short")
    done = subprocess.run(
        [sys.executable, str(clone / ".ci" / "release"), version, "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"No release: {reason}" in done.stderr
    assert (_git(clone, "log", "--oneline"), _git(clone, "tag"), _git(clone, "status", "--short")) == before


def test_an_empty_unreleased_is_refused_by_the_script(clone: Path) -> None:
    (clone / "CHANGELOG.md").write_text(EMPTY)
    _git(clone, "commit", "--quiet", "--all", "--message", "Nothing new")
    with pytest.raises(release.RefusedError, match="tells nothing under Unreleased"):
        release.check(clone, "0.2.0")
