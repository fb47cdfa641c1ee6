"""The threads of one home of Codex, a `Store`: `sessions/YYYY/MM/DD/` and, beside it, `archived_sessions/`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from recoveryd.clients import json_lines
from recoveryd.clients.codex import content as codex_content
from recoveryd.clients.codex import (
    edited_lines,
    in_place,
    newest_turn,
    open_threads,
    rollout_paths,
    state_database,
    thread,
    thread_head,
)
from recoveryd.clients.codex.newest_turn import NewestTurns
from recoveryd.clients.growing_files import GrowingFiles
from recoveryd.clients.store import About, Content, Generation, SessionStatus
from recoveryd.core import (
    CUT_OFF,
    Change,
    DiskError,
    Edit,
    Entry,
    FormError,
    NotFoundError,
    RefusedError,
    Session,
    StoreError,
    clean,
    command_line,
    keep_newest,
)
from recoveryd.disk import is_folder, tree

_HEAD = 1 << 18  # bytes from the beginning of a rollout in which its first prompt stands
_TITLE = 60  # characters

ROLLOUTS = Generation("rollouts", "a growing file of lines for each thread (Codex)")

Found = tuple[tuple[str, ...], str]  # folders below the home, and a file name


class CodexThreads(GrowingFiles[Found]):
    """The `Store` of Codex's threads. `root` is the client's `sessions` folder."""

    kept_open = True
    keyed_by_place = True
    client = "codex"
    noun = "rollout"
    content: Content = codex_content

    def __init__(self, root: Path, others: Sequence[Path] = ()) -> None:
        super().__init__(root, others)
        self._by_file: dict[str, Found] = {}  # files by their own ids: a thread has several once turns were taken back
        self._packed: dict[str, Found] = {}  # threads that the client has compressed
        self._turns: dict[str, NewestTurns] = {}
        self._abouts: dict[str, About] = {}

    @property
    def writes_to(self) -> tuple[Path, ...]:
        """The threads' folder, and that of archived ones once it is there: nothing else of the home, which has keys."""
        archive = self.home / rollout_paths.ARCHIVE
        return (self.root, archive) if is_folder(archive) else (self.root,)

    def touched(self, names: Sequence[str]) -> Iterable[str | None]:
        found = rollout_paths.thread_of(names[-1]) if len(names) <= rollout_paths.DEPTH + 1 else None
        if found is None:
            return ()
        known, place = self._files.get(found), ((rollout_paths.SESSIONS, *names[:-1]), names[-1])
        if known is not None and known < place:  # its user took turns back: it goes on in another file
            self._files[found] = place
        return (found,)

    def generation(self) -> Generation:
        return ROLLOUTS

    def look(self, session_id: str) -> SessionStatus:
        """Tell what is stuck now; read what was written since the last look, or else back to the last answer."""
        try:
            with self._open(session_id) as (fd, path):
                try:
                    turns = newest_turn.read_on(fd, self.id, session_id, self._turns.get(session_id))
                    if turns.failures and not turns.asked[0]:
                        provider = thread_head.meta_of(json_lines.line_at(fd, 0, path)).get("model_provider")
                        turns = turns.of(clean(provider, 80) if isinstance(provider, str) else "")
                except OSError as error:
                    raise tree.error_of(error, f"read {path}") from error
        except NotFoundError:
            return SessionStatus()
        keep_newest(self._turns, session_id, turns)
        return turns.look(open_now=bool(turns.running) and self.opened(session_id) is not None)

    def about(self, session_id: str) -> About:
        """Return what is known of a thread; its title is what its user asked first."""
        known = self._abouts.get(session_id)
        if known is not None:
            return known
        try:
            with self._open(session_id) as (fd, path):
                found = thread_head.about(json_lines.forward(fd, path, most=_HEAD), _TITLE)
        except NotFoundError:
            return About()
        except OSError as error:
            raise tree.error_of(error, f"read the rollout of {session_id}") from error
        if found.title:
            keep_newest(self._abouts, session_id, found)
        return found

    def has(self, session_id: str) -> bool:
        """Whether it has the thread. FormError where the client keeps it compressed."""
        if super().has(session_id):
            return True
        packed = self._packed.get(session_id)
        if packed is None:
            return False
        raise FormError(
            f"Codex keeps thread {session_id} compressed, which recoveryd does not read: {self._path(packed)}.",
            f"Codex writes it out again once it opens it, then try this again: {self.resume(session_id)}",
        )

    def opens(self, session_id: str) -> bool:
        """Whether the client opens the thread by its own id, and not by that of the one whose agent it is alone."""
        try:
            with self._open(session_id) as (fd, path):
                return thread_head.opens(thread_head.meta_of(json_lines.line_at(fd, 0, path)))
        except NotFoundError:
            return True
        except OSError as error:
            raise tree.error_of(error, f"read the rollout of {session_id}") from error

    def resume(self, session_id: str) -> str:
        """Make the command that opens a thread. What can't be found now must not keep its user from being told."""
        found = self._packed.get(session_id)
        with suppress(NotFoundError, StoreError):
            found = self._find(session_id)
        archived = found is not None and found[0][0] == rollout_paths.ARCHIVE
        return rollout_paths.resume(self.homes, session_id, archived=archived)

    def unreadable(self, session_id: str, *, whole: bool = False) -> bool:
        """Whether the client can't open the thread: by its first line, and its last."""
        del whole
        try:
            with self._open(session_id) as (fd, path):
                return newest_turn.is_damaged(fd, path, most=_HEAD)
        except NotFoundError:
            return False
        except OSError as error:
            raise tree.error_of(error, f"read the rollout of {session_id}") from error

    def load(self, session_id: str) -> Session:
        """Load what is still sent of a thread. StoreError where it is not safe to say what the client makes of it."""
        self._list()  # it may go on in another file by now
        with self._open(session_id) as (fd, path):
            kept = state_database.moved_to(self.home, session_id, path)
            if kept is not None:
                raise StoreError(
                    f"{path} is left alone: Codex's own database says that the thread is in {clean(kept, 400)}."
                )
            try:
                lines = json_lines.forward(fd, path)
                return thread.assemble(self.id, session_id, path, self.about(session_id).title, lines, self.resume)
            except OSError as error:
                raise tree.error_of(error, f"read {path}") from error

    def changes(self, session: Session, edits: Sequence[Edit]) -> list[Change]:
        """Make one change for each line, in its length. StoreError for what does not fit into it."""
        return edited_lines.changes(session, edits, rollout_paths.file_of(self._find(session.id)[1]))

    def apply(self, changes: Sequence[Change]) -> None:
        dead = self.live()
        if dead:
            raise DiskError(dead)
        for name, placed in _of_files(changes).items():
            if len({offset for offset, _ in placed}) != len(placed):
                raise StoreError("One record was to be changed twice at once.")
            with self._writing(name) as (fd, path):
                in_place.write_in_place(fd, path, placed)

    def read(self, key: str) -> bytes | None:
        name, offset = edited_lines.split_key(key)
        try:
            with self._open(name, file=True) as (fd, path):
                return json_lines.line_at(fd, offset, path)
        except NotFoundError:
            return None
        except OSError as error:
            raise tree.error_of(error, f"read {key}") from error

    def read_all(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self.read(key) for key in keys]

    def clean(self, changes: Iterable[Change]) -> int:
        """Take back the lines that a crash left half written."""
        torn = 0
        for name, placed in _of_files(changes).items():
            with suppress(NotFoundError), self._open(name, file=True) as (fd, path):
                halves = [one for one in placed if in_place.is_half(fd, path, one)]
                if halves:
                    with self._writing(name) as (writable, _):
                        torn += in_place.finish(writable, path, halves)
        return torn

    def located(self, changes: Sequence[Change]) -> list[Change]:
        """Find the file of lines whose keys have the thread's id: once these were of its newest file, whichever that
        was. What stands in none stays that of the first.
        """
        for thread_id in {edited_lines.split_key(change.key)[0] for change in changes}:  # a repair is of one file
            for file in chain((thread_id,), self._files_of(thread_id)):
                found = [edited_lines.in_file(change, file) for change in changes]
                if all(in_place.is_image(self.read(one.key), one) for one in found):
                    return found
        return list(changes)

    def _files_of(self, thread_id: str) -> Iterator[str]:
        """List the files of a thread, oldest first, by their own ids."""
        self._list()
        names = sorted(name for _, name in self._by_file.values() if rollout_paths.thread_of(name) == thread_id)
        yield from map(rollout_paths.file_of, names)

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        """Refuse where the client wrote the thread anew since, and its lines stand elsewhere (`migrate-rollouts`)."""
        found = zip(changes, self.read_all([change.key for change in changes]), strict=True)
        loose = entry.outcome in CUT_OFF or len([*self._files_of(entry.session)]) < 2  # of several, it may be another
        if not self.has(entry.session) or all(
            now in (change.before, change.after) or (loose and now and len(now) == len(change.before or b""))
            for change, now in found
        ):
            return None
        why = f"The lines of thread {entry.session} are not where they were: nothing of {entry.id} can be put back."
        return RefusedError(why, f"What it changed, as it was before: {command_line('ledger', 'export', entry.id)}")

    def opened(self, session_id: str) -> float | None:
        """Tell since when a client has the thread open, in seconds since the epoch; None when none has."""
        if not rollout_paths.is_thread(session_id):
            return None
        locks = (home / rollout_paths.LOCKS / f"{session_id}.lock" for home in self.homes)
        since = map(open_threads.open_since, locks)
        return min((one for one in since if one is not None), default=None)

    @contextmanager
    def _open(self, name: str, access: int = os.O_RDONLY, *, file: bool = False) -> Iterator[tuple[int, str]]:
        """Open a thread's newest file, or the `file` of this id; return its descriptor, and what to call it.
        NotFoundError; StoreError for no file of this user.
        """
        try:
            fd, path = self._opened(self._find(name, file=file), access)
        except FileNotFoundError:  # it was archived since it was last seen
            self._list()
            try:
                fd, path = self._opened(self._find(name, file=file), access)
            except FileNotFoundError:
                raise self._missing(name) from None
        try:
            self._own(fd, path)
            yield fd, path
        finally:
            os.close(fd)

    def _opened(self, found: Found, access: int) -> tuple[int, str]:
        (folders, name), path = found, self._path(found)
        with tree.folder(self._top(folders[0]), *folders[1:]) as folder:
            return tree.opened(folder, name, path, access), path

    @contextmanager
    def _writing(self, name: str) -> Iterator[tuple[int, str]]:
        try:
            with self._open(name, os.O_RDWR, file=True) as (fd, path):
                yield fd, path
        except OSError as error:
            raise tree.error_of(error, f"write to the rollout of {name}") from error

    def _path(self, found: Found) -> str:
        (top, *folders), name = found
        return "/".join((str(self._top(top)), *folders, name))

    def _top(self, name: str) -> Path:
        """Return the folder of threads in use, which may be on another disk, or that of archived ones."""
        return self.root if name == rollout_paths.SESSIONS else self.home / name

    def _missing(self, session_id: str) -> NotFoundError:
        return NotFoundError(f"There is no rollout of thread {clean(session_id, 60)}.")

    def _find(self, session_id: str, *, file: bool = False) -> Found:
        """Tell where a thread's newest file is, or the `file` of this id."""
        if not rollout_paths.is_thread(session_id):
            raise self._missing(session_id)
        found = (self._by_file if file else self._files).get(session_id)
        if found is None:
            self._list()
            found = (self._by_file if file else self._files).get(session_id)
        if found is None:
            raise self._missing(session_id)
        return found

    def _list(self) -> dict[str, Found]:
        """List all threads, each with its newest file; an archived one only where it is nowhere else. StoreError."""
        found: dict[str, Found] = {}
        by_file: dict[str, Found] = {}
        packed: dict[str, Found] = {}
        for top in (rollout_paths.ARCHIVE, rollout_paths.SESSIONS):
            of_top: dict[str, Found] = {}
            files: dict[str, Found] = {}
            for folders, name in self._names((top,), rollout_paths.DEPTH):
                if packed_id := rollout_paths.packed_thread_of(name):
                    packed[packed_id] = (folders, name)
                thread_id = rollout_paths.thread_of(name)
                if thread_id is not None:
                    file_id = rollout_paths.file_of(name)
                    of_top[thread_id] = max(of_top.get(thread_id, ((), "")), (folders, name))
                    files[file_id] = max(files.get(file_id, ((), "")), (folders, name))
            found.update(of_top)
            by_file.update(files)
        self._files, self._by_file, self._packed = found, by_file, packed
        return found

    def _names(self, folders: tuple[str, ...], deeper: int) -> Iterator[Found]:
        """List the files in a folder and, so many folders deeper, in those named for a year, a month or a day."""
        below: list[str] = []
        top, *inner = folders
        with suppress(FileNotFoundError), tree.folder(self._top(top), *inner) as fd, os.scandir(fd) as entries:
            for entry in entries:
                if deeper and entry.name.isdecimal() and entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                else:
                    yield folders, entry.name
        for name in below:
            yield from self._names((*folders, name), deeper - 1)


def _of_files(changes: Iterable[Change]) -> dict[str, list[in_place.Placed]]:
    found: dict[str, list[in_place.Placed]] = {}
    for change in changes:
        name, offset = edited_lines.split_key(change.key)
        found.setdefault(name, []).append((offset, change))
    return found
