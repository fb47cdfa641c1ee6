"""What `Store` promises, tried on every store of every client. What only one of them does is tested beside it."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from recoveryd.clients.store import About, SessionStatus, all_written, stored_images, untouched
from recoveryd.core import failpoint
from recoveryd.core.errors import ConflictError, NotFoundError, StoreError
from recoveryd.core.model import PAGE, Change, Edit, Entry, Kind, Outcome
from tests.support.json_tree import NOW, SES
from tests.support.kept import Kept
from tests.support.stores import STORES

DAY = 86_400_000


@pytest.fixture(params=list(STORES))
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return STORES[request.param](tmp_path)


def each(what: str) -> list[object]:
    """Each store with each of the values that it has under this name, for `parametrize`."""
    return [pytest.param(kind, value) for kind, made in STORES.items() for value in getattr(made, what)]


def those(having: str) -> list[object]:
    """The stores that have something under this name."""
    return [pytest.param(kind, id=kind) for kind, made in STORES.items() if getattr(made, having)]


def small(kept: Kept, session: str = SES) -> tuple[str, str]:
    """A prompt and its answer, with one part each: `prt_1` and `prt_2`."""
    kept.session(session, "A title", "/p", "ses_0")
    asked, answered = kept.asks(NOW - 100, session), kept.answers(NOW - 90, session)
    kept.part(asked, "prt_1", session=session)
    kept.part(answered, "prt_2", session=session)
    return asked, answered


def edited(kept: Kept, asked: str, answered: str) -> list[Change]:
    """A part replaced, one set aside, one added to a message that has none; else one more replaced."""
    empty = kept.asks(NOW - 50)
    if not kept.adds:
        kept.part(empty, "prt_3")
    return changed(kept, (asked, "prt_1", "other"), (answered, "prt_2", None), (empty, "prt_3", "new"))


def changed(kept: Kept, *edits: tuple[str, str, str | None]) -> list[Change]:
    """What comes of edits, each of a message and a part of it to these words; None: set aside."""
    made = [
        Edit(owner, kept.id(part), None if words is None else kept.words(words), "x") for owner, part, words in edits
    ]
    return kept.store.changes(kept.store.load(kept.id(SES)), made)


def back(changes: Sequence[Change]) -> list[Change]:
    return [change.reversed() for change in reversed(changes)]


# What it is


def test_a_store_says_where_it_is_and_that_it_can_be_edited(kept: Kept) -> None:
    store = kept.store
    small(kept)
    assert store.id == str(store.root.resolve())
    assert (store.exists(), store.live()) == (True, None)
    assert store.lock_path.is_dir()
    assert store.watch_path.is_dir()
    assert all(file.parent == store.watch_path for file in store.watch_files)
    assert store.generation().use == "edited" and store.generation().name


def test_a_store_that_is_not_there_is_not_live(kept: Kept, tmp_path: Path) -> None:
    missing = kept.absent(tmp_path / "none")
    assert not missing.exists()
    assert "not there yet" in (missing.live() or "")
    for read in (missing.load, missing.stamp):
        with pytest.raises((StoreError, NotFoundError)):
            read(kept.id(SES))
    assert not (tmp_path / "none").exists()


def test_a_store_of_another_user_is_not_live(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    small(kept)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "another user" in (kept.store.live() or "")


@pytest.mark.parametrize("number", [0, 1])
def test_a_store_that_can_not_be_written_to_is_not_live(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    changes = edited(kept, *small(kept))
    said = kept.protect(number, monkeypatch)
    assert said in (kept.store.live() or "") if said else kept.store.live() is None
    assert kept.store.load(kept.id(SES)).id == kept.id(SES)
    before = kept.content()
    for refused in (changes, []) if said else (changes,):
        with pytest.raises(StoreError, match=said or "permission is denied"):
            kept.store.apply(refused)
    assert kept.content() == before


def test_a_store_on_a_disk_that_is_mounted_read_only_is_not_live(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says so of the mount, and of each file and folder, to root too."""
    small(kept)
    assert kept.store.live() is None
    access, statvfs = os.access, os.statvfs

    def mounted(where: Path) -> os.statvfs_result:
        said = list(statvfs(where))
        return os.statvfs_result([*said[:8], said[8] | os.ST_RDONLY, said[9]])

    monkeypatch.setattr(os, "statvfs", mounted)
    monkeypatch.setattr(os, "access", lambda where, how: access(where, how) and not how & os.W_OK)
    assert "can't be written to: check its owner and mode, and that its disk is not read-only" in (
        kept.store.live() or ""
    )


