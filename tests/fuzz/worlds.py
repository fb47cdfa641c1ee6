"""The stores of OpenCode, filled with hostile sessions, and what lies around them and may never change."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.store import Store
from tests.fuzz.mutate import garbled, mutated
from tests.fuzz.patients import patient
from tests.support.build import Planted
from tests.support.database import NEW, SCHEMAS
from tests.support.plant import write_sqlite, write_tree

Snapshot = dict[str, Any]
_SHOWN = 2_000_000  # bytes of a record; of a larger one its length is enough
_CUT = "tool-output"  # where the whole of what is cut is put: the client empties it, an undo need not
LARGE = 100_000_000  # bytes; more than a store reads of one record


class World(Protocol):
    """A store in a folder of its own; `root` holds nothing else."""

    root: Path
    store: Store

    def fill(self, rng: random.Random, many: int) -> Sequence[str]:
        """Write so many sessions, some of their records made hostile; their ids."""

    def snapshot(self) -> Snapshot:
        """All that the store holds."""


class Outside:
    """A folder beside the stores, full of names that hostile links and ids lead to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("x", "x.json", "part/msg_1/prt_1.json", "message/ses_1/msg_1.json"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text('{"role": "assistant", "type": "text", "text": " "}')

    def snapshot(self) -> Snapshot:
        return files(self.root)


class _OpenCode:
    """What OpenCode's stores are filled with."""

    def fill(self, rng: random.Random, many: int) -> Sequence[str]:
        patients = [patient(rng) for _ in range(many)]
        for planted in patients:
            self.plant(rng, planted)
        return [planted.id for planted in patients]

    def plant(self, rng: random.Random, planted: Planted) -> None:
        raise NotImplementedError


class TreeWorld(_OpenCode):
    """A JSON tree."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.root = root / "opencode"
        self.store: Store = OpencodeFiles(self.root / "storage")
        self._storage = self.root / "storage"
        self._storage.mkdir(parents=True)
        self._outside = outside

    def plant(self, rng: random.Random, planted: Planted) -> None:
        write_tree(planted, self._storage)
        parts = [f"part/{m}/{p['id']}.json" for m, found in planted.parts.items() for p in found]
        messages = [f"message/{planted.id}/{m['id']}.json" for m in planted.messages]
        for _ in range(rng.choice((1, 1, 2, 3))):
            # The last message is the failure: where that can't be read, nothing is tried at all.
            key = rng.choice(rng.choice((parts or messages, parts or messages, messages[:-1], messages)))
            if rng.random() < 0.05:
                key = f"session/global/{planted.id}.json"
            path = self._storage / key
            with suppress(OSError):  # the name or a folder may be none any more
                if path.parent.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
                    continue  # what is odd already would lead elsewhere, or never end
                if rng.random() < 0.12:
                    rng.choice((*ODD_FILES, _folder_link))(rng, path, self._outside)
                else:
                    path.write_bytes(_hostile(rng, _record(planted, path.stem)))

    def snapshot(self) -> Snapshot:
        return files(self.root)


class RowWorld(_OpenCode):
    """A database, whose tables take what those of the client would not: NULLs, and rows of nobody.

    `client`, `title`: whose it is, OpenCode's or a fork's.
    """

    def __init__(
        self, root: Path, outside: Path, version: str, client: str = "opencode", title: str = "OpenCode"
    ) -> None:
        self.root = root / f"{client}-rows-{version}"
        self.root.mkdir(parents=True)
        self._path = self.root / f"{client}.db"
        with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(SCHEMAS[version].replace(" NOT NULL", ""))
        self.store: Store = OpencodeSqlite(self._path, busy_s=0.1, client=client, title=title)
        self._events = version == NEW

    def plant(self, rng: random.Random, planted: Planted) -> None:
        write_sqlite(planted, self._path)
        parts = [("part", p["id"]) for found in planted.parts.values() for p in found]
        messages = [("message", m["id"]) for m in planted.messages]
        with closing(sqlite3.connect(self._path, isolation_level=None)) as db:
            db.execute("BEGIN")
            for _ in range(rng.choice((1, 1, 2, 3))):
                table, name = rng.choice(rng.choice((parts or messages, parts or messages, messages[:-1], messages)))
                if rng.random() < 0.15:
                    rng.choice(_ROWS)(rng, db, table, name, planted)
                else:
                    raw = _hostile(rng, _record(planted, name))
                    how = "?" if rng.random() < 0.1 else "CAST(? AS TEXT)"
                    db.execute(f"UPDATE {table} SET data = {how} WHERE id = ?", (raw, name))
            if self._events:
                said = planted.id if rng.random() < 0.9 else rng.choice(_VALUES)
                db.execute("INSERT INTO event_sequence VALUES (?, 0, NULL)", (planted.id,))
                row = (
                    f"evt_{planted.id}",
                    said,
                    rng.choice((rng.getrandbits(40), None)),
                    rng.choice(("message.updated.1", *_VALUES)),
                    "{}",
                )
                db.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?)", row)
            db.execute("COMMIT")

    def snapshot(self) -> Snapshot:
        with closing(sqlite3.connect(self._path)) as db:
            db.text_factory = bytes
            names = (path.name for path in self.root.iterdir())
            found: Snapshot = {"files": sorted(name for name in names if name != _CUT)}
            for table in ("session", "message", "part"):
                columns = "*"
                if table != "session":
                    owner = ", message_id" if table == "part" else ""
                    data = f"iif(length(data) > {_SHOWN}, length(data), data), typeof(data)"
                    columns = f"id, session_id{owner}, time_created, typeof(time_created), time_updated, {data}"
                # By what a row holds: its rowid means nothing here, and its id may be NULL.
                rows = Counter(db.execute(f"SELECT {columns} FROM {table}").fetchall())
                found |= {f"{table} {row!r}": count for row, count in rows.items()}
            return found


def _hostile(rng: random.Random, record: Any) -> bytes:
    return record if isinstance(record, bytes) else mutated(rng, record)


def _record(planted: Planted, name: str) -> Any:
    """What is to be changed: the record of this id, or the garbage that it has instead."""
    if name in planted.raw:
        return garbled(random.Random(name), planted.raw[name])
    every = [planted.session, *planted.messages, *(part for found in planted.parts.values() for part in found)]
    return next(record for record in every if record["id"] == name)


def files(root: Path) -> Snapshot:
    found: Snapshot = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        if os.fsencode(_CUT) in folders:
            folders.remove(os.fsencode(_CUT))
        for name in [*folders, *names]:
            path = folder + b"/" + name
            about = os.lstat(path)
            content: Any = None
            if stat.S_ISLNK(about.st_mode):
                content = os.readlink(path)  # noqa: PTH115 - bytes
            elif stat.S_ISREG(about.st_mode):
                content = Path(os.fsdecode(path)).read_bytes() if about.st_size < _SHOWN else about.st_size
            found[os.fsdecode(path)] = about.st_mode, about.st_uid, content
    return found


# What may stand where a file of the client should.


def _bare(path: Path) -> Path:
    path.unlink()
    return path


def _pipe(rng: random.Random, path: Path, outside: Path) -> None:
    os.mkfifo(_bare(path))


def _device(rng: random.Random, path: Path, outside: Path) -> None:
    kind, number = rng.choice(((stat.S_IFCHR, os.makedev(1, 5)), (stat.S_IFSOCK, 0)))  # /dev/zero never ends
    os.mknod(_bare(path), kind | 0o666, number)


def _link(rng: random.Random, path: Path, outside: Path) -> None:
    _bare(path).symlink_to(rng.choice((outside / "x.json", path, path.parent, Path("../../../../outside/x.json"))))


def _folder(rng: random.Random, path: Path, outside: Path) -> None:
    _bare(path).mkdir()
    if rng.random() < 0.5:
        (path / "prt_1.json").write_text("{}")


def _folder_link(rng: random.Random, path: Path, outside: Path) -> None:
    """The whole folder of a message's parts, or of a session's messages, leads elsewhere, or is no folder."""
    folder = path.parent
    if folder.name == "global":
        return  # of all sessions
    folder.rename(folder.with_name(".aside"))
    way = rng.randrange(3)
    if way == 0:
        folder.symlink_to(outside / "part" / "msg_1")
    elif way == 1:
        os.mkfifo(folder)
    else:
        folder.write_text("{}")


def _large(rng: random.Random, path: Path, outside: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(LARGE)


def _more(rng: random.Random, path: Path, outside: Path) -> None:
    """Names beside it that no client makes."""
    odd = (
        "prt_x.json.tmp",
        " .json",
        "a\nb.json",
        "..json",
        "x" * 250 + ".json",
        "\udcff.json",
        ".prt_x.json",
        "prt_$.json",
    )
    for name in rng.sample(odd, 3):
        os.close(os.open(os.fsencode(path.parent / name), os.O_CREAT | os.O_WRONLY))


def _mode(rng: random.Random, path: Path, outside: Path) -> None:
    path.chmod(rng.choice((0o000, 0o444, 0o777, 0o4755)))


ODD_FILES: tuple[Callable[[random.Random, Path, Path], None], ...]
ODD_FILES = (_pipe, _device, _link, _folder, _more, _mode, _pipe, _link, _folder, _more, _large)

# What may stand in a column.
_VALUES = (
    None,
    b"\xff\x00",
    5,
    5.5,
    -1,
    2**63 - 1,
    -(2**63),
    1e300,
    "",
    "../../x",
    "a\0b",
    "x" * 100_000,
    "ses_1",
    b"",
)


def _column(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    columns = ("id", "session_id", "time_created", "time_updated", "data", *(("message_id",) * (table == "part")))
    with suppress(sqlite3.IntegrityError):
        db.execute(f"UPDATE {table} SET {rng.choice(columns)} = ? WHERE id = ?", (rng.choice(_VALUES), name))


def _no_session(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    db.execute("DELETE FROM session WHERE id = ?", (planted.id,))


def _session(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    column = rng.choice(("parent_id", "directory", "title", "revert", "revert", "time_updated"))
    value = rng.choice((*_VALUES, mutated(rng, {"messageID": name, "partID": name})))
    db.execute(f"UPDATE session SET {column} = ? WHERE id = ?", (value, planted.id))


def _foreign(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    """A record of another session, or a part of another message, by what the columns say."""
    where = rng.choice(("session", "message") if table == "part" else ("session",))
    ids = [str(i) for (i,) in db.execute(f"SELECT id FROM {where} LIMIT 5")]
    if ids:
        db.execute(f"UPDATE {table} SET {where}_id = ? WHERE id = ?", (rng.choice(ids), name))


def _nobodys(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    """One more row, with an id that no client makes."""
    odd = rng.choice((None, b"prt\xff", "", "../../x", "prt_\n", "prt_" + "x" * 70_000, "msg_\0", 7))
    with suppress(sqlite3.IntegrityError):
        if table == "part":
            row: tuple[Any, ...]
            row = odd, rng.choice(planted.messages)["id"], planted.id, 1, 1, '{"type":"text","text":" "}'
            db.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        else:
            row = odd, planted.id, rng.choice((1, 2**62)), 1, '{"role":"assistant"}'
            db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)


def _large_row(rng: random.Random, db: sqlite3.Connection, table: str, name: str, planted: Planted) -> None:
    if rng.random() < 0.02:
        db.execute(f"UPDATE {table} SET data = zeroblob(?) WHERE id = ?", (LARGE, name))


_ROWS: tuple[Callable[[random.Random, sqlite3.Connection, str, str, Planted], None], ...]
_ROWS = (_column, _column, _column, _no_session, _session, _foreign, _nobodys, _large_row)
