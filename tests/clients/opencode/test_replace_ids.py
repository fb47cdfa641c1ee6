"""Other ids in both stores: every reference, no other byte, and back to the very file and row."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recoveryd.clients.opencode import replace_ids
from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.opencode_store import of_opencode
from recoveryd.clients.opencode.wrapped_ids import Wrapped, new_ids, wrapped
from recoveryd.clients.store import Store, all_written, stored_images
from recoveryd.core import failpoint
from recoveryd.core.errors import ConflictError, StoreError
from recoveryd.core.model import Change, Session
from recoveryd.disk import flush
from tests.e2e.snapshots import Snapshot, files, rows
from tests.support.database import OLD, Base
from tests.support.old_sessions import MADE, STARTED_AGAIN, long, plain, prompted
from tests.support.plant import write_sqlite, write_tree
from tests.support.planted import Planted

NOW = STARTED_AGAIN + 9_000_000_000


@dataclass
class Planting:
    """A store with one session in it, and all of it to be compared."""

    store: Store
    planted: Planted
    look: Callable[[], Snapshot]

    @property
    def session(self) -> Session:
        return self.store.load(self.planted.id)

    def found(self) -> Wrapped:
        found = wrapped(self.session, NOW)
        assert found is not None
        return found

    def changes(self, keep: Sequence[str] = ()) -> list[Change]:
        names = new_ids(self.found())
        assert isinstance(names, dict)
        return of_opencode(self.store).with_new_ids(self.session, names, keep)


Plant = Callable[[Planted], Planting]


@pytest.fixture(params=["files", "rows"])
def plant(request: pytest.FixtureRequest, tmp_path: Path) -> Plant:
    def planted(made: Planted) -> Planting:
        if request.param == "files":
            root = tmp_path / "opencode" / "storage"
            write_tree(made, root)
            return Planting(OpencodeFiles(root), made, lambda: files(root))
        base = Base(tmp_path / "opencode.db", OLD)
        write_sqlite(made, base.path)
        return Planting(base.store, made, lambda: rows(base.path))

    return planted


def back(changes: Sequence[Change]) -> list[Change]:
    return [change.reversed() for change in reversed(changes)]


def plain_text(session: Session, names: dict[str, str]) -> list[Any]:
    """All that is said, with the new ids in the place of the old ones."""
    text = json.dumps([(m.id, m.data, [(p.id, p.data) for p in m.parts]) for m in session.messages])
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return sorted((name, data, sorted(parts, key=lambda part: part[0])) for name, data, parts in json.loads(text))


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_all_ids_change_and_nothing_else_and_back_to_the_very_store(plant: Plant, make: Callable[[], Planted]) -> None:
    planting = plant(make())
    before, session = planting.look(), planting.session
    names = new_ids(planting.found())
    assert isinstance(names, dict)
    changes = planting.changes()
    planting.store.apply(changes)
    assert all_written(planting.store, changes)
    after = planting.session
    assert wrapped(after, NOW) is None
    assert plain_text(after, {}) == plain_text(session, names)
    assert (after.revert or {}).get("messageID") == names.get((session.revert or {}).get("messageID", ""))
    now = json.dumps([str(value) for value in planting.look().values()]) + " ".join(planting.look())
    assert [old for old in names if old in now] == [], "an old id is still named somewhere, or an old folder is there"
    planting.store.apply(back(changes))
    assert planting.look() == before
    assert set(stored_images(planting.store, changes)) == {"before"}


def test_a_prompt_of_now_keeps_its_id_and_what_names_old_ones_is_changed(plant: Plant) -> None:
    made = prompted(NOW - 60_000)
    old = made.messages[0]["id"]
    made.messages[2]["parentID"] = old
    made.parts[made.messages[2]["id"]].append(
        {**made.parts[made.messages[2]["id"]][0], "id": made.parts[made.messages[2]["id"]][0]["id"] + "1"}
        | {"type": "compaction", "auto": False, "tail_start_id": old}
    )
    planting = plant(made)
    names = new_ids(planting.found())
    assert isinstance(names, dict) and made.messages[2]["id"] not in names
    planting.store.apply(planting.changes())
    newest = planting.session.messages[-1]
    assert newest.id == made.messages[2]["id"]
    assert newest.data["parentID"] == names[old]
    assert (newest.parts[-1].data or {})["tail_start_id"] == names[old]


def test_ids_that_are_content_stay(plant: Plant) -> None:
    made = plain()
    old = made.messages[0]["id"]
    call = next(part for parts in made.parts.values() for part in parts if part["type"] == "tool")
    call["state"]["input"] = {
        "id": call["id"],
        "messageID": call["messageID"],
        "parentID": old,
        "text": f'"id": "{old}"',
    }
    call["state"]["metadata"] = {"id": old, "messageID": call["messageID"]}
    planting = plant(made)
    planting.store.apply(planting.changes())
    stored = next(p.data for m in planting.session.messages for p in m.parts if p.type == "tool")
    assert stored is not None
    for field in ("input", "metadata"):
        assert stored["state"][field] == call["state"][field]
    assert stored["id"] != call["id"] and stored["messageID"] != call["messageID"]


def test_a_part_that_is_no_json_moves_as_it_is(plant: Plant) -> None:
    made = plain()
    part = made.parts[made.messages[0]["id"]][0]
    made.raw[part["id"]] = b'{"half": '
    planting = plant(made)
    before = planting.look()
    changes = planting.changes()
    planting.store.apply(changes)
    [moved] = planting.session.messages[0].parts
    assert moved.data is None and moved.id != part["id"]
    planting.store.apply(back(changes))
    assert planting.look() == before


def test_other_layouts_and_modes_are_kept(tmp_path: Path) -> None:
    made = plain()
    root = tmp_path / "opencode" / "storage"
    write_tree(made, root)
    first = made.messages[0]["id"]
    path = root / "message" / made.id / f"{first}.json"
    path.write_bytes(json.dumps(made.messages[0], separators=(" ,", " : ")).encode() + b"\n")
    path.chmod(0o604)
    planting = Planting(OpencodeFiles(root), made, lambda: files(root))
    names = new_ids(planting.found())
    assert isinstance(names, dict)
    changes, before, raw = planting.changes(), planting.look(), path.read_bytes()
    planting.store.apply(changes)
    moved = path.with_name(f"{names[first]}.json")
    assert moved.read_bytes() == raw.replace(first.encode(), names[first].encode())
    assert moved.stat().st_mode & 0o777 == 0o604
    planting.store.apply(back(changes))
    assert planting.look() == before


def test_what_the_client_wrote_meanwhile_is_a_conflict_and_nothing_is_renamed(plant: Plant) -> None:
    planting = plant(plain())
    changes = planting.changes()
    [victim] = [change for change in changes if change.before and change.key.startswith("part/")][-1:]
    if isinstance(planting.store, OpencodeFiles):
        (planting.store.root / victim.key).write_bytes(b'{"type": "text", "text": "new"}')
    else:
        rowed = json.loads(victim.before or b"")
        base = Base.__new__(Base)
        base.path = planting.store.root
        base.run("UPDATE part SET data = '{}' WHERE id = ?", rowed["id"])
    before = planting.look()
    with pytest.raises(ConflictError):
        planting.store.apply(changes)
    assert planting.look() == before


def test_a_part_that_comes_to_an_old_message_meanwhile_stops_it(tmp_path: Path) -> None:
    base = Base(tmp_path / "opencode.db", OLD)
    made = plain()
    write_sqlite(made, base.path)
    planting = Planting(base.store, made, lambda: rows(base.path))
    changes = planting.changes()
    base.part(made.messages[0]["id"], "prt_zzz")
    before = planting.look()
    with pytest.raises(ConflictError):
        base.store.apply(changes)
    assert planting.look() == before


def test_messages_of_one_millisecond_keep_their_places(tmp_path: Path) -> None:
    """1.2 orders by time alone: what breaks a tie is the place in the table. So it is once that is undone."""
    base = Base(tmp_path / "opencode.db", OLD)
    made = plain()
    write_sqlite(made, base.path)
    base.run("UPDATE message SET time_created = ?", STARTED_AGAIN - 1000)
    order = before = base.run("SELECT rowid, data FROM message ORDER BY time_created DESC")
    planting = Planting(base.store, made, lambda: rows(base.path))
    names = new_ids(planting.found())
    assert isinstance(names, dict)
    changes = planting.changes()
    base.store.apply(changes)
    said = [(rowid, data) for rowid, data in base.run("SELECT rowid, data FROM message ORDER BY time_created DESC")]
    for old, new in names.items():
        order = [(rowid, data.replace(old, new)) for rowid, data in order]
    assert said == order
    base.store.apply(back(changes))
    assert base.run("SELECT rowid, data FROM message ORDER BY time_created DESC") == before


def test_what_a_staged_revert_will_take_comes_along_unchanged(plant: Plant) -> None:
    planting = plant(prompted(NOW - 60_000))
    newest = planting.session.messages
    kept = [m.id for m in newest if m.created > STARTED_AGAIN]
    changes = planting.changes(kept)
    same = [change for change in changes if change.before == change.after]
    assert len(same) == 2 and all(change.before for change in same)
    before = planting.look()
    planting.store.apply(changes)
    assert all_written(planting.store, changes)
    planting.store.apply(back(changes))
    assert planting.look() == before


def test_a_session_row_is_changed_but_never_made_or_removed(tmp_path: Path) -> None:
    base = Base(tmp_path / "opencode.db", OLD)
    made = prompted(NOW - 60_000)
    write_sqlite(made, base.path)
    image = base.store.read(f"session/{made.id}")
    before = rows(base.path)
    for bad in (Change(f"session/{made.id}", image, None), Change("session/ses_new", None, image)):
        with pytest.raises(StoreError):
            base.store.apply([bad])
    assert rows(base.path) == before


def test_a_way_of_naming_that_is_not_known_is_refused() -> None:
    escaped = b'{"id": "\\u006dsg_1"}'
    with pytest.raises(StoreError, match="in a way that recoveryd can't change"):
        replace_ids.replace(escaped, replace_ids.MESSAGE, {"msg_1": "msg_0"}, "a file")
    assert replace_ids.replace(b"[1]", replace_ids.MESSAGE, {"msg_1": "msg_0"}, "a file") == b"[1]"
    twice = b'{"x": {"id": "msg_1"}, "id": "msg_1", "y": {"id": "msg_1"}}'
    assert replace_ids.replace(twice, replace_ids.MESSAGE, {"msg_1": "msg_0"}, "") == twice.replace(
        b', "id": "msg_1"', b', "id": "msg_0"'
    )


@pytest.mark.parametrize("fault", [OSError(5, "I/O error"), KeyboardInterrupt()])
def test_a_fault_at_any_step_leaves_every_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    made = prompted(NOW - 60_000)
    root = tmp_path / "opencode" / "storage"
    write_tree(made, root)
    planting = Planting(OpencodeFiles(root), made, lambda: files(root))
    changes, before = planting.changes(), planting.look()
    names: list[str] = []
    monkeypatch.setattr(failpoint, "reach", names.append)
    planting.store.apply(changes)
    planting.store.apply(back(changes))
    for at in range(len(names) // 2):
        left = [at]

        def step(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise fault

        monkeypatch.setattr(failpoint, "reach", step)
        with pytest.raises((StoreError, KeyboardInterrupt)):
            planting.store.apply(changes)
        assert planting.look() == before, names[at]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "rows"])
def test_killed_at_any_step_it_is_as_it_was_or_healed(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.renaming_kills", kind, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False, cwd=Path.cwd())
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["killed"] > 10 and found["failed"] >= 1
    assert found["failed"] + found["healed"] <= found["killed"]


def test_many_files_are_put_on_the_disk_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = long()
    root = tmp_path / "opencode" / "storage"
    write_tree(made, root)
    planting = Planting(OpencodeFiles(root), made, lambda: files(root))
    waited: list[int] = []
    whole = flush._syncfs

    def counted(fd: int) -> None:
        waited.append(fd)
        whole(fd)

    monkeypatch.setattr(flush, "_syncfs", counted)
    if sys.platform == "linux":
        planting.store.apply(planting.changes())
        assert len(waited) == 2, "before the first rename, and at the end"
    assert flush.disk(root, flush.MANY - 1).at_once is False


def test_the_disk_says_what_goes_wrong(tmp_path: Path) -> None:
    if sys.platform == "linux":
        with pytest.raises(OSError, match="Bad file descriptor"):
            flush._syncfs(-1)
    with pytest.raises(FileNotFoundError):
        flush.Disk(tmp_path / "none", at_once=True).barrier()


def test_a_session_that_is_not_there_has_no_greatest_id(plant: Plant) -> None:
    planting = plant(plain())
    assert of_opencode(planting.store).greatest_id("ses_none") == ""
    assert of_opencode(planting.store).greatest_id(planting.planted.id) == max(
        m["id"] for m in planting.planted.messages
    )


@pytest.mark.parametrize("staged", [False, True])
def test_no_turn_comes_back_by_force_that_its_user_took_back_under_its_new_ids(plant: Plant, staged: bool) -> None:
    """Where the revert was staged before, it comes back, too, with all that the client took away for it."""
    made = plain(turns=3)
    old = [message["id"] for message in made.messages]
    made.session |= {"revert": {"messageID": old[6]}} if staged else {}
    planting = plant(made)
    changes = planting.changes()
    planting.store.apply(changes)
    there = {message.id for message in planting.session.messages[:6]}
    assert planting.store.content.homeless(changes, {message.id for message in planting.session.messages}) == set()
    found = planting.store.content.homeless(list(reversed(changes)), there)
    deleted = {f"/{message}" for message in old[6:]} | {f"/{part['id']}" for one in old[6:] for part in made.parts[one]}
    assert {f"/{key.rpartition('/')[2].removesuffix('.json')}" for key in found} == (set() if staged else deleted)


def test_what_a_staged_revert_took_along_comes_back_by_force(plant: Plant) -> None:
    planting = plant(prompted(NOW - 60_000))
    changes = planting.changes([m.id for m in planting.session.messages if m.created > STARTED_AGAIN])
    assert planting.store.content.homeless(changes, set()) == set()