def test_what_the_client_writes_touches_the_session_and_what_lies_beside_touches_none(kept: Kept) -> None:
    store = kept.store
    small(kept)

    def written() -> dict[Path, tuple[int, int]]:
        watched = store.watch_files or [p for p in store.watch_path.rglob("*") if p.is_file()]
        return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in watched if path.exists()}

    before = written()
    os.utime(store.watch_path)
    kept.answers(NOW)
    names = [path.relative_to(store.watch_path).parts for path, at in written().items() if before.get(path) != at]
    assert names
    assert {session for name in names for session in store.touched(name)} in ({kept.id(SES)}, {None})
    for other in (("notes.txt",), ("a", "b", "c", "d", "e"), (".hidden",)):
        assert list(store.touched(other)) == []


# What is read


def test_a_session_is_loaded_whole_in_the_order_of_the_client_with_its_bytes(kept: Kept) -> None:
    about = kept.session(SES, "A title", "/p", "ses_0")
    asked, answered = small(kept)
    early = kept.asks(NOW - 200)
    kept.part(answered, "prt_10")
    kept.part(answered, "prt_1Z", b'{"type": "unheard-of", "extra": {"kept": [1]}}')
    session, messages = kept.store.load(kept.id(SES)), kept.messages()
    assert (session.store, session.id) == (kept.store.id, kept.id(SES))
    assert [message.id for message in messages] == kept.ordered([asked, answered, early])
    of = {message.id: message for message in messages}
    parts = kept.ordered([kept.id(label) for label in ("prt_2", "prt_10", "prt_1Z")])
    assert [part.id for part in of[answered].parts] == parts
    unheard = session.part(kept.id("prt_1Z"))
    assert unheard is not None
    assert kept.said(unheard.data or {}) == {"type": "unheard-of", "extra": {"kept": [1]}}
    assert kept.record(asked, "prt_1") == kept.store.read(kept.key(asked, "prt_1"))
    assert all(part.message_id == message.id for message in session.messages for part in message.parts)
    assert None not in [message.raw for message in session.messages]
    assert [of[one].role for one in (early, asked, answered)] == ["user", "user", "assistant"]
    assert [of[one].completed for one in (early, asked, answered)] == [0, 0, NOW - 85]
    assert About(session.title, session.directory, session.parent) == about
    assert session.revert is None
    assert kept.store.load(kept.id(SES)) == session
    assert kept.left() == []


def test_title_folder_and_parent_are_told_without_the_session(kept: Kept) -> None:
    about = kept.session(SES, "My session", "/work", "ses_0")
    kept.asks(NOW)
    assert kept.store.about(kept.id(SES)) == about
    assert (about.title, about.directory) == ("My session", "/work")
    assert kept.store.about(kept.id("ses_gone")) == kept.store.about("../x") == About()


def test_all_sessions_with_messages_are_listed_and_no_other(kept: Kept) -> None:
    wanted = [f"ses_{number:02}" for number in range(7)]
    for number, session in enumerate(wanted):
        kept.session(session, "", "", "")
        kept.asks(NOW + number, session)
    kept.session("ses_empty", "", "", "")
    assert sorted(kept.store.session_ids()) == sorted(map(kept.id, wanted))


