"""A thread from its refusal to its repair and back, also while a client has it open."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

import recoveryd.daemon.daemon as daemon_module
from recoveryd.api import recover
from recoveryd.cli import main
from recoveryd.cli.findings import finding_of
from recoveryd.clients import Clients, Config, Whose, find_stores
from recoveryd.clients.codex import content
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.codex.wire import CodexWire
from recoveryd.clients.opencode import content as opencode_content
from recoveryd.core import Event, FormError, Kind, Outcome, RefusedError, failpoint
from recoveryd.core.diagnosis import Diagnosis
from recoveryd.diagnose import Case, Context, Next, Triage, diagnose
from recoveryd.diagnose.needs_user import NeedsUser
from recoveryd.doctor import Sources, bundle
from recoveryd.heal import Recovery, finish_interrupted, follow_moved, take_back
from recoveryd.ledger import Ledger
from recoveryd.settings import paths
from tests.crash_matrix.child import run
from tests.support.rollouts import NOT_VERIFIED, THREAD, Rollout, message, threads
from tests.support.running import running, until


class Place:
    """A home of Codex with one thread, and a state folder."""

    def __init__(self, folder: Path) -> None:
        self.rollout = Rollout(folder / ".codex", ms=int(time.time() * 1000) - 60_000)
        self.store: CodexThreads = threads(self.rollout.home)
        self.state = folder / "state"
        self.clients = Clients(Config())

    def heal(self) -> Event | None:
        self.rest()
        return recover(THREAD, Config(), state_dir=self.state, stores=[self.store])

    def verdict(self) -> Next:
        self.rest()
        with self.ledger() as ledger:
            config = Config()
            context = Context(ledger, config, self.state, clients=self.clients)
            return Triage(context, lambda *_: None).judge(self.store, THREAD).next

    def diagnosis(self) -> Diagnosis | None:
        with self.ledger() as ledger:
            return diagnose(Context(ledger, Config(), self.state), self.store, THREAD)

    def ledger(self) -> Ledger:
        return Ledger(paths.ledger_file(self.state))

    def rest(self) -> None:
        """Nobody has written to it for a while."""
        old = time.time() - 5
        os.utime(self.rollout.path, (old, old))


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below `.codex` is what the client finds by itself."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_refused_thread_heals_in_place_and_undo_gives_back_every_byte(place: Place) -> None:
    place.rollout.stuck()
    before, status = place.rollout.bytes(), place.rollout.path.stat()
    event = place.heal()
    assert event is not None
    assert (event.outcome, event.kind, len(event.changes)) == (Outcome.HEALED, Kind.REASONING_ITEM, 1)
    assert b"gAAAA" not in place.rollout.bytes().split(b'"error"')[0]
    now = place.rollout.path.stat()
    assert (now.st_ino, now.st_size) == (status.st_ino, status.st_size)
    assert place.heal() is None
    place.rest()
    with place.ledger() as ledger:
        assert ledger.changes(event.id)[0].before is not None
        take_back(place.store, ledger, place.state, event.id)
    assert place.rollout.bytes() == before


def test_a_repair_and_its_undo_leave_the_time_by_which_the_client_lists_threads(place: Place) -> None:
    place.rollout.stuck()
    place.rest()
    path, marks = place.rollout.path, dict(place.store.fresh({}, 0))
    old, stamp = path.stat().st_mtime_ns, place.store.stamp(THREAD)
    event = recover(THREAD, Config(), state_dir=place.state, stores=[place.store])
    assert event is not None and event.outcome is Outcome.HEALED
    assert path.stat().st_mtime_ns == old
    assert place.store.stamp(THREAD) != stamp and dict(place.store.fresh(marks, 0)), "that it was written to is seen"
    with place.ledger() as ledger:
        take_back(place.store, ledger, place.state, event.id)
    assert path.stat().st_mtime_ns == old


def test_what_a_client_appends_during_a_repair_keeps_its_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.rollout.stuck()
    place.rest()
    old = place.rollout.path.stat().st_mtime_ns

    def appended(name: str) -> None:
        if name == "sync lines":
            place.rollout.asks("and this")

    monkeypatch.setattr(failpoint, "reach", appended)
    assert recover(THREAD, Config(), state_dir=place.state, stores=[place.store])
    assert place.rollout.path.stat().st_mtime_ns > old


def test_the_summary_of_a_compaction_is_never_taken_out_because_its_type_is_not_known(place: Place) -> None:
    rollout = place.rollout
    rollout.healthy()
    rollout.compacted([message("user", "do it"), {"type": "compaction", "encrypted_content": "gSUMMARYxyz"}])
    rollout.asks("of another provider")
    rollout.is_refused(said("input.2.type: Invalid input", "input.2.type"))
    before = rollout.bytes()
    event = place.heal()
    assert event is not None and rollout.bytes() == before
    assert (event.outcome, event.kind) == (Outcome.REFUSED, Kind.FOREIGN_ITEM)
    assert "does not take a compaction's summary" in event.detail
    assert event.detail.endswith("go on with the provider that it is from, or start a new session.")


def forked(folder: Path) -> Place:
    place = Place(folder)
    base = {"thread_id": "01a201b9-0000-7263-872f-20dfb3075cd3", "end_ordinal_exclusive": 9, "end_byte_offset": 999}
    place.rollout = Rollout(folder / ".codex", ms=int(time.time() * 1000) - 60_000, meta={"history_base": base})
    return place


def test_a_fork_is_told_as_what_it_is_refused_for_and_what_to_do_instead(tmp_path: Path) -> None:
    place = forked(tmp_path)
    place.rollout.stuck()
    before = place.rollout.bytes()
    event = place.heal()
    assert event is not None and place.rollout.bytes() == before
    assert (event.outcome, event.kind) == (Outcome.REFUSED, Kind.REASONING_ITEM)
    assert "it is a fork, or turns were" in event.detail
    assert event.detail.endswith(
        "is repaired; if it is too long, `/compact` it, else prompt the one that it was made from "
        "(`codex resume 01a201b9-0000-7263-872f-20dfb3075cd3`), and "
        "load this one anew: what is repaired there holds here, too; else start a new session."
    )
    with place.ledger() as ledger:
        found = finding_of(place.store, THREAD, Recovery(Context(ledger, Config(), place.state, clients=place.clients)))
    assert found is not None and found.kind is Kind.REASONING_ITEM and found.stuck
    assert found.said == f"not repaired: {event.detail}"


def test_a_healed_thread_that_its_client_wrote_anew_is_not_stuck_and_nothing_is_put_back_into_it(place: Place) -> None:
    """As `codex migrate-rollouts` does with a thread of an older version (0.169.0): each line gets a number."""
    place.rollout.stuck()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    place.rollout.path.write_bytes(place.rollout.bytes().replace(b'"ordinal":', b'"ordinal":1000'))
    before = place.rollout.bytes()
    with place.ledger() as ledger:
        found = finding_of(place.store, THREAD, Recovery(Context(ledger, Config(), place.state, clients=place.clients)))
        assert found is not None and found.healed and not found.stuck
        for force in (False, True):
            with pytest.raises(RefusedError, match="not where they were") as refused:
                take_back(place.store, ledger, place.state, event.id, force=force)
            assert refused.value.hint.endswith(f"recoveryd ledger export {event.id}")
        assert [entry.outcome for entry in ledger.history(9, THREAD)] == [Outcome.HEALED]
    assert place.heal() is None and place.rollout.bytes() == before


def goes_back(place: Place, file: str = "01a201b9-0000-7000-9000-000000000001", *, by: bool = True) -> Rollout:
    """Its user takes turns back (esc-esc): the thread goes on in another `file`, `by` what stands in the one before;
    where all are taken back, by nothing (0.169.0).
    """
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 9, "end_byte_offset": 3000}
    name = f"2026-11-22T05-27-44-{THREAD}_{file}"
    meta = {"history_base": base} if by else {}
    rollout = Rollout(place.rollout.home, ms=int(time.time() * 1000), name=name, meta=meta)
    assert list(place.store.touched(("2026", "11", "22", rollout.path.name))) == [THREAD]
    return rollout


def test_a_repair_is_undone_by_force_once_turns_were_taken_back(place: Place) -> None:
    place.rollout.stuck()
    before = place.rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    healed, newer = place.rollout.bytes(), goes_back(place)
    newer.healthy()
    kept = newer.bytes()
    with place.ledger() as ledger:
        for dry_run in (True, False):
            with pytest.raises(RefusedError, match=r"went on since .* \(turns of it were taken back") as refused:
                take_back(place.store, ledger, place.state, event.id, dry_run=dry_run)
            assert refused.value.hint.endswith(f"recoveryd undo {event.id} --force")
        would = take_back(place.store, ledger, place.state, event.id, force=True, dry_run=True)[1]
        assert [change.key for change in would] == [change.key for change in event.changes]
        assert place.rollout.bytes() == healed
        undone, done = take_back(place.store, ledger, place.state, event.id, force=True)
        assert (undone.outcome, done) == (Outcome.UNDONE, would)
    assert place.rollout.bytes() == before and newer.bytes() == kept


def test_of_an_answer_in_a_file_without_what_was_repaired_nothing_else_is_said(place: Place) -> None:
    place.rollout.stuck()
    before = place.rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    newer = goes_back(place, by=False)
    newer.ms += 3_000  # behind the repair
    newer.healthy()
    kept = newer.bytes()
    with place.ledger() as ledger:
        with pytest.raises(RefusedError) as refused:
            take_back(place.store, ledger, place.state, event.id)
        says = f"The session went on since {event.id}: the model answered, and what had failed is not in it any more."
        assert refused.value.message == says
        take_back(place.store, ledger, place.state, event.id, force=True)
    assert place.rollout.bytes() == before and newer.bytes() == kept


def test_what_was_repaired_behind_turns_that_were_all_taken_back_is_undone_in_its_own_file(place: Place) -> None:
    place.rollout.stuck()
    before = place.rollout.bytes()
    first = place.heal()
    older, healed = place.rollout, place.rollout.bytes()
    place.rollout = goes_back(place, by=False)
    place.rollout.healthy()
    place.rollout.stuck()
    stuck = place.rollout.bytes()
    second = place.heal()
    assert first is not None and second is not None and second.outcome is Outcome.HEALED
    assert (older.bytes(), place.rollout.bytes() != stuck) == (healed, True)
    newest = goes_back(place, "01a201b9-0000-7000-9000-000000000002", by=False)
    newest.asks("another one")
    kept = newest.bytes()
    with place.ledger() as ledger:
        take_back(place.store, ledger, place.state, second.id)
        assert (older.bytes(), place.rollout.bytes(), newest.bytes()) == (healed, stuck, kept)
        take_back(place.store, ledger, place.state, first.id)
    assert (older.bytes(), place.rollout.bytes(), newest.bytes()) == (before, stuck, kept)


def older_keys(place: Place) -> None:
    """What an older recoveryd wrote into its ledger: a key had the thread's id, in whichever file its line was."""
    with closing(sqlite3.connect(paths.ledger_file(place.state))) as db, db:
        for table in ("image", "trace"):
            db.execute(f"UPDATE {table} SET key = 'line/{THREAD}/' || substr(key, -13)")


