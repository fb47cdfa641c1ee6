"""Claude Code behind the port of a client."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from recoveryd.clients.claude_code import transcript_paths
from recoveryd.clients.claude_code.session_status import PROVIDER
from recoveryd.clients.claude_code.settings import ClaudeCodeSettings
from recoveryd.clients.claude_code.store import ClaudeCodeTranscripts, find_stores
from recoveryd.clients.claude_code.transcript import model_of
from recoveryd.clients.client import Client, ShellSettings, seen_here_alone
from recoveryd.clients.home_setting import home_setting
from recoveryd.clients.no_server import NoServer, WithoutServer
from recoveryd.clients.passed_symlinks import not_followed
from recoveryd.clients.store import Store
from recoveryd.clients.whose_subagent import is_of_subagent
from recoveryd.core import (
    Block,
    ConfigProblem,
    Editor,
    Failure,
    Json,
    Kind,
    Marks,
    Message,
    RecordedError,
    RecoverydError,
    Session,
    Wire,
    explained_by,
    kind_info,
)

_REMOTE = frozenset({"url", "file"})
_HEARD = (400, 413, None)  # the status of what it listens to (older ones did not always record it)
# The words of a refusal, in small letters and without "`", by which 2.1.330 takes thinking, images or documents away.
_OF_THINKING = re.compile(
    r"signature in thinking block|invalid data in redacted_thinking block|not created in this conversation"
    r"|bound to a different conversation|thinking\.signature.*field required|field required.*thinking\.signature"
    r"|(thinking block|redacted_thinking).*(cannot be modified|invalid signature)"
    r"|(cannot be modified|invalid signature).*(thinking block|redacted_thinking)",
    re.DOTALL,
)
_OF_MEDIA = re.compile(
    r"messages[.[]\d+[\].]+content[.[]\d+[\].]+(tool_result[.[]content[.[]\d+[\].]+)?(image|document|pdf)"
    r"|could not process (image|pdf)|image exceeds|image dimensions exceed|image file is empty|too much media"
    r"|image does not match the provided media type|(image|pdf) cannot be empty"
    r"|exceeds api limit|images exceed the api limit|unable to (resize|compress) image|does not support pdf( input|s)"
    r"|pdf pages|the pdf specified was not valid|the pdf specified is password protected|request_too_large"
    # Its own, where it kept no more of the refusal.
    r"|image was too large|exceeds the dimension limit for many-image|pdf too large|pdf is password protected"
    r"|the pdf file was not valid"
)


class ClaudeCode(WithoutServer):
    """The `Client` of Claude Code's transcripts."""

    name = "claude_code"
    title = "Claude Code"
    mends = "the newest Claude Code mends most faults before it sends them, so update an older one"
    server = NoServer(title)
    way_back = "go back with `/rewind` to a prompt before it, or start a new session"

    def __init__(self, settings: ClaudeCodeSettings) -> None:
        self._settings = settings

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        return find_stores(transcript_paths.homes(env, self._settings.config_dirs))

    def config_problems(self) -> Iterator[ConfigProblem]:
        for folder in self._settings.config_dirs:
            if not (folder.expanduser() / transcript_paths.PROJECTS).is_dir():
                yield ConfigProblem(
                    "claude_code.config_dirs",
                    f"{folder} has no folder `{transcript_paths.PROJECTS}`.",
                    "Is it the one that CLAUDE_CONFIG_DIR names (usually ~/.claude)? `run` waits for a first session.",
                )

    def shell_settings(self, service: Client, env: Mapping[str, str], state: Path) -> ShellSettings:
        """Tell of a folder that only `CLAUDE_CONFIG_DIR` names, also before the first session in it."""
        del state
        found = seen_here_alone(self, service, env)
        return ShellSettings({"config_dirs": tuple(str(store.home) for store in found)})

    def passed_over(self, store: Store, stores: Sequence[Store]) -> RecoverydError | None:
        """Tell of symlinks, which the client itself follows: what is locked, kept and undone goes by one real place."""
        return not_followed(transcript_paths.leading_out(store.root, [one.root for one in stores]))

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        del store, failure
        from recoveryd.clients.claude_code.wire import ClaudeCodeWire  # late: only a stuck session needs it

        return (ClaudeCodeWire(),)

    def heals(self, kind: Kind, block: Block | None = None, error: RecordedError | None = None) -> bool:
        return mends_itself(kind, block, error)

    def advice(self, store: Store, failure: Failure, kind: Kind) -> str:
        """Name the client's own way to make a session shorter; mostly it goes that way by itself."""
        large = kind_info(kind).shortened or kind is Kind.MEDIA_REJECTED
        if not large or not self.takes_prompts(store, failure.session):
            return ""
        return "send `/compact`, and where that is refused, start a new session"

    def takes_prompts(self, store: Store, session: str) -> bool:
        """Go by whose it is: what a subagent was asked for ended with the refusal."""
        return not is_of_subagent(store, session, unknown=False)  # what can't be read keeps nobody from being told

    def editor(self, marks: Marks) -> Callable[[Session], Editor]:
        from recoveryd.clients.claude_code.editor import ClaudeCodeEditor  # late: only a repair needs it

        return partial(ClaudeCodeEditor, marks=marks)

    def next_failure(self, session: Session) -> Failure | None:
        newest = session.newest
        if newest is None:
            return None
        model = model_of(session)
        return Failure(session.store, session.id, newest.id, newest.created, provider=PROVIDER, model=model)

    def by_shell(self, message: Message) -> bool:
        """Whether the client said it itself, in the place of an answer to a prompt that was cut off."""
        return message.data.get("made_up") is True

    def stopped(self, message: Message) -> bool:
        del message
        return False

    def under_way(self, store: Store, session: str) -> str | None:
        assert isinstance(store, ClaudeCodeTranscripts)
        return "a Claude Code has the session open" if store.opened(session) is not None else None

    def has_read(self, store: Store, session: Session, failure: Failure, since: float) -> bool:
        """Go by when the client was started that has the session open; of one that ended nothing tells."""
        assert isinstance(store, ClaudeCodeTranscripts)
        opened = store.opened(session.id)
        return opened is not None and since < opened <= failure.time / 1000

    def unread(self, store: Store, session: str, since: float, failure: Failure | None = None) -> str:
        """Tell to start the client anew: a process keeps the history in memory, also one that ended since. That it
        loaded it again (`/clear`, then `/resume`), nothing tells.
        """
        assert isinstance(store, ClaudeCodeTranscripts)
        opened = store.opened(session)
        if opened is None or opened > since:
            if failure is None or not self._sent_before(store, failure, since):
                return ""
            anew = f"`{self._resume(store, session)}`"
            how = f"prompt it in the one that has it now, or quit that, then {anew}" if opened else f"go on with {anew}"
            return f"it was refused again in a Claude Code that had it open as it was before: {how}"
        job, then = store.background_job(session), f"then `{self._resume(store, session)}`"
        if job:  # its way back in a terminal only shows what goes on in the background
            stop = f"`{_claude(store)} stop {job}`"
            return f"Claude Code has this session open in the background as it was before: {stop}, {then}"
        return f"Claude Code may have this session open as it was before: quit it, {then}"

    @staticmethod
    def _sent_before(store: ClaudeCodeTranscripts, failure: Failure, since: float) -> bool:
        try:
            return store.sent_before(failure.session, failure.message, since)
        except RecoverydError:  # nothing tells
            return False

    def go_on(self, store: Store, session: str) -> str:
        return f"To go on: `{self._resume(store, session)}`"

    @staticmethod
    def _resume(store: Store, session: str) -> str:
        try:
            began = store.about(session).parent or session
        except RecoverydError:  # what can't be read now must not keep its user from being told
            began = session
        return f"{_claude(store)} --resume {began}"


