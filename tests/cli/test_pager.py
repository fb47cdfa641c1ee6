"""Long output in a terminal goes through the pager; all else is printed as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.terminal import Shown, in_terminal
from tests.support.trees import Tree


@pytest.fixture
def pager(tree: Tree, tmp_path: Path) -> str:
    """One that marks what goes through it."""
    made = tmp_path / "the pager"
    made.write_text("#!/bin/sh\nsed 's/^/|/'\n")
    made.chmod(0o755)
    return f"'{made}'"


def shown(*words: str, pager: str, typed: str | None = "", whole: bool = True) -> Shown:
    return in_terminal(*words, typed=typed, whole=whole, PAGER=pager)


def test_what_does_not_fit_is_paged(pager: str) -> None:
    paged = shown("config", "show", pager=pager)
    assert paged.code == 0 and {line[:1] for line in paged.text.splitlines()} == {"|"}
    plain = shown("config", "show", pager="cat").text
    assert [line.removeprefix("|") for line in paged.text.splitlines()] == plain.splitlines()


def test_what_fits_is_not_nor_without_a_terminal_or_a_reader(pager: str) -> None:
    assert "|" not in shown("config", "path", pager=pager).text
    assert "|" not in shown("status", pager=pager).text
    assert "\n|" not in shown("config", "show", pager=pager, whole=False).out
    assert "\n|" not in shown("config", "show", pager=pager, typed=None).text
    assert "\n|" not in shown("config", "show", "--json", pager=pager).text


@pytest.mark.parametrize("broken", ["/no/where", "it's", "", "false", "sh -c 'exec no-such-pager'"])
def test_a_pager_that_can_not_be_run_or_fails_is_done_without(tree: Tree, broken: str) -> None:
    done = shown("config", "show", pager=broken)
    assert done.code == 0 and done.text.count("max_retries") == 1


def test_a_pager_that_is_left_early_is_no_error(pager: str) -> None:
    done = shown("config", "show", pager="head -n 1")
    assert done.code == 0 and "Traceback" not in done.text and len(done.text.splitlines()) == 1