@pytest.mark.parametrize("alike", [True, False])
def test_a_repair_of_an_older_recoveryd_is_found_in_the_file_where_it_was_made(place: Place, alike: bool) -> None:
    """Also where a line of the first file begins at the same byte, as where the same prompt was sent again."""
    if not alike:
        place.rollout.asks("another one, which is longer by far")
    place.rollout.healthy()
    first, kept = place.rollout, place.rollout.bytes()
    place.rollout = goes_back(place, by=False)
    place.rollout.stuck()
    before = place.rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    healed = place.rollout.bytes()
    older_keys(place)
    with place.ledger() as ledger:
        [key] = [change.key for change in ledger.changes(event.id)]
        assert (place.store.read(key) is not None) is alike
        found = finding_of(place.store, THREAD, Recovery(Context(ledger, Config(), place.state, clients=place.clients)))
    assert found is not None and not found.stuck and (found.healed, found.recovery) == (True, event.id)
    assert place.heal() is None
    with place.ledger() as ledger:
        take_back(place.store, ledger, place.state, event.id, dry_run=True)
        assert place.rollout.bytes() == healed
        take_back(place.store, ledger, place.state, event.id)
    assert (place.rollout.bytes(), first.bytes()) == (before, kept)


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_a_thread_that_its_client_compressed_is_not_told_as_deleted_nor_as_undone(
    place: Place, capsys: pytest.CaptureFixture[str], *, force: bool, archived: bool
) -> None:
    """Codex keeps cold threads as `.jsonl.zst`, and writes them out again as they were once it opens them."""
    place.rollout.stuck()
    before, path = place.rollout.bytes(), place.rollout.path
    event = place.heal()
    assert event is not None
    folder = place.rollout.home / "archived_sessions" if archived else path.parent
    folder.mkdir(exist_ok=True)
    packed = path.rename(folder / f"{path.name}.zst")
    place.store = threads(place.rollout.home)
    assert list(place.store.session_ids()) == []
    with place.ledger() as ledger:
        for dry in (True, False):
            with pytest.raises(FormError) as refused:
                take_back(place.store, ledger, place.state, event.id, force=force, dry_run=dry)
            assert "compressed" in refused.value.message and str(packed) in refused.value.message
            assert refused.value.hint.endswith(f"{f'codex unarchive {THREAD} && ' * archived}codex resume {THREAD}")
        assert ledger.get(event.id).outcome is Outcome.HEALED
        ledger.mark(event.id, Outcome.UNDOING)
        assert [one.outcome for one in finish_interrupted(place.store, ledger)] == [Outcome.UNDOING]
        ledger.finish(event.id, Outcome.HEALED, "", settled=True)
        found = NeedsUser()
        assert (found.find(Context(ledger, Config(), place.state), [place.store]), found.unlisted) == ([], {})
    for command in (["scan"], ["explain"]):
        assert main([*command, "--session", THREAD]) != 0
        said = capsys.readouterr().err
        assert "compressed" in said and "in any store that could be looked into." in said
    packed.rename(path)
    place.rest()
    with place.ledger() as ledger:
        take_back(place.store, ledger, place.state, event.id, force=force)
    assert place.rollout.bytes() == before