def mends_itself(kind: Kind, block: Block | None = None, error: RecordedError | None = None) -> bool:
    """Whether Claude Code sends its next request without such a fault, which it mends by itself; `block` None: whatever
    block has it.

    51 broken shapes were tried. Pairs of calls and results it mends as it builds a request: a fault of such a pair that
    is found in one, it does not. Images that are stored, and thinking, it takes away once they are refused, in words
    that it knows (`error` None: taken as known); of images that are elsewhere, it knows nothing. Where thinking stands
    is left to it until it is refused: it sends that as it is, but nobody refuses it of the newest models.
    """
    about = kind_info(kind)
    if kind is Kind.MEDIA_REJECTED:
        stored = block is not None and not any(map(_remote, _sources(block.body)))
        return stored and _said(_OF_MEDIA, error)
    if about.signature:
        return _said(_OF_THINKING, error)
    order = kind in explained_by(Kind.THINKING_BLOCK_ORDER)  # pairs of calls and results, thinking, what follows what
    sent = error is not None if about.thinking else block is not None
    return (order and not sent) or about.cleared_by_prompt or kind is Kind.INVALID_UNICODE


def _said(known: re.Pattern[str], error: RecordedError | None) -> bool:
    if error is None:
        return True
    heard = error.status in _HEARD
    return heard and any(known.search(text.lower().replace("`", "")) for text in error.texts)


def _sources(body: Json) -> Iterator[Json]:
    if body.get("type") == "container_upload":
        yield {"type": "file"}
    if body.get("type") in ("image", "document") and isinstance(body.get("source"), Mapping):
        yield body["source"]
    content = body.get("content")
    for item in content if isinstance(content, list) else ():
        if isinstance(item, Mapping):
            yield from _sources(item)


def _remote(source: Json) -> bool:
    return str(source.get("type")) in _REMOTE


def _claude(store: Store) -> str:
    """Name the program as it finds the sessions of a store."""
    assert isinstance(store, ClaudeCodeTranscripts)
    return f"{home_setting('CLAUDE_CONFIG_DIR', store.homes, '.claude')}claude"