def test_a_session_that_is_not_there_is_not_found_and_nothing_is_known_of_it(kept: Kept) -> None:
    small(kept)
    none = kept.id("ses_none")
    for read in (kept.store.load, kept.store.stamp):
        with pytest.raises(NotFoundError, match=none):
            read(none)
    assert kept.store.look(none) == SessionStatus()
    assert kept.store.about(none) == About()
    assert not kept.store.unreadable(none)
    assert not kept.store.has(none) and kept.store.has(kept.id(SES))


@pytest.mark.parametrize("bad", ["../../x", "a/b", "", ".", "ses 1", "ses_1\n", "s\0", "\udc80"])
def test_what_can_be_no_id_is_refused(kept: Kept, bad: str) -> None:
    small(kept)
    for read in (kept.store.load, kept.store.stamp):
        with pytest.raises(NotFoundError):
            read(bad)
    assert (kept.store.look(bad), kept.store.about(bad)) == (SessionStatus(), About())
    assert (kept.store.unreadable(bad), kept.store.has(bad)) == (False, False)
    session = kept.store.load(kept.id(SES))
    for edit in (
        Edit(bad, kept.id("prt_1"), {}, "x"),
        Edit(session.messages[0].id, bad, {}, "x"),
        Edit(bad, None, {}, "x"),
    ):
        with pytest.raises(StoreError):
            kept.store.changes(session, [edit])


@pytest.mark.parametrize(("kept", "raw"), each("broken"), indirect=["kept"])
def test_a_part_that_is_no_json_is_kept_exactly_and_comes_back_exactly(kept: Kept, raw: bytes) -> None:
    _, answered = small(kept)
    kept.part(answered, "prt_bad", raw)
    before = kept.content()
    part = kept.store.load(kept.id(SES)).part(kept.id("prt_bad"))
    assert part is not None
    assert (part.data, part.raw) == (None, kept.store.read(kept.key(answered, "prt_bad")))
    assert kept.store.unreadable(kept.id(SES))
    changes = kept.store.changes(kept.store.load(kept.id(SES)), [Edit(answered, "prt_bad", kept.words("mended"), "x")])
    kept.store.apply(changes)
    assert kept.content() != before
    assert not kept.store.unreadable(kept.id(SES))
    kept.store.apply(back(changes))
    assert kept.content() == before


@pytest.mark.parametrize(("kept", "raw"), each("passed_over"), indirect=["kept"])
def test_a_line_that_the_client_passes_over_is_no_record_and_stays_exactly_as_it_is(kept: Kept, raw: bytes) -> None:
    asked, answered = small(kept)
    messages = [(message.id, message.data, len(message.parts)) for message in kept.messages()]
    kept.line(raw)
    assert [(message.id, message.data, len(message.parts)) for message in kept.messages()] == messages
    assert not kept.store.unreadable(kept.id(SES)) and not kept.store.unreadable(kept.id(SES), whole=True)
    assert kept.store.look(kept.id(SES)).last_answer == NOW - 85
    changes = edited(kept, asked, answered)
    before = kept.content()
    kept.store.apply(changes)
    assert kept.content() != before and raw + b"\n" in b"".join(kept.content().values())
    kept.store.apply(back(changes))
    assert kept.content() == before


@pytest.mark.parametrize("kept", those("broken"), indirect=True)
def test_only_the_newest_messages_are_asked_for_parts_that_are_no_json_unless_all_are_wanted(kept: Kept) -> None:
    old, _ = small(kept)
    kept.part(old, "prt_bad", b'{"id": "prt_')
    assert kept.store.unreadable(kept.id(SES))
    for number in range(PAGE):
        kept.asks(NOW + number)
    assert not kept.store.unreadable(kept.id(SES))
    assert kept.store.unreadable(kept.id(SES), whole=True)