def test_a_compressed_thread_moves_with_its_home_and_keeps_no_other_from_being_listed(place: Place) -> None:
    place.rollout.stuck()
    event = place.heal()
    assert event is not None
    path = place.rollout.path
    path.rename(path.parent / f"{path.name}.zst")
    other = Rollout(place.rollout.home, ROOT, ms=int(time.time() * 1000) - 60_000)
    other.stuck()
    moved = threads(place.rollout.home.rename(place.rollout.home.parent / "moved"))
    with place.ledger() as ledger:
        ledger.finish(event.id, Outcome.FAILED, "", settled=True)
        follow_moved(moved, ledger)
        assert ledger.get(event.id).store == moved.id
        found = NeedsUser()
        needing = found.find(Context(ledger, Config(), place.state), [moved])
        assert ([one.session for one in needing], found.unlisted) == ([ROOT], {})


def test_no_line_of_another_file_is_written_over_by_force(place: Place) -> None:
    place.rollout.healthy()
    first = place.rollout
    place.rollout = goes_back(place, by=False)
    place.rollout.stuck()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    older_keys(place)
    with place.ledger() as ledger:
        [change] = ledger.changes(event.id)
        offset, length = int(change.key[-13:]), len(change.before or b"")
        at = first.path.read_bytes()[:offset]
        first.path.write_bytes(at + b"x" * length + b"\n")  # as long, and none of ours
        kept = first.bytes()
        place.rollout.path.write_bytes(place.rollout.bytes()[:offset] + b"x" * length + b"\n")
        for force in (True, False):
            with pytest.raises(RefusedError, match="not where they were") as refused:
                take_back(place.store, ledger, place.state, event.id, force=force)
            assert refused.value.hint.endswith(f"ledger export {event.id}")
    assert first.bytes() == kept


@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("step", ["write line", "sync lines"])
def test_an_undo_that_was_killed_is_ended_where_its_lines_are(place: Place, forced: bool, step: str) -> None:
    """Also where turns are taken back between the kill and the start after it. No line stays half."""
    place.rollout.healthy()
    place.rollout.stuck()
    before = place.rollout.bytes()
    event = place.heal()
    assert event is not None and len(event.changes) == 2
    healed = place.rollout.bytes()
    if forced:
        goes_back(place).healthy()

    def undo() -> None:
        with place.ledger() as ledger:
            take_back(place.store, ledger, place.state, event.id, force=forced)

    def killed(_: int, name: str) -> None:
        if name == step and place.rollout.bytes() != healed:  # one line of two, or both, are written
            os.kill(os.getpid(), signal.SIGKILL)

    assert run(undo, killed).signal == signal.SIGKILL
    if not forced:
        goes_back(place).healthy()
    half = next(n for n, (now, then) in enumerate(zip(place.rollout.bytes(), healed, strict=True)) if now != then)
    with place.rollout.path.open("r+b") as file:
        file.seek(half)
        file.write(healed[half : half + 9])
    with place.ledger() as ledger:
        [ended] = finish_interrupted(place.store, ledger)
        lines = zip(*(it.splitlines() for it in (place.rollout.bytes(), before, healed)), strict=True)
        assert all(now in both for now, *both in lines)
        assert ended.outcome is (Outcome.CONFLICT if step == "write line" and not forced else Outcome.UNDONE)
        if ledger.get(event.id).outcome is not Outcome.UNDONE:
            take_back(place.store, ledger, place.state, event.id, force=True)
    assert place.rollout.bytes() == before


ROOT = "01a201b9-0000-7263-872f-20dfb3075cd3"


def agent(folder: Path, version: str = "v2", source: str = "subagent") -> Place:
    """A thread that another one's model began, as 0.169.0 writes it; its parent may be an agent, too."""
    place = Place(folder)
    of = {"session_id": ROOT, "parent_thread_id": ROOT, "thread_source": source}
    of["multi_agent_version"] = version
    place.rollout = Rollout(folder / ".codex", ms=int(time.time() * 1000) - 60_000, meta=of)
    Rollout(folder / ".codex", ROOT).healthy()
    return place


