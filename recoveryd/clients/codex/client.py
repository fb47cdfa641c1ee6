"""Codex behind the port of a client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from recoveryd.clients.client import Client, ShellSettings, seen_here_alone
from recoveryd.clients.codex import rollout_paths, thread
from recoveryd.clients.codex.newest_turn import PROTOCOL
from recoveryd.clients.codex.settings import CodexSettings
from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.codex.thread_head import another
from recoveryd.clients.no_server import NoServer, WithoutServer
from recoveryd.clients.passed_symlinks import not_followed
from recoveryd.clients.store import Store
from recoveryd.clients.whose_subagent import lineage
from recoveryd.core import (
    Block,
    ConfigProblem,
    Editor,
    Failure,
    Kind,
    Marks,
    Message,
    RecordedError,
    RecoverydError,
    Session,
    Wire,
    kind_info,
)
from recoveryd.disk import group_by_place

_LOADING_S = 1.0  # `codex exec` begins its turn 0.1 s after it has read the thread (measured)


class Codex(WithoutServer):
    """The `Client` of Codex's threads."""

    name = "codex"
    edits_shift = True
    title = "Codex"
    server = NoServer(title)

    def __init__(self, settings: CodexSettings) -> None:
        self._settings = settings

    def advice(self, store: Store, failure: Failure, kind: Kind) -> str:
        if not kind_info(kind).shortened:
            return ""
        assert isinstance(store, CodexThreads)
        began = _opened_by(store, failure.session)
        if began != failure.session:
            return another(store.resume(began))
        return "`/compact` it, and where that is refused, start a new session"

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        """List those of homes that are there: who has no Codex has nothing of it watched."""
        if not self._settings.enabled:
            return ()
        homes = rollout_paths.there(env, self._settings.homes)
        folders = group_by_place(home / rollout_paths.SESSIONS for home in homes)
        return [CodexThreads(root, others) for root, *others in folders]

    def config_problems(self) -> Iterator[ConfigProblem]:
        for home in self._settings.homes:
            if not home.is_dir():
                missing = "is no folder" if home.exists() else "is not there"
                yield ConfigProblem("codex.homes", f"{home} {missing}.", "Name a folder that holds `sessions`.")
            elif not (home / rollout_paths.SESSIONS).is_dir():
                yield ConfigProblem(
                    "codex.homes",
                    f"{home} has no folder `{rollout_paths.SESSIONS}`.",
                    "Is it the one that CODEX_HOME names (usually ~/.codex)? `run` waits for a first session.",
                )

    def shell_settings(self, service: Client, env: Mapping[str, str], state: Path) -> ShellSettings:
        """Tell of a home that only `CODEX_HOME` names."""
        del state
        found = seen_here_alone(self, service, env)
        return ShellSettings({"homes": tuple(str(store.home) for store in found)})

    def passed_over(self, store: Store, stores: Sequence[Store]) -> RecoverydError | None:
        """Tell of symlinks, behind which the client itself goes on. By the real path of a thread that it went on with
        there it finds that thread from then on (0.169.0, 0.171.0).
        """
        return not_followed(rollout_paths.leading_out(store.root, [one.root for one in stores]), exchanged=True)

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        from recoveryd.clients.codex.wire import CodexWire  # late: a daemon that has nothing to heal needs none

        del store, failure
        return (CodexWire(),)

    def heals(self, kind: Kind, block: Block | None = None, error: RecordedError | None = None) -> bool:
        """Say no: what it mends before it sends anything, its wire shows."""
        del kind, block, error
        return False

    def editor(self, marks: Marks) -> Callable[[Session], Editor]:
        from recoveryd.clients.codex.editor import CodexEditor

        return partial(CodexEditor, marks=marks)

    def next_failure(self, session: Session) -> Failure | None:
        newest = session.newest
        meta = thread.about_thread(session)
        if newest is None:
            return None
        at = newest.completed or newest.created
        return Failure(
            session.store, session.id, newest.id, at, provider=str(meta.get("model_provider") or ""), protocol=PROTOCOL
        )

    def by_shell(self, message: Message) -> bool:
        return bool(message.data.get("shell"))

    def stopped(self, message: Message) -> bool:
        return bool(message.data.get("aborted"))

    def under_way(self, store: Store, session: str) -> str | None:
        assert isinstance(store, CodexThreads)
        return "a Codex has the thread open" if store.opened(session) is not None else None

    def has_read(self, store: Store, session: Session, failure: Failure, since: float) -> bool:
        """Go by when the thread was opened, if it was before the failure; else only `codex exec` tells, which reads it
        for one turn.
        """
        assert isinstance(store, CodexThreads)
        opened = store.opened(session.id)
        if opened is not None and opened <= failure.time / 1000:
            return opened > since
        turn = session.message(failure.message)
        return turn is not None and bool(turn.data.get("exec")) and turn.created > (since + _LOADING_S) * 1000

    def unread(self, store: Store, session: str, since: float, failure: Failure | None = None) -> str:
        del failure
        assert isinstance(store, CodexThreads)
        opened = store.opened(session)
        if opened is None or opened > since:
            return ""
        # Its TUI leaves a server behind, which keeps the thread: to reopen it is not enough (seen on 0.169.0).
        codex = rollout_paths.program(store.homes)
        ends = f"`{codex} app-server daemon restart` (which also ends what other threads are at)"
        return f"Codex has this thread open as it was before: close it, then {ends} and `{_resume(store, session)}`"

    def go_on(self, store: Store, session: str) -> str:
        return f"To go on: `{_resume(store, session)}`"


def _resume(store: Store, session: str) -> str:
    """Make the command that opens a thread: where its own id does not, by the thread which began it."""
    assert isinstance(store, CodexThreads)
    return store.resume(_opened_by(store, session))


def _opened_by(store: Store, session: str) -> str:
    """Return the thread by whose id one is opened; what can't be read now must not keep its user from being told."""
    assert isinstance(store, CodexThreads)
    with suppress(RecoverydError):
        return next((of for of, _ in lineage(store, session) if store.opens(of)), session)
    return session