@pytest.mark.parametrize(("kept", "raw"), each("odd"), indirect=["kept"])
def test_other_json_is_a_part_that_says_nothing(kept: Kept, raw: bytes) -> None:
    """The client passes over it (seen on 1.1.53, 1.2.1 and 1.18.33); in files, a null stops it."""
    _, answered = small(kept)
    kept.part(answered, "prt_odd", raw)
    part = kept.store.load(kept.id(SES)).part(kept.id("prt_odd"))
    assert part is not None
    assert part.data is not None
    assert (part.type, kept.said(part.data)) == ("", {})
    assert part.raw == kept.store.read(kept.key(answered, "prt_odd"))
    assert not kept.store.unreadable(kept.id(SES))


@pytest.mark.parametrize(("kept", "raw_and_data"), each("readable"), indirect=["kept"])
def test_what_the_client_can_read_is_read(kept: Kept, raw_and_data: tuple[bytes, dict[str, object]]) -> None:
    raw, data = raw_and_data
    _, answered = small(kept)
    kept.part(answered, "prt_odd", raw)
    part = kept.store.load(kept.id(SES)).part(kept.id("prt_odd"))
    assert part is not None
    assert kept.said(part.data or {}) == data


@pytest.mark.parametrize("kept", those("broken"), indirect=True)
def test_a_message_that_is_no_json_is_named(kept: Kept) -> None:
    small(kept)
    named = kept.named.format(id=kept.broken_message(NOW))
    for read in (kept.store.load, kept.store.look):
        with pytest.raises(StoreError, match=rf"{named}.*is no JSON object"):
            read(kept.id(SES))


@pytest.mark.parametrize("kept", those("named"), indirect=True)
def test_a_record_nested_without_end_is_named(kept: Kept) -> None:
    _, answered = small(kept)
    kept.part(answered, "prt_deep", b'{"a":' * 50_000 + b"1" + b"}" * 50_000)
    with pytest.raises(StoreError, match=rf"{kept.named.format(id='prt_deep')}.*is nested too deeply"):
        kept.store.load(kept.id(SES))