@pytest.mark.parametrize(
    ("version", "source", "by", "other"),
    [
        ("v2", "subagent", ROOT, THREAD),
        ("v1", "subagent", THREAD, ROOT),
        ("disabled", "guardian_review", ROOT, THREAD),
    ],
)
def test_an_agent_goes_on_by_the_thread_that_is_opened(
    tmp_path: Path, version: str, source: str, by: str, other: str
) -> None:
    """Of the id of an agent of multi_agent_v2 0.169.0 says that it can't be resumed; those of before go on by it.

    A reviewer of approvals opens by its own, but then nobody asks for leave: its user goes on in the other thread.
    """
    place = agent(tmp_path, version, source)
    place.rollout.stuck()
    client = place.clients.of(place.store)
    assert client.go_on(place.store, THREAD) == f"To go on: `codex resume {by}`"
    with place.rollout.open(time.time() - 30):
        event = place.heal()
        assert event is not None and event.outcome is Outcome.HEALED
        assert f"`codex resume {by}`" in event.detail and f"resume {other}" not in event.detail
    assert place.store.about(THREAD).parent == ROOT
    place.rollout.asks("more")
    place.rollout.is_refused("Codex ran out of room in the model's context window.", "context_window_exceeded")
    failure = place.store.look(THREAD).failure
    assert failure is not None
    advice = client.advice(place.store, failure, Kind.CONTEXT_OVERFLOW)
    another = f"have the thread whose agent this is (`codex resume {ROOT}`) begin another one"
    assert advice == (another if by == ROOT else "`/compact` it, and where that is refused, start a new session")
    assert client.advice(place.store, failure, Kind.REASONING_ITEM) == ""


def test_an_agent_that_is_not_opened_and_goes_on_from_another_file_is_not_to_be_compacted(tmp_path: Path) -> None:
    place = forked(tmp_path)
    place.rollout.stuck()
    first, _, rest = place.rollout.bytes().partition(b"\n")
    of = {"session_id": ROOT, "parent_thread_id": ROOT, "thread_source": "subagent", "multi_agent_version": "v2"}
    meta = json.loads(first)
    place.rollout.path.write_bytes(json.dumps(meta | {"payload": meta["payload"] | of}).encode() + b"\n" + rest)
    event = place.heal()
    assert event is not None and event.outcome is Outcome.REFUSED
    assert "/compact" not in event.detail and "no such thread is repaired; prompt the one" in event.detail


def test_a_thread_that_was_archived_goes_on_once_it_is_in_use_again(place: Place) -> None:
    """`codex resume` refuses it until then (0.169.0)."""
    place.rollout.stuck()
    client = place.clients.of(place.store)
    assert client.go_on(place.store, THREAD) == f"To go on: `codex resume {THREAD}`"
    used, archive = place.rollout.path, place.rollout.home / "archived_sessions"
    archive.mkdir()
    place.rollout.path = used.rename(archive / used.name)
    assert client.go_on(place.store, THREAD) == f"To go on: `codex unarchive {THREAD} && codex resume {THREAD}`"
    place.rollout.path.rename(used)
    assert client.go_on(place.store, THREAD) == f"To go on: `codex resume {THREAD}`"


