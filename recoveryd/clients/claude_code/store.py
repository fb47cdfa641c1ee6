"""The transcripts of one configuration folder of Claude Code, a `Store`: `projects/<project>/<session>.jsonl`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from recoveryd.clients import json_lines
from recoveryd.clients.claude_code import content as claude_code_content
from recoveryd.clients.claude_code import (
    edited_lines,
    line_file,
    running,
    session_status,
    transcript,
    transcript_paths,
)
from recoveryd.clients.claude_code.session_status import TranscriptStatus
from recoveryd.clients.claude_code.transcript_paths import SUFFIX, Found
from recoveryd.clients.growing_files import GrowingFiles
from recoveryd.clients.store import About, Content, Generation, SessionStatus
from recoveryd.core import (
    CUT_OFF,
    Change,
    DiskError,
    Edit,
    Entry,
    NotFoundError,
    RefusedError,
    Session,
    StoreError,
    UnknownKeyError,
    clean,
    command_line,
    keep_newest,
)
from recoveryd.disk import UNWRITABLE, group_by_place, is_folder, tree

TRANSCRIPTS = Generation("transcripts", "a growing file of lines for each session (Claude Code)")
_HEAD = 1 << 18  # bytes of a transcript in which its folder is told
_NEVER = (0, 0, 0)


class ClaudeCodeTranscripts(GrowingFiles[Found]):
    """The `Store` of Claude Code's transcripts. `root` is the client's `projects` folder."""

    kept_open = False
    keyed_by_place = False
    client = "claude_code"
    needs = os.R_OK | os.W_OK | os.X_OK  # a line is written in a new file beside the old one
    lacks = UNWRITABLE
    noun = "transcript"
    content: Content = claude_code_content

    def __init__(
        self,
        root: Path,
        others: Sequence[Path] = (),
        *,
        max_file: int = line_file.MAX_FILE,
        max_session: int = transcript.MAX_SESSION,
    ) -> None:
        super().__init__(root, others)
        self._max_session = max_session
        self.writes_to = (self.root,)
        self._max_file = max_file
        self._status: dict[str, TranscriptStatus] = {}
        self._abouts: dict[str, tuple[int, About]] = {}  # and the file's size, of which it was read
        self._elsewhere: dict[str, Found] = {}  # sessions that were written to in another file than the known one
        self._either: dict[str, Found] = {}  # of two files of a session the one that may be meant as well
        self._wrote: dict[Found, tuple[object, tuple[int, str]]] = {}  # of those in several folders: when and where

    def touched(self, names: Sequence[str]) -> Iterable[str | None]:
        found = transcript_paths.session_of(names)
        if found is None:
            return ()
        if self._files.get(found) != (place := tuple(names)):
            self._elsewhere[found] = place  # looked at by whoever looks next: this is the watcher's thread
        return (found,)

    def generation(self) -> Generation:
        return TRANSCRIPTS

    def look(self, session_id: str) -> SessionStatus:
        """Tell what is stuck now; read what was written since the last look, or else back to the last answer."""
        try:
            with self._open(session_id) as (fd, path, found):
                try:
                    side = transcript_paths.parent_of(found) is not None
                    forked = side and transcript.is_forked(os.pread(fd, json_lines.HEAD, 0))
                    status = session_status.read_on(fd, self.id, session_id, self._status.get(session_id), side=side)
                except OSError as error:
                    raise tree.error_of(error, f"read {path}") from error
        except NotFoundError:
            return SessionStatus()
        keep_newest(self._status, session_id, status)
        look = status.look(open_now=bool(status.working) and self.opened(session_id) is not None)
        return replace(look, of_parent=forked)

    def opened(self, session_id: str) -> float | None:
        """Tell since when a client that runs has the session (or that of a subagent), in seconds; None: none has."""
        parent = transcript_paths.parent_of(self._files.get(session_id, ()))
        since = (running.open_since(home, parent or session_id) for home in self.homes)
        return min((one for one in since if one is not None), default=None)

    def sent_before(self, session_id: str, message: str, since: float) -> bool:
        """Whether who was refused with a line had sent the session before `since`, in seconds. StoreError."""
        with self._open(session_id) as (fd, path, _):
            try:
                return session_status.sent_before(fd, message, int(since * 1000))
            except OSError as error:
                raise tree.error_of(error, f"read {path}") from error

    def background_job(self, session_id: str) -> str:
        """Name the job that has the session (or that of a subagent) open in the background; "" where none has."""
        parent = transcript_paths.parent_of(self._files.get(session_id, ()))
        return next(filter(None, (running.background_job(home, parent or session_id) for home in self.homes)), "")

    def about(self, session_id: str) -> About:
        try:
            with self._open(session_id) as (fd, path, found):
                size = os.fstat(fd).st_size
                read_of, about = self._abouts.get(session_id, (-1, About()))
                if read_of == size:
                    return about
                head = (line.raw for line in json_lines.forward(fd, path, most=_HEAD))
                read = transcript.read(chain(head, session_status.titles(fd, size) if size > _HEAD else ()), path)
        except NotFoundError:
            return About()
        except OSError as error:
            raise tree.error_of(error, f"read the transcript of {session_id}") from error
        about = About(read.title, read.directory, transcript_paths.parent_of(found))
        if about.directory:
            keep_newest(self._abouts, session_id, (size, about))
        return about

    def unreadable(self, session_id: str, *, whole: bool = False) -> bool:
        """Say no: a line that is no JSON, the client passes over."""
        del session_id, whole
        return False

    def load(self, session_id: str) -> Session:
        with self._open(session_id) as (fd, path, found):
            if session_id in self._either:
                raise self._unclear(f"Session {session_id} is in two folders", (found, self._either[session_id]))
            try:
                if os.fstat(fd).st_size > self._max_file:
                    raise StoreError(f"{path} is too large: at most {self._max_file:,} bytes are read.")
                read = transcript.read(
                    (line.raw for line in json_lines.forward(fd, path, torn=True)), path, self._max_session
                )
            except OSError as error:
                raise tree.error_of(error, f"read {path}") from error
        return transcript.session(self.id, session_id, read, transcript_paths.parent_of(found))

    def changes(self, session: Session, edits: Sequence[Edit]) -> list[Change]:
        """Make one change for each line, all of them in the session's own file."""
        return edited_lines.changes(session, edits, "/".join(self._find(session.id)))

    def apply(self, changes: Sequence[Change]) -> None:
        """Write all of `changes`, durably, or none: they are of one file. What the client appends meanwhile stays."""
        dead = self.live()
        if dead:
            raise DiskError(dead)
        of_file = self._by_file(changes)
        if len(of_file) > 1:
            raise StoreError("Lines of several transcripts were to be changed at once.")
        for file, of_line in of_file.items():
            try:
                line_file.write_lines(self.root, file, of_line)
            except FileNotFoundError:
                raise self._missing(file[-1].removesuffix(SUFFIX)) from None
            except OSError as error:
                raise tree.error_of(error, f"write to {self.root}") from error

    def read(self, key: str) -> bytes | None:
        return self.read_all([key])[0]

    def read_all(self, keys: Sequence[str]) -> list[bytes | None]:
        """Read many records, each file once."""
        asked = [edited_lines.split_key(key) for key in keys]
        found: dict[tuple[tuple[str, ...], str], bytes] = {}
        for file in dict.fromkeys(file for file, _ in asked):
            try:
                lines = line_file.read_lines(self.root, self._place(file), {uuid for of, uuid in asked if of == file})
            except FileNotFoundError:
                continue
            except OSError as error:
                raise tree.error_of(error, f"read {'/'.join(file)}") from error
            found |= {(file, uuid): raw for uuid, raw in lines.items()}
        return [found.get(one) for one in asked]

    def undo_obstacle(self, entry: Entry, changes: Sequence[Change]) -> RefusedError | None:
        """Refuse where a line that was changed is gone from its transcript (an older copy was put back): there is no
        place to put it. Not of one that was cut off, which is brought to an end by what is there.
        """
        if entry.outcome in CUT_OFF or not self.has(entry.session):
            return None
        if all(now is not None for now in self.read_all([change.key for change in changes])):
            return None
        why = f"Lines that {entry.id} changed are not in their transcript any more, so it can't be undone:"
        export = command_line("ledger", "export", entry.id)
        return RefusedError(f"{why} an older copy was put back, say.", f"What it changed, as it was before: {export}")

    def clean(self, changes: Iterable[Change]) -> int:
        """Remove what a crash left where `changes` were being written, and take over what only the old file has."""
        now = {file: self._place(file) for file in {edited_lines.split_key(change.key)[0] for change in changes}}
        left = {(where, place) for file, place in now.items() for where in (file, place)}
        try:
            # A project that was renamed may have left a symlink.
            return sum(line_file.clean(self.root, *one) for one in left if not (self.root / one[0][0]).is_symlink())
        except OSError as error:
            raise tree.error_of(error, f"clean up in {self.root}") from error

    def _by_file(self, changes: Iterable[Change]) -> dict[Found, dict[str, Change]]:
        found: dict[Found, dict[str, Change]] = {}
        for change in changes:
            file, uuid = edited_lines.split_key(change.key)
            of_file = found.setdefault(self._place(file), {})
            if uuid in of_file:
                raise StoreError("One record was to be changed twice at once.")
            of_file[uuid] = change
        return found

    def _place(self, file: Found) -> Found:
        """Tell where the file is now that a key names: its session may have been moved to another project's folder
        since, by `/cd` (2.1.330), by leaving a worktree, or by its user. StoreError; OSError is none.
        """
        if not transcript_paths.is_transcript(file):  # also what an older recoveryd took for one: it may be undone
            raise UnknownKeyError(f"{'/'.join(file)!r} is no record of this store.")
        try:
            if self._is_file(file):
                return file
            projects = filter(tree.safe_name, tree.names(self.root))
            found = [moved for project in projects if self._is_file(moved := (project, *file[1:]))]
        except OSError as error:
            raise tree.error_of(error, f"look for {self._path(file)}") from error
        if len(found) > 1:
            raise self._unclear(f"{self._path(file)} is not there any more", found)
        return found[0] if found else file

    def _is_file(self, found: Found) -> bool:
        """Whether a regular file is there, and no folder above it leads elsewhere. DiskError, OSError."""
        try:
            with tree.folder(self.root, *found[:-1]) as folder:
                return stat.S_ISREG(os.stat(found[-1], dir_fd=folder, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False
        except StoreError as error:
            if isinstance(error, DiskError):
                raise
            return False

    @contextmanager
    def _open(self, session_id: str) -> Iterator[tuple[int, str, Found]]:
        """Open a session's file; return its descriptor, what to call it, and where it is. NotFoundError, StoreError."""
        found = self._find(session_id)
        path = self._path(found)
        try:
            fd = self._opened(found)
        except FileNotFoundError:
            self._files.pop(session_id, None)
            raise self._missing(session_id) from None
        try:
            self._own(fd, path)
            yield fd, path, found
        finally:
            os.close(fd)

    def _opened(self, found: Found) -> int:
        with tree.folder(self.root, *found[:-1]) as folder:
            return line_file.opened(folder, found[-1], self._path(found))

    def _path(self, found: Found) -> str:
        return "/".join((str(self.root), *found))

    def _missing(self, session_id: str) -> NotFoundError:
        return NotFoundError(f"There is no transcript of session {clean(session_id, 80)}.")

    def _unclear(self, why: str, places: Sequence[Found]) -> StoreError:
        where = " and ".join(map(self._path, sorted(places)))
        way_on = "Move the one that is not used out of the folder, and try again."
        return StoreError(f"{why}, and it is not known which is it now: {where}.", way_on)

    def _find(self, session_id: str) -> Found:
        """Find where a session is. NotFoundError."""
        found, other = self._files.get(session_id), self._elsewhere.pop(session_id, None)
        if found is None or session_id in self._either or not os.path.lexists(self._path(found)):
            found = self._list().get(session_id)
        elif other is not None:
            found = self._files[session_id] = self._chosen(session_id, found, other)
        if found is None:
            raise self._missing(session_id)
        return found

    def _list(self) -> dict[str, Found]:
        """List all sessions."""
        found: dict[str, Found] = {}
        self._elsewhere, self._either = {}, {}  # what is touched from now on may be passed by already
        for names in transcript_paths.listed(self.root):
            session = transcript_paths.session_of(names)
            if session is None:
                continue
            found[session] = self._chosen(session, found.get(session, names), names)
        self._files = found
        return found

    def _chosen(self, session_id: str, one: Found, other: Found) -> Found:
        """Choose between two files of a session: the one that its client wrote last, so not a copy that it did not go
        on with. The client itself takes the one of the folder that it is started in (2.1.332).
        """
        if one == other:
            return one
        of_one, of_other = self._written(one), self._written(other)
        if of_one == of_other != _NEVER:
            self._either[session_id] = min(one, other)
        elif of_one < of_other:
            self._either.pop(session_id, None)
        return max((of_one, one), (of_other, other))[1]

    def _written(self, found: Found) -> tuple[int, int, int]:
        """Tell when a client wrote to a file, how surely it worked in its folder, and when the file changed."""
        try:
            status = os.lstat(self._path(found))
            stamp = status.st_ino, status.st_size, status.st_ctime_ns
            known, wrote = self._wrote.get(found, (None, (0, "")))
            if known != stamp:
                with os.fdopen(self._opened(found), "rb") as file:
                    wrote = session_status.written(file.fileno())
                self._wrote[found] = stamp, wrote
        except (OSError, StoreError):  # told by whoever reads it
            return _NEVER
        at, directory = wrote
        near = transcript_paths.nearness(found[0], directory) if is_folder(Path(directory)) else 0
        return at, near, status.st_mtime_ns


def find_stores(homes: Sequence[Path]) -> list[ClaudeCodeTranscripts]:
    """Make one store for each configuration folder of Claude Code."""
    folders = group_by_place(home / transcript_paths.PROJECTS for home in homes)
    return [ClaudeCodeTranscripts(root, others) for root, *others in folders]
