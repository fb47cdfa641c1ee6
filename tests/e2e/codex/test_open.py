"""A thread healed while a server of the client has it open: nothing is lost, and a reload takes the heal up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.codex.healing import watching
from tests.e2e.codex.pictures import png
from tests.e2e.codex.provider import call
from tests.e2e.codex.shapes import REFUSED_PICTURE, STUCK
from tests.e2e.codex.world import running
from tests.e2e.install import UnavailableError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LATER = [f"later prompt {number}" for number in range(10)]


def test_a_heal_under_a_server_loses_none_of_ten_later_turns(tmp_path: Path) -> None:
    try:
        with running(tmp_path / "client") as world, watching(tmp_path / "daemon", world) as daemon:
            planted = world.plant(STUCK["reasoning-garbled"])
            with world.codex.server() as server:
                server.call("thread/resume", threadId=planted.thread)
                assert server.turn(planted.thread, "the prompt that is refused")["status"] == "failed"
                entries = daemon.wait_settled([planted.thread])[planted.thread]
                assert [entry["outcome"] for entry in entries] == ["healed"]
                turns = [server.turn(planted.thread, words) for words in LATER]
                reopen = f"`CODEX_HOME={world.codex.home} codex resume {planted.thread}`"
                assert reopen in " ".join(daemon.run("scan").stdout.split())
            assert {turn["status"] for turn in turns} == {"failed"}, "it has the old history in memory"

            assert planted.path.stat().st_ino == planted.inode
            turn = world.prompt(planted, "after the reload")
            assert turn.error is None, turn
            asked = world.asked(planted)[-1]
            said = [
                part["text"] for item in asked.body["input"] for part in item.get("content") or () if "text" in part
            ]
            assert [text for text in said if text in LATER] == LATER
            with world.codex.server() as server:
                read = str(server.read(planted.thread))
            assert all(words in read for words in LATER)
            # Nor does the last refusal, if the server ended before it was looked at.
            outcomes = [entry["outcome"] for entry in daemon.by_session()[planted.thread]]
            assert outcomes == ["healed"], "no later refusal counts against it"
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_a_refused_fork_goes_on_once_the_thread_that_it_was_made_from_is_healed(tmp_path: Path) -> None:
    try:
        with running(tmp_path / "client") as world, watching(tmp_path / "daemon", world) as daemon:
            planted = world.plant(STUCK["reasoning-garbled"])
            with world.codex.server() as server:
                fork = str(server.call("thread/fork", threadId=planted.thread)["thread"]["id"])
                assert server.turn(fork, "the prompt that is refused")["status"] == "failed"
            [entry] = daemon.wait_settled([fork])[fork]
            reopen = f"`CODEX_HOME={world.codex.home} codex resume {planted.thread}`"
            assert entry["outcome"] == "refused" and reopen in entry["detail"]
            assert world.prompt(planted).error is not None
            [entry] = daemon.wait_settled([planted.thread])[planted.thread]
            assert entry["outcome"] == "healed"
            with world.codex.server() as server:
                server.call("thread/resume", threadId=fork)
                assert server.turn(fork, "after that")["status"] == "completed"
            assert "none is stuck" in daemon.run("scan").stdout
    except UnavailableError as reason:
        pytest.skip(str(reason))


def test_what_a_reviewer_is_refused_takes_nothing_out_of_the_thread_that_asked_for_the_review(tmp_path: Path) -> None:
    """Both have the error. The reviewer's own thread is healed; the other one has three sound images, which stay."""
    try:
        with running(tmp_path / "client") as world, watching(tmp_path / "daemon", world) as daemon:
            codex, provider = world.codex, world.provider
            for name in ("one", "two", "three"):
                (codex.directory / f"{name}.png").write_bytes(png(4, 4, noise=len(name)))
            (codex.directory / "bad.png").write_bytes(REFUSED_PICTURE)
            shown = (part for name in ("one", "two", "three") for part in ("-i", f"{name}.png"))
            thread = codex.exec("look", *shown, "--").thread
            before, asked = codex.rollout(thread).read_bytes(), len(provider.asked(thread))
            assert before.count(b"data:image/png") == 3
            provider.script("").append([call("view_image", path=str(codex.directory / "bad.png"))])
            with codex.server() as server:
                server.call("thread/resume", threadId=thread)
                target = {"type": "custom", "instructions": "look at bad.png"}
                server.call("review/start", threadId=thread, target=target, delivery="inline")
                server.wait("turn/completed")
            assert b'"error":{' in codex.rollout(thread).read_bytes()
            assert len(provider.asked(thread)) == asked, "another thread asked"
            daemon.wait(lambda: bool(daemon.history()), "nothing was healed")
            [entry] = daemon.history()
            assert (entry["kind"], entry["outcome"]) == ("media_rejected", "healed") and entry["session"] != thread
            assert "none is stuck" in daemon.run("scan").stdout
            assert codex.rollout(thread).read_bytes().startswith(before)
            assert codex.resume(thread, "go on").error is None
    except UnavailableError as reason:
        pytest.skip(str(reason))