def test_a_thread_of_another_home_goes_on_there(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.rollout.stuck()
    go_on, codex = place.clients.of(place.store).go_on, place.rollout.home
    monkeypatch.setenv("HOME", str(tmp_path / "another user's"))
    assert go_on(place.store, THREAD) == f"To go on: `CODEX_HOME={codex} codex resume {THREAD}`"
    used, archive = place.rollout.path, codex / "archived_sessions"
    archive.mkdir()
    place.rollout.path = used.rename(archive / used.name)
    both = f"CODEX_HOME={codex} codex unarchive {THREAD} && CODEX_HOME={codex} codex resume {THREAD}"
    assert go_on(place.store, THREAD) == f"To go on: `{both}`"
    place.rollout.path.rename(used)
    (tmp_path / "another user's").mkdir()
    (tmp_path / "another user's" / ".codex").symlink_to(codex)
    assert go_on(place.store, THREAD) == f"To go on: `codex resume {THREAD}`"


def test_an_agent_with_the_lines_of_its_parent_is_left_to_that_one(tmp_path: Path) -> None:
    place = agent(tmp_path)
    place.rollout.line("session_meta", {"id": ROOT, "session_id": ROOT, "cwd": "/elsewhere"})
    place.rollout.stuck()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.REFUSED
    assert event.detail.endswith(f"have the thread whose agent this is (`codex resume {ROOT}`) begin another one.")
    assert (place.store.about(THREAD).parent, place.store.about(THREAD).directory) == (ROOT, "/p")


def test_the_thread_to_go_to_instead_is_opened_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own home, and one that is archived once it is in use again."""
    monkeypatch.setenv("HOME", str(tmp_path / "another user's"))
    place = agent(tmp_path / "a")
    place.rollout.stuck()
    failure = place.store.look(THREAD).failure
    assert failure is not None
    codex = f"CODEX_HOME={place.rollout.home} codex"
    another = f"have the thread whose agent this is (`{codex} resume {ROOT}`) begin another one"
    assert place.clients.of(place.store).advice(place.store, failure, Kind.CONTEXT_OVERFLOW) == another
    place.rollout.line("session_meta", {"id": ROOT, "session_id": ROOT, "cwd": "/elsewhere"})
    event = place.heal()
    assert event is not None and event.detail.endswith(f"{another}.")

    place, source = forked(tmp_path / "f"), "01a201b9-0000-7263-872f-20dfb3075cd3"
    place.rollout.stuck()
    made_from, archive = Rollout(place.rollout.home, source).path, place.rollout.home / "archived_sessions"
    archive.mkdir()
    made_from.rename(archive / made_from.name)
    codex = f"CODEX_HOME={place.rollout.home} codex"
    event = place.heal()
    assert event is not None and f"(`{codex} unarchive {source} && {codex} resume {source}`), and" in event.detail


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("calls", [False, True])
def test_a_fork_counts_as_stuck_only_where_it_was_refused(tmp_path: Path, calls: bool, refused: bool) -> None:
    """Its newest turn was cut off, which is no fault, and nothing else of it is looked into."""
    place = forked(tmp_path)
    begin = place.rollout.stuck if refused else place.rollout.healthy
    begin()
    place.rollout.asks()
    if calls:
        place.rollout.calls(output=None)
    stuck = refused and not calls  # what came of the answer proves that nothing older is refused
    found = place.diagnosis()
    assert (found.kind if found else None) is (Kind.REASONING_ITEM if stuck else None)
    assert place.verdict() is (Next.RECOVER if stuck else Next.NOTHING)


def test_the_report_of_a_fork_says_why_there_is_none(tmp_path: Path) -> None:
    place = forked(tmp_path)
    place.rollout.healthy()
    with place.ledger() as ledger, pytest.raises(FormError, match="it is a fork, or turns were taken back"):
        bundle(Sources(Config(), [place.store], ledger, place.state), THREAD)


def test_a_compaction_s_summary_that_is_taken_out_is_named(place: Place) -> None:
    place.rollout.healthy()
    place.rollout.compacted([message("user", "do it"), {"type": "compaction", "encrypted_content": "gAAAAxxxxabcd"}])
    place.rollout.asks()
    place.rollout.is_refused()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert event.actions == ("set_aside_summary",) and "the model knows only the words that were kept" in event.detail


def sent(place: Place) -> str:
    return json.dumps([block.body for block in CodexWire().stored(place.store.load(THREAD)).blocks()], default=dict)


LONG = "get_api_v1_organizations_organization_id_projects_project_id_environments"
TOO_LONG = (
    "Invalid 'input[2].name': string too long. Expected a string with maximum length 64, but got a string with length "
    "73 instead."
)


@pytest.mark.parametrize(
    ("refusal", "name"),
    [
        (NOT_VERIFIED, LONG),  # OpenAI itself takes 128 characters
        (json.dumps({"error": {"message": TOO_LONG, "param": "input[2].name"}}), LONG[:64]),
    ],
    ids=["of something else", "of a name, by a gateway"],
)
def test_a_long_name_of_a_tool_is_cut_where_the_error_says_so_alone(place: Place, refusal: str, name: str) -> None:
    rollout = place.rollout
    rollout.asks()
    rollout.thinks()
    rollout.calls(name=LONG)
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused(refusal)
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert f'"{name}"' in sent(place)
    assert ("gAAAA" in sent(place)) is (refusal is not NOT_VERIFIED)


def test_a_call_with_two_faults_is_mended_and_what_came_back_from_it_is_still_sent(place: Place) -> None:
    rollout = place.rollout
    rollout.asks()
    call = {"type": "function_call", "id": "call_x", "name": "mcp.srv/tool", "arguments": "{}", "call_id": "call_1"}
    rollout.item(call)
    rollout.item({"type": "function_call_output", "call_id": "call_1", "output": "what it found"})
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused(said("Invalid 'input[2].id': 'call_x'. Expected an ID that begins with 'fc'.", "input[2].id"))
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert "what it found" in sent(place) and "mcp_srv_tool" in sent(place)


def test_a_call_with_two_faults_that_nothing_came_back_from_keeps_what_it_was_called_with(place: Place) -> None:
    rollout = place.rollout
    rollout.asks()
    called = '{"cmd":"what it was called with"}'
    rollout.item({"type": "function_call", "id": "x", "name": "mcp.srv/tool", "arguments": called, "call_id": "call_1"})
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused(said("Invalid 'input[2].id': 'x'. Expected an ID that begins with 'fc'.", "input[2].id"))
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert "what it was called with" in sent(place) and "mcp_srv_tool" in sent(place)


def test_an_output_that_has_no_room_for_its_words_keeps_its_call(place: Place) -> None:
    rollout = place.rollout
    rollout.asks()
    rollout.line("response_item", {"type": "custom_tool_call", "name": "x", "input": "y" * 99, "call_id": "c"})
    rollout.line("response_item", {"type": "custom_tool_call_output", "call_id": "c", "output": "what it found"})
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused(
        said("Invalid value: 'custom_tool_call'. Supported values are: 'function_call'.", "input[2].type")
    )
    before = rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.REFUSED
    assert rollout.bytes() == before


def test_an_image_that_the_model_made_and_has_no_room_as_a_message_is_not_taken_out(place: Place) -> None:
    rollout = place.rollout
    rollout.asks()
    rollout.line("response_item", {"type": "image_generation_call", "status": "completed", "result": PIXEL})
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused(said("input.2.type: Invalid input", "input.2.type"))
    before = rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.REFUSED
    assert rollout.bytes() == before


@pytest.mark.parametrize(
    ("words", "param", "stays"),
    [
        ("input.6.type: Invalid input", "input.6.type", True),
        ("The image data you provided does not represent a valid image.", "input", False),
    ],
)
def test_reasoning_goes_with_the_image_that_followed_it(place: Place, words: str, param: str, *, stays: bool) -> None:
    """As words it is a user's: behind reasoning neither that nor a prompt is taken."""
    rollout = place.rollout
    rollout.asks()
    rollout.thinks("gAAAAkept")
    rollout.calls()
    rollout.thinks("gAAAAgone")
    rollout.item({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PIXEL})
    rollout.asks("again")
    before = rollout.is_refused(said(words, param)) and rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert "gAAAAkept" in sent(place) and "gAAAAgone" not in sent(place) and (PIXEL in sent(place)) == stays
    assert "took out 1 reasoning item without what has to follow it" in event.detail.lower()
    assert ("took out 1 picture that the model made" in event.detail.lower()) != stays
    place.rest()
    with place.ledger() as ledger:
        take_back(place.store, ledger, place.state, event.id)
    assert rollout.bytes() == before


def test_reasoning_before_reasoning_that_nothing_follows_goes_with_it(place: Place) -> None:
    rollout = place.rollout
    rollout.asks()
    rollout.thinks("gAAAAone", id="rs_1")
    rollout.thinks("gAAAAtwo", id="rs_2")
    rollout.asks("again")
    rollout.is_refused(
        said("Item 'rs_2' of type 'reasoning' was provided without its required following item.", "input")
    )
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert event.actions == ("set_aside_alone", "set_aside_alone") and "gAAAA" not in sent(place)


def test_the_summary_of_a_compaction_stays_where_the_error_names_what_a_client_had_in_memory(place: Place) -> None:
    rollout = place.rollout
    kept = [message("user", "do it"), {"type": "compaction", "encrypted_content": "gSUMMARYxyz"}]
    rollout.compacted(kept)
    rollout.asks()
    rollout.thinks("gAAAxxxxabcd")
    rollout.answers()
    rollout.asks("again")
    rollout.is_refused()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    rollout.ms = int(time.time() * 1000) + 1000
    rollout.asks("of a client that had it open")
    rollout.is_refused()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.PENDING
    assert b"gSUMMARYxyz" in rollout.bytes() and b"gAAAxxxxabcd" not in rollout.bytes()


UNNAMED = json.dumps({"error": {"message": "Encrypted content organization_id did not match the target organization."}})
PIXEL = b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 200).decode()
IMAGE = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}


