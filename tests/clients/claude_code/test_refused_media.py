"""What Claude Code leaves out behind a refusal is not counted, and gives nothing else its place."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.e2e.claude_code.attached import image_file, pasted, queued
from tests.e2e.claude_code.left_out import BUDGET, IMAGE, left_out
from tests.support.transcript import Line, Transcript, call, dump, text

MOST = 20
BAD = "messages.{}.content.{}.image.source.url: Unable to download the file. Please verify the URL and try again."


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below `.claude` is what the client finds by itself."""
    monkeypatch.setenv("HOME", str(tmp_path))


def _begun() -> Transcript:
    return Transcript(start=int(time.time() * 1000) - 120_000)


def _repaired(run: Run, made: Transcript, home: Path) -> tuple[bytes, bytes]:
    """The file before and after `scan --repair`."""
    path = made.write(home / ".claude" / "projects")
    os.utime(path, (time.time() - 60,) * 2)
    before = path.read_bytes()
    run("scan", "--repair", "--yes")
    return before, path.read_bytes()


def _prompts(t: Transcript) -> None:
    t.user([text("more"), *map(pasted, range(MOST, MOST + 4))])


def _given(t: Transcript) -> None:
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1", [text("out"), *map(pasted, range(MOST, MOST + 4))])


def _attached(t: Transcript) -> None:
    t.user("look")
    for number in range(MOST, MOST + 4):
        image_file(t, number)


def _queued(t: Transcript) -> None:
    t.assistant(text("a"), call(call_id="t1"))
    t.result("t1")
    queued(t, *map(pasted, range(MOST, MOST + 4)))


@pytest.mark.parametrize("words", [IMAGE, BUDGET])
@pytest.mark.parametrize(("put", "sent"), [(_prompts, 22), (_given, 22), (_attached, 25), (_queued, 22)])
def test_no_image_more_than_needed_is_taken_where_some_are_left_out(
    run: Run, tmp_path: Path, put: Callable[[Transcript], object], sent: int, words: str
) -> None:
    """Not all 26 are sent (of files that are attached, the last one's is left out): so many go fewer."""
    made = _begun()
    for number in range(MOST + 2):
        made.user([text(f"image {number}"), pasted(number + 40)])
        made.assistant(text("seen"))
    put(made)
    left_out(made, words)
    made.user("go on")
    made.refused(f"too many images and documents: {sent} + 0 > {MOST}")
    before, after = _repaired(run, made, tmp_path)
    assert after.count(b" was taken out: ") - before.count(b" was taken out: ") == sent - MOST


def _url(name: str) -> Line:
    return {"type": "image", "source": {"type": "url", "url": f"http://127.0.0.1:9/{name}.png"}}


@pytest.mark.parametrize("alone", [False, True])
def test_a_place_is_counted_without_what_is_left_out(run: Run, tmp_path: Path, alone: bool) -> None:
    """The refused prompt and the next are one message: an image of the first was meant, or either."""
    made = _begun()
    made.user("hello")
    made.assistant(text("hi"))
    made.user([_url("sound")] if alone else [text("see"), _url("sound")])
    left_out(made, IMAGE)
    made.user([text("and this"), _url("bad")])
    made.refused(BAD.format(2, 1 if alone else 2))
    before, after = _repaired(run, made, tmp_path)
    assert before.count(_source("sound")) == after.count(_source("sound")) == 1
    assert (before.count(_source("bad")), after.count(_source("bad"))) == (1, 0)


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("of_url", [False, True])
def test_what_is_left_out_by_the_refusal_itself_leaves_no_sound_one_to_blame(
    run: Run, tmp_path: Path, of_url: bool, distinct: bool
) -> None:
    """It names no place, and the only image that is sent from now on was sent, and answered, before."""
    made = _begun()
    made.user([text("see"), _url("sound")])
    made.assistant(text("seen"))
    made.user([text("and this"), _url("bad") if of_url else pasted(3)])
    left_out(made, IMAGE, distinct=distinct)
    before, after = _repaired(run, made, tmp_path)
    assert before == after


def _source(name: str) -> bytes:
    return dump(_url(name)).strip()