def test_a_record_or_a_session_that_is_too_large_is_not_read(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answered = small(kept)
    kept.part(answered, "prt_huge", b'{"type":"text","text":"' + b"x" * 5000 + b'"}')
    strict = kept.limited(monkeypatch, 4000, 1_000_000)
    for use in (lambda: strict.load(kept.id(SES)), lambda: strict.read(kept.key(answered, "prt_huge"))):
        with pytest.raises(StoreError, match=kept.too_large[0]):
            use()
    with pytest.raises(StoreError, match=kept.too_large[1]):
        kept.limited(monkeypatch, 1_000_000, 5100).load(kept.id(SES))
    assert kept.limited(monkeypatch, 1_000_000, 1_000_000).load(kept.id(SES)).part(kept.id("prt_huge"))


@pytest.mark.parametrize(("kept", "key"), each("bad_keys"), indirect=["kept"])
def test_keys_from_elsewhere_are_checked(kept: Kept, key: str) -> None:
    small(kept)
    before = kept.content()
    for use in (
        kept.store.read,
        lambda k: kept.store.read_all([k]),
        lambda k: kept.store.apply([Change(k, None, b"x")]),
        lambda k: kept.store.clean([Change(k, None, None)]),
    ):
        with pytest.raises(StoreError, match="no record of this store"):
            use(key)
    assert kept.content() == before


def test_many_records_are_read_as_one_is(kept: Kept) -> None:
    asked, answered = small(kept)
    keys = [
        kept.key(answered, "prt_2"),
        kept.key(asked, "prt_9"),
        kept.key(asked, "prt_1"),
        kept.key(answered, "prt_2"),
    ]
    found = kept.store.read_all(keys)
    assert found == [kept.store.read(key) for key in keys]
    assert [record is None for record in found] == [False, True, False, False]
    assert kept.store.read_all([]) == []


def _symlink(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
    finally:
        os.chdir(here)


def _instead(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def made(path: Path) -> None:
        path.unlink()
        make(path)

    return made


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (_symlink, "symlink"),
        (_instead(Path.mkdir), "folder"),
        (_instead(os.mkfifo), "named pipe"),
        (_socket, "no regular file"),
    ],
)
def test_what_is_no_file_is_named_never_followed_and_never_waited_for(
    kept: Kept, put: Callable[[Path], None], said: str
) -> None:
    _, answered = small(kept)
    changes = changed(kept, (answered, "prt_2", "other"))
    path = kept.file(answered, "prt_2")
    real = path.read_bytes()
    put(path)
    began = time.monotonic()
    for use in (lambda: kept.store.load(kept.id(SES)), lambda: kept.store.apply(changes)):
        with pytest.raises(StoreError, match=said):
            use()
    assert time.monotonic() - began < 10
    if path.is_symlink():
        assert path.read_bytes() == real
    else:
        assert not stat.S_ISREG(path.stat().st_mode)


def test_what_is_no_record_does_not_count_and_is_left_alone(kept: Kept) -> None:
    _, answered = small(kept)
    kept.foreign(answered)
    before = kept.content()
    assert [[part.id for part in message.parts] for message in kept.messages()] == [
        [kept.id("prt_1")],
        [kept.id("prt_2")],
    ]
    assert kept.content() == before


# Whether it changed


def test_a_stamp_changes_with_every_write_and_only_then(kept: Kept) -> None:
    asked, answered = small(kept)
    seen = [kept.store.stamp(kept.id(SES))]
    assert kept.store.stamp(kept.id(SES)) == seen[0]
    assert kept.store.stamp(kept.id(SES)).digest == seen[0].digest
    kept.ms += 1
    kept.store.apply(changed(kept, (asked, "prt_1", "other")))
    seen.append(kept.store.stamp(kept.id(SES)))
    for write in kept.writes(answered):
        kept.ms += 1
        write()
        seen.append(kept.store.stamp(kept.id(SES)))
    kept.store.apply(changed(kept, (asked, "prt_1", "once more")))
    seen.append(kept.store.stamp(kept.id(SES)))
    assert len({stamp.fingerprint for stamp in seen}) == len({stamp.digest for stamp in seen}) == len(seen)
    assert kept.is_now(seen[-1].newest_mtime_ns)
    again = kept.store.stamp(kept.id(SES))
    kept.asks(NOW, "ses_2")
    assert kept.store.stamp(kept.id(SES)) == again, "another session was written to"


def test_sessions_are_named_until_they_are_remembered_and_again_when_a_message_comes(kept: Kept) -> None:
    small(kept)
    kept.asks(NOW - 500, "ses_2")
    known: dict[str, str] = {}

    def fresh() -> list[str]:
        found = list(kept.store.fresh(known, NOW - DAY))
        known.update(found)
        return sorted(session for session, _ in found)

    assert fresh() == sorted(map(kept.id, (SES, "ses_2")))
    assert fresh() == []
    kept.ms += 60_000
    kept.answers(kept.ms - 100, "ses_2")
    assert fresh() == [kept.id("ses_2")]
    assert fresh() == []


def test_what_got_a_message_since_is_listed_whoever_asked_before(kept: Kept) -> None:
    small(kept)
    kept.asks(NOW - 500, "ses_2")
    later = max(NOW, int(time.time() * 1000)) + DAY
    for _ in range(2):
        assert {kept.id(SES), kept.id("ses_2")} == set(kept.store.written_since(NOW - DAY))
        assert list(kept.store.written_since(later)) == []


# What is stuck


def test_a_refused_turn_is_the_failure_and_a_later_answer_clears_it(kept: Kept) -> None:
    kept.asks(NOW - 500)
    kept.answers(NOW - 400)
    kept.asks(NOW - 300)
    failed = kept.is_refused(NOW - 200)
    found = kept.store.look(kept.id(SES))
    assert found.failure is not None
    assert (found.failure.message, found.failure.session, found.failure.store) == (failed, kept.id(SES), kept.store.id)
    assert (found.failure.provider, found.failure.model, found.failure.time) == (*kept.asked, NOW - 200)
    assert (found.running, found.newest_user, found.last_answer) == (0, None, NOW - 395)
    assert (found.newer, found.waits) == (False, True)
    kept.answers(NOW - 100)
    found = replace(kept.store.look(kept.id(SES)), asked=("", ""), directories=())
    assert found == SessionStatus(None, 0, None, NOW - 95)


def test_the_newest_of_several_failures_is_meant_and_a_newer_prompt_and_a_running_turn_are_told(kept: Kept) -> None:
    kept.is_refused(NOW - 500)
    newest = kept.is_refused(NOW - 400)
    prompt = kept.asks(NOW - 300)
    unfinished = kept.runs(NOW - 200)
    found = kept.store.look(kept.id(SES))
    assert found.failure is not None
    assert (found.failure.message, found.newest_user) == (newest, prompt)
    assert (found.newer, found.waits) == (True, True)
    assert (found.running, found.silent) == (NOW - (200 if unfinished else 300), True)


def test_an_unfinished_message_of_a_crash_before_the_failure_is_no_running_turn(kept: Kept) -> None:
    kept.runs(NOW - 500)
    kept.is_refused(NOW - 400)
    assert kept.store.look(kept.id(SES)).running == 0


def test_a_tool_call_clears_an_older_failure_but_is_no_answer(kept: Kept) -> None:
    kept.answers(NOW - 900)
    kept.calls(NOW - 800)
    kept.is_refused(NOW - 700)
    assert kept.store.look(kept.id(SES)).last_answer == NOW - 895
    kept.calls(NOW - 600)
    assert kept.store.look(kept.id(SES)).failure is None


@pytest.mark.parametrize("kinds", [["step-start", "reasoning"], ["step-start", "text"], ["text"], ["reasoning"], []])
def test_an_abort_clears_a_failure_only_if_the_model_spoke(kept: Kept, kinds: list[str]) -> None:
    kept.is_refused(NOW - 400)
    kept.is_aborted(NOW - 300, kinds)
    assert (kept.store.look(kept.id(SES)).failure is None) == (not kept.spoken.isdisjoint(kinds))


def test_a_glance_reads_one_message_of_a_healthy_session(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = [kept.answers(NOW - 1000 + number) for number in range(20)][-1]
    read = kept.reads(monkeypatch)
    assert kept.store.look(kept.id(SES)).failure is None
    assert read == [newest]


# What is written


def test_changes_are_written_and_taken_back_to_the_very_bytes(kept: Kept) -> None:
    asked, answered = small(kept)
    changes = edited(kept, asked, answered)
    before, read = kept.content(), kept.store.load(kept.id(SES))
    assert [change.before for change in changes] == [
        kept.record(asked, "prt_1"),
        kept.record(answered, "prt_2"),
        None if kept.adds else kept.record(kept.messages()[2].id, "prt_3"),
    ]
    assert untouched(kept.store, changes)
    kept.store.apply(changes)
    assert all_written(kept.store, changes)
    parts = [[(part.id, kept.said(part.data or {})) for part in message.parts] for message in kept.messages()]
    assert parts == [
        [(kept.id("prt_1"), kept.words("other"))],
        [(kept.id("prt_2"), kept.aside)] if kept.aside else [],
        [(kept.id("prt_3"), kept.words("new"))],
    ]
    assert kept.left() == []
    kept.store.apply(back(changes))
    assert kept.content() == before
    assert kept.store.load(kept.id(SES)) == read
    assert set(stored_images(kept.store, changes)) == {"before"}
    assert kept.left() == []


def test_an_edit_that_changes_nothing_is_no_change(kept: Kept) -> None:
    asked, _ = small(kept)
    kept.part(asked, "prt_3", kept.other_layout(asked, "prt_3"))
    session, third = kept.store.load(kept.id(SES)), kept.id("prt_3")
    part = session.part(third)
    assert part is not None and part.data is not None
    assert kept.store.changes(session, [Edit(asked, third, part.data, "x")]) == []
    assert kept.store.changes(session, [Edit(asked, kept.id("prt_none"), None, "x")]) == []
    assert kept.store.changes(session, []) == []
    [once] = kept.store.changes(session, [Edit(asked, third, {**part.data, "b": True}, "x")])
    kept.store.apply([once])
    session = kept.store.load(kept.id(SES))
    written = session.part(third)
    assert written is not None and written.data is not None and written.data["b"] is True
    assert kept.store.changes(session, [Edit(asked, third, written.data, "x")]) == []


def test_edits_of_what_is_not_there_are_refused(kept: Kept) -> None:
    asked, answered = small(kept)
    session = kept.store.load(kept.id(SES))
    for edit in (Edit("msg_none", kept.id("prt_1"), {}, "x"), Edit(asked, kept.id("prt_2"), {}, "x")):
        with pytest.raises(StoreError, match="not there"):
            kept.store.changes(session, [edit])
    with pytest.raises(StoreError, match="can't be written as JSON"):
        kept.store.changes(session, [Edit(answered, kept.id("prt_2"), {"n": float("inf")}, "x")])


def test_what_the_client_wrote_since_is_a_conflict_and_nothing_is_touched(kept: Kept) -> None:
    asked, answered = small(kept)
    changes = edited(kept, asked, answered)
    called = re.escape(kept.called(answered, "prt_2"))
    kept.rewrites(answered, "prt_2")
    before = kept.content()
    with pytest.raises(ConflictError, match=called):
        kept.store.apply(changes)
    assert kept.content() == before
    assert stored_images(kept.store, changes) == ["before", "other", "before"]
    kept.removes(answered, "prt_2")
    before = kept.content()
    with pytest.raises(ConflictError, match=called):
        kept.store.apply(changes)
    assert kept.content() == before
    assert kept.left() == []


@pytest.mark.parametrize("kept", those("adds"), indirect=True)
def test_a_record_that_is_there_by_now_is_a_conflict(kept: Kept) -> None:
    _, answered = small(kept)
    changes = changed(kept, (answered, "prt_7", "new"))
    kept.part(answered, "prt_7")
    before = kept.content()
    with pytest.raises(ConflictError, match="prt_7"):
        kept.store.apply(changes)
    assert kept.content() == before


@pytest.mark.parametrize("kept", [kind for kind in STORES if not STORES[kind].adds], indirect=True)
def test_what_the_client_appended_since_is_kept_and_no_conflict(kept: Kept) -> None:
    changes = edited(kept, *small(kept))
    before = kept.content()
    newer = kept.answers(NOW)
    grown = kept.content()
    kept.store.apply(changes)
    assert kept.messages()[-1].id == newer
    kept.store.apply(back(changes))
    assert kept.content() == grown != before


def test_an_undo_of_what_the_client_wrote_over_is_a_conflict(kept: Kept) -> None:
    asked, answered = small(kept)
    changes = edited(kept, asked, answered)
    kept.store.apply(changes)
    called = re.escape(kept.called(asked, "prt_1"))
    kept.rewrites(asked, "prt_1")
    before = kept.content()
    with pytest.raises(ConflictError, match=called):
        kept.store.apply(back(changes))
    assert kept.content() == before


def test_one_record_twice_in_a_set_is_refused(kept: Kept) -> None:
    asked, _ = small(kept)
    [change] = changed(kept, (asked, "prt_7" if kept.adds else "prt_1", "new"))
    before = kept.content()
    with pytest.raises(StoreError, match="twice"):
        kept.store.apply([change, replace(change, before=b"x")])
    assert kept.content() == before


@pytest.mark.parametrize("fault", [OSError(errno.EIO, "broken disk"), KeyboardInterrupt()], ids=["disk", "interrupt"])
def test_a_fault_at_any_step_leaves_all_or_nothing(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    changes = edited(kept, *small(kept))
    before = kept.content()
    steps: list[str] = []
    monkeypatch.setattr(failpoint, "reach", steps.append)
    kept.store.apply(changes)
    after = kept.content()
    kept.store.apply(back(changes))
    assert kept.content() == before
    total = len(steps) // 2
    assert total >= len(changes)
    for at in range(total):
        left = at

        def step(_: str) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise fault

        monkeypatch.setattr(failpoint, "reach", step)
        with pytest.raises((StoreError, KeyboardInterrupt, OSError)):
            kept.store.apply(changes)
        monkeypatch.setattr(failpoint, "reach", lambda _: None)
        kept.store.clean(changes)
        found = kept.content()
        assert found in (before, after), f"half of it, by a fault at step {at + 1}"
        if found == after:
            kept.store.apply(back(changes))
        assert kept.content() == before
        assert kept.left() == []


def test_what_a_crash_left_is_removed_once_and_nothing_else(kept: Kept) -> None:
    changes = [*edited(kept, *small(kept)), Change(kept.key("msg_none", "prt_99"), None, None)]
    before = kept.content()
    assert kept.store.clean(changes) == 0
    left = kept.cut_off(changes[0])
    assert [kept.store.clean(changes), kept.store.clean(changes)] == [left, 0]
    assert kept.content() == before
    assert kept.left() == []


# What its records say, of which the ledger has images when the store is gone


def test_what_exists_nowhere_else_is_told_of_what_is_set_aside_and_not_of_what_stays(kept: Kept) -> None:
    asked, answered = small(kept)
    content, there = kept.store.content, (answered, "prt_3") if kept.adds else (asked, "prt_1")
    aside, over = changed(kept, (answered, "prt_2", None)), changed(kept, (asked, "prt_1", "other"))
    longer = changed(kept, (asked, "prt_1", "they said hello, and more"))
    added = changed(kept, (*there, "hello to them"))
    assert [content.sole(changes) for changes in (aside, over, longer, added)] == [True, True, False, False]
    assert not content.sole([*aside, *added]), "it moved"
    assert not content.sole(back(aside))


def test_an_image_is_read_as_the_part_is_and_laid_open_with_all_its_words(kept: Kept) -> None:
    asked, answered = small(kept)
    stored = kept.store.load(kept.id(SES)).part(kept.id("prt_1"))
    [change] = changed(kept, (answered, "prt_2", None))
    [first] = changed(kept, (asked, "prt_1", None))
    content = kept.store.content
    assert content.is_part(change.key)
    assert first.before is not None and change.before is not None and stored is not None and stored.data is not None
    assert kept.said(content.said(first.before) or {}) == kept.said(stored.data)
    assert "hello" in str(content.shown(change.before))
    assert content.said(b"{torn") is content.shown(b"{torn") is None


@pytest.mark.parametrize("kept", those("adds"), indirect=True)
def test_a_message_is_no_part(kept: Kept) -> None:
    asked, _ = small(kept)
    [message] = kept.store.changes(kept.store.load(kept.id(SES)), [Edit(asked, None, {"role": "user", "a": 1}, "x")])
    assert not kept.store.content.is_part(message.key)


def test_nothing_stands_in_the_way_of_an_undo_of_what_was_edited(kept: Kept) -> None:
    changes = edited(kept, *small(kept))
    entry = Entry("r1", 0.0, kept.store.id, kept.id(SES), "m", "", Kind.EMPTY_CONTENT, Outcome.HEALED, 3, "")
    assert kept.store.undo_obstacle(entry, changes) is None