def picture(name: str) -> dict[str, str]:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + name.encode()
    return {"type": "input_image", "image_url": f"data:image/png;base64,{b64encode(data).decode()}"}


def by_websocket(at: str) -> str:
    """As Codex records what ChatGPT refuses: an event, which says where it stands in its own request."""
    words = "Expected a base64-encoded data URL with an image MIME type, but got unsupported MIME type 'image'."
    error = {"message": f"Invalid '{at}'. {words}", "type": "invalid_request_error", "param": at}
    return json.dumps({"type": "error", "status": 400, "error": error})


@pytest.mark.parametrize(
    ("at", "healed"),
    [
        ("input[1].output[0].image_url", True),  # the outputs alone were sent, behind what the model answered
        ("input[7].output[0].image_url", True),  # all
        ("input[6].output[0].image_url", False),  # all, or what came behind its instructions: the one or the other
        ("input[0].content[1].image_url", True),  # that came behind its instructions
    ],
)
def test_an_image_is_taken_out_by_its_place_over_a_websocket_only_where_no_other_may_be_meant(
    place: Place, at: str, *, healed: bool
) -> None:
    """Codex keeps the connection, and sends of a thread what is new (0.171.0): a place counts in that."""
    rollout, images = place.rollout, {name: picture(name) for name in ("first", "sound", "refused")}
    rollout.asks("what is it?", images["first"])
    rollout.answers()
    rollout.asks("and these?")
    for number in (1, 2):
        rollout.calls(f"call_{number}", output=None, name="view_image")
    for number, name in enumerate(("sound", "refused"), 1):
        rollout.item({"type": "function_call_output", "call_id": f"call_{number}", "output": [images[name]]})
    rollout.is_refused(by_websocket(at))
    before, event = rollout.bytes(), place.heal()
    assert event is not None
    gone = {name for name, one in images.items() if one["image_url"] not in sent(place)}
    assert event.outcome is (Outcome.HEALED if healed else Outcome.NOT_UNDERSTOOD)
    assert gone == ({"first" if "content" in at else "refused"} if healed else set())
    assert healed or rollout.bytes() == before


AGENT = {"type": "agent_message", "author": "/root/x", "recipient": "/root"}
FOUND = {**AGENT, "content": [{"type": "input_text", "text": "what the agent found"}]}


def test_what_an_agent_says_behind_a_refused_image_does_not_have_the_answered_ones_go(place: Place) -> None:
    """Codex 0.171.0 writes what an agent found in the background behind the prompt: no model answered."""
    rollout, images = place.rollout, {name: picture(name) for name in ("sound", "refused")}
    rollout.asks("what is it?", images["sound"])
    rollout.answers()
    rollout.asks("and this?", images["refused"])
    rollout.item(FOUND)
    rollout.is_refused("Invalid image in your last message. Please remove it and try again.")
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert {name for name, one in images.items() if one["image_url"] not in sent(place)} == {"refused"}


def test_over_a_websocket_a_sound_item_keeps_its_id_where_the_one_at_fault_is_visibly_wrong(place: Place) -> None:
    """The place may count from behind what Codex itself tells the model, so a sound item stands there."""
    rollout = place.rollout
    rollout.asks()
    rollout.thinks()
    rollout.item({"type": "function_call", "id": "call_x", "name": "x", "arguments": "{}", "call_id": "call_1"})
    rollout.item({"type": "function_call_output", "call_id": "call_1", "output": "what it found"})
    rollout.answers()
    rollout.asks("again")
    error = json.loads(said("Invalid 'input[2].id': 'call_x'. Expected an ID that begins with 'fc'.", "input[2].id"))
    rollout.is_refused(json.dumps({"type": "error", "status": 400, **error}))
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert "call_x" not in sent(place) and '"rs_1"' in sent(place)


@pytest.mark.parametrize(("before", "healed"), [("reasoning", False), ("message", True)])
def test_an_item_is_known_by_its_place_over_a_websocket_only_where_no_sound_one_may_be_meant(
    place: Place, before: str, *, healed: bool
) -> None:
    """Some gateways tell no type: all reasoning went, where the search behind it was meant."""
    rollout = place.rollout
    rollout.asks()
    if before == "reasoning":
        rollout.thinks()
    else:
        rollout.item({**message("assistant", "I look it up"), "id": "msg_2"})
    rollout.item({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}})
    rollout.thinks("gSEALED")
    rollout.answers()
    rollout.asks("again")
    error = {"message": "input.2.type: Invalid input", "type": "invalid_request_error"}
    rollout.is_refused(json.dumps({"type": "error", "status": 400, "error": error}))
    was, event = rollout.bytes(), place.heal()
    assert event is not None and event.outcome is (Outcome.HEALED if healed else Outcome.NOT_UNDERSTOOD)
    assert "gSEALED" in sent(place) and ("web_search_call" not in sent(place)) is healed
    assert healed or rollout.bytes() == was


@pytest.mark.parametrize(
    ("at", "words", "gone"),
    [
        (2, "Missing required parameter: 'input[2].encrypted_content'.", {"rs_bare"}),  # that tells itself
        (1, "The encrypted content could not be verified.", {"rs_sound"}),  # the prompt is none
        (2, "The encrypted content could not be verified.", set()),  # either of the two
        (2, "The encrypted content for item rs_later could not be verified.", {"rs_later"}),
        (1, "The encrypted content for item rs_later could not be verified.", {"rs_later"}),  # a name tells more
    ],
)
def test_reasoning_goes_by_its_place_over_a_websocket_only_where_no_other_may_be_meant(
    place: Place, at: int, words: str, gone: set[str]
) -> None:
    """Sound reasoning went with what lacks its content, as it stood where that does in the whole thread."""
    rollout = place.rollout
    second = {"id": "rs_bare", "encrypted_content": None} if "Missing" in words else {"id": "rs_later"}
    rollout.asks()
    rollout.thinks(id="rs_sound")
    rollout.thinks(**second)
    rollout.calls()
    rollout.answers()
    rollout.asks("again")
    error = json.loads(said(words, f"input[{at}].encrypted_content"))
    rollout.is_refused(json.dumps({"type": "error", "status": 400, **error}))
    event = place.heal()
    assert event is not None and event.outcome is (Outcome.HEALED if gone else Outcome.NOT_UNDERSTOOD)
    assert {name for name in ("rs_sound", second["id"]) if f'"{name}"' not in sent(place)} == gone


@pytest.mark.parametrize(("words", "gone"), [("could not be verified", set()), ("is missing", {"rs_bare", "rs_alone"})])
def test_where_a_place_over_a_websocket_tells_no_one_reasoning_nothing_goes_in_its_place(
    place: Place, words: str, gone: set[str]
) -> None:
    """Of a turn that was stopped, what it had thought went, and the session was refused again for what was meant."""
    rollout = place.rollout
    rollout.asks()
    rollout.thinks(id="rs_sound")
    rollout.thinks(**({"id": "rs_bare", "encrypted_content": None} if "missing" in words else {"id": "rs_bare"}))
    rollout.calls()
    rollout.answers()
    rollout.asks("more")
    rollout.thinks(id="rs_alone")
    rollout.asks("again")
    error = json.loads(said(f"Invalid request: the encrypted content {words}.", "input[2].encrypted_content"))
    rollout.is_refused(json.dumps({"type": "error", "status": 400, **error}))
    before, event = rollout.bytes(), place.heal()
    assert event is not None and event.outcome is (Outcome.HEALED if gone else Outcome.NOT_UNDERSTOOD)
    assert {name for name in ("rs_sound", "rs_bare", "rs_alone") if f'"{name}"' not in sent(place)} == gone
    assert gone or rollout.bytes() == before


def compacted(place: Place) -> None:
    """A thread with a summary, and reasoning behind it that is refused and healed."""
    kept = [message("user", "do it"), {"type": "compaction", "encrypted_content": "gSUMMARYxyz"}]
    place.rollout.compacted(kept)
    healed_without(place, "gAAAxxxxabcd")
    place.rollout.ms = int(time.time() * 1000) + 3000


def healed_without(place: Place, sealed: str) -> None:
    """Answered with this reasoning, then refused: the reasoning goes, and the summary stays."""
    place.rollout.asks()
    place.rollout.thinks(sealed)
    place.rollout.answers()
    place.rollout.asks("again")
    place.rollout.is_refused(UNNAMED)
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert b"gSUMMARYxyz" in place.rollout.bytes() and sealed.encode() not in place.rollout.bytes()


@pytest.mark.parametrize("opened_since", [False, True])
def test_the_summary_of_a_compaction_stays_where_a_client_may_have_sent_what_it_had_in_memory(
    place: Place, opened_since: bool
) -> None:
    """Also where it has ended, and another one opened the thread behind the refusal: that one asked nothing yet."""
    compacted(place)
    place.rollout.asks("of a client that had it open")
    place.rollout.is_refused(UNNAMED)
    with place.rollout.open(at=place.rollout.ms / 1000 + 1) if opened_since else nullcontext():
        event = place.heal()
    assert event is not None and event.outcome is Outcome.PENDING
    assert "open it anew and prompt it; if that is refused too, leave it open" in event.detail
    assert b"gSUMMARYxyz" in place.rollout.bytes()


@pytest.mark.parametrize("by_exec", [True, False])
def test_it_is_taken_out_where_the_client_read_the_repair_and_nothing_else_is_encrypted(
    place: Place, by_exec: bool
) -> None:
    compacted(place)
    place.rollout.asks("of a client that read it", trigger="exec" if by_exec else None)
    place.rollout.is_refused(UNNAMED)
    with nullcontext() if by_exec else place.rollout.open(at=time.time() + 1):
        event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    assert b"gSUMMARYxyz" not in place.rollout.bytes()


def test_a_healthy_image_stays_where_the_refused_one_was_in_memory_alone(place: Place) -> None:
    rollout = place.rollout
    rollout.asks("look", IMAGE)
    rollout.is_refused('{"detail":"Bad Request"}')
    event = place.heal()
    assert event is not None and event.outcome is Outcome.HEALED
    rollout.ms = int(time.time() * 1000) + 3000
    rollout.asks("and at this", IMAGE)
    rollout.is_refused('{"detail":"Bad Request"}')
    before = rollout.bytes()
    event = place.heal()
    assert event is not None and event.outcome is Outcome.PENDING
    assert rollout.bytes() == before


def test_an_answer_since_the_repair_proves_that_the_client_read_it(place: Place) -> None:
    compacted(place)
    healed_without(place, "gAAAyyyyabcd")


def said(words: str, param: str) -> str:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error", "param": param, "code": "x"}})


@pytest.mark.parametrize(
    ("again", "then"),
    [
        (NOT_VERIFIED, Next.NOTHING),
        ("input.2.type: Invalid input", Next.NOTHING),  # said of the same, too
        ("Codex ran out of room in the model's context window.", Next.AGAIN),
    ],
)
def test_a_thread_that_is_open_says_how_it_takes_effect_and_is_not_refused_again_until_it_is_reloaded(
    place: Place, again: str, then: Next
) -> None:
    place.rollout.stuck()
    with place.rollout.open():
        old = time.time() - 30
        os.utime(place.rollout.home / "thread-writer-locks" / f"{THREAD}.lock", (old, old))
        event = place.heal()
        assert event is not None
        assert event.outcome is Outcome.HEALED
        assert "close it, then `codex app-server daemon restart`" in event.detail
        assert f"`codex resume {THREAD}`" in event.detail
        place.rollout.ms = int(time.time() * 1000) + 1000
        place.rollout.asks("again, as it was in memory")
        place.rollout.is_refused(again)
        assert place.verdict() is then
        assert place.heal() is None
    with place.ledger() as ledger:
        assert [entry.outcome for entry in ledger.history(9, THREAD)] == [Outcome.HEALED]


def test_a_refusal_behind_a_repair_that_nothing_explains_says_to_open_the_thread_anew(place: Place) -> None:
    place.rollout.stuck()
    assert place.heal()
    place.rollout.ms = int(time.time() * 1000) + 1000
    place.rollout.asks("of a client that is gone by now")
    place.rollout.is_refused()
    event = place.heal()
    assert event is not None
    assert event.outcome is Outcome.PENDING
    assert "open it anew and prompt it" in event.detail
    assert event.detail.endswith(f"To go on: `codex resume {THREAD}`.")
    assert event.until_written
    with place.ledger() as ledger:
        assert [entry.outcome for entry in ledger.history(9, THREAD)] == [Outcome.HEALED]


@pytest.mark.live
def test_such_a_refusal_is_looked_at_once_and_after_a_restart_not_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.rollout.stuck()
    assert place.heal()
    place.rollout.ms = int(time.time() * 1000)
    place.rollout.asks("of a client that is gone by now")
    place.rollout.is_refused()
    place.rest()
    monkeypatch.setattr(daemon_module, "SWEEP_S", 0.1)
    tried: list[str] = []
    attempt = Recovery.attempt

    def counted(self: Recovery, case: Case, *rest: Any) -> Case:
        tried.append(case.failure.message)
        return attempt(self, case, *rest)

    monkeypatch.setattr(Recovery, "attempt", counted)
    with running(tmp_path, place.store) as daemon:
        until(lambda: tried)
        daemon.sweeps()
    assert len(tried) == 1
    place.store = threads(place.rollout.home)
    with running(tmp_path, place.store) as daemon:
        daemon.sweeps()
    assert len(tried) == 1
    assert [entry.outcome for entry in daemon.history()] == [Outcome.HEALED]


def test_a_thread_whose_turn_runs_is_left_alone(place: Place) -> None:
    place.rollout.stuck()
    place.rollout.asks("more")
    before = place.rollout.bytes()
    with place.rollout.open():
        event = place.heal()
        assert event is None or event.outcome is Outcome.PENDING
    assert place.rollout.bytes() == before


_ODD = "files.read"  # a name that OpenAI does not take, and others do


def _step_of_the_newest_turn(rollout: Rollout) -> None:
    rollout.asks("do it")
    rollout.calls("call_9", name=_ODD)
    rollout.answers()


def _behind_what_was_answered(rollout: Rollout) -> None:
    rollout.asks("do it")
    rollout.calls("call_9", name=_ODD)
    rollout.answers()
    rollout.asks("and this")
    rollout.calls("call_10", name=_ODD)
    rollout._ended(last_agent_message=None)


@pytest.mark.parametrize("answered", [_step_of_the_newest_turn, _behind_what_was_answered])
def test_a_prompt_without_an_answer_behind_what_the_model_took_is_no_stuck_thread(
    place: Place, answered: Callable[[Rollout], None]
) -> None:
    answered(place.rollout)
    place.rollout.asks("fix it")  # its client was killed
    found = place.diagnosis()
    assert found is not None and (found.reason, found.stuck) == ("unanswered_prompt", False)


def test_a_prompt_without_an_answer_behind_what_was_sent_to_nobody_is_stuck(place: Place) -> None:
    place.rollout.asks("do it")
    place.rollout.calls("call_9")
    place.rollout.calls("call_10", name=_ODD)
    place.rollout._ended(last_agent_message=None)
    place.rollout.asks("fix it")
    found = place.diagnosis()
    assert found is not None and (found.reason, found.stuck) == ("tool_call_invalid", True)


def test_a_healthy_thread_is_not_stuck(place: Place) -> None:
    place.rollout.healthy()
    assert place.diagnosis() is None
    assert place.heal() is None


def test_a_first_line_with_a_byte_order_mark_is_explained_in_words(place: Place) -> None:
    place.rollout.healthy()
    place.rollout.path.write_bytes(b"\xef\xbb\xbf" + place.rollout.bytes())
    found = place.diagnosis()
    assert found is not None
    assert (found.kind, found.evidence["says"]) == (
        Kind.UNSENDABLE_PART,
        "Codex does not open it: its first line has bytes in it that are no text",
    )


# Found among the others


def test_a_thread_that_was_healed_and_can_not_be_read_any_more_is_told_as_refused(place: Place) -> None:
    place.rollout.stuck()
    healed = place.heal()
    assert healed is not None and healed.outcome is Outcome.HEALED
    place.rollout.asks("next")
    place.rollout.answers()
    place.rollout.compacted([message("user", "do it"), "of an unknown form"])  # type: ignore[list-item]
    time.sleep(1.1)  # behind the repair
    place.rollout.thinks("gBBBB")
    place.rollout.asks("go on")
    place.rollout.is_refused()
    told = place.heal()
    assert told is not None and told.outcome is Outcome.REFUSED
    assert "compaction of an unknown form" in told.detail


def test_a_home_is_a_store_only_where_it_is_there_and_wanted(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}

    def found(**section: object) -> list[str]:
        stores = find_stores(Config(codex=section), env)  # type: ignore[arg-type]
        return [store.id for store in stores if store.client == "codex"]

    assert found() == []
    (tmp_path / ".codex").mkdir()
    (tmp_path / "other").mkdir()
    assert found() == [str(tmp_path / ".codex/sessions")]
    assert found(homes=[tmp_path / "other"])[1:] == [str(tmp_path / "other/sessions")]
    assert found(enabled=False) == []
    (tmp_path / "whole" / "sessions").mkdir(parents=True)
    named = {"homes": [tmp_path / "no", tmp_path / "other", tmp_path / "whole"]}
    config = Config(codex=named)  # type: ignore[arg-type]
    problems = [problem for client in Clients(config).all() for problem in client.config_problems()]
    assert [problem.key for problem in problems] == ["codex.homes"] * 2
    assert "is not there" in problems[0].says and "has no folder `sessions`" in problems[1].says


def test_a_store_that_is_gone_is_told_by_its_id() -> None:
    whose = Whose(Config(), [], {"/disk/threads": "codex", "/a/fork.db": "opencode/Fork", "/a/b": "of a newer one"})
    wanted = {
        "/h/.codex/sessions": ("Codex", content),
        "/disk/threads": ("Codex", content),
        "/h/opencode/storage": ("OpenCode", opencode_content),
        "/a/fork.db": ("Fork", opencode_content),
        "/a/b": ("of a newer one", opencode_content),
    }
    assert {store: (whose.title(store), whose.content(store)) for store in wanted} == wanted
    assert whose.title("/h/.codex/sessions") == "Codex" and whose.meant("fork") == "opencode/Fork"


@pytest.mark.live
def test_a_machine_without_codex_loads_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import sys; from recoveryd.clients import Config, find_stores; find_stores(Config()); "
        "print(sorted(name for name in sys.modules if name.startswith('recoveryd.clients.codex.')))"
    )
    env = {**os.environ, "HOME": str(tmp_path), "CODEX_HOME": ""}
    told = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['recoveryd.clients.codex.rollout_paths', 'recoveryd.clients.codex.settings']"
