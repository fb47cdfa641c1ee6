"""Tell from the newest messages of a session whether it failed, runs, or was answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, dropwhile, takewhile

from recoveryd.clients.javascript import truthy
from recoveryd.clients.opencode import endless_compaction, ids
from recoveryd.clients.opencode.configured_sdks import as_asked
from recoveryd.clients.opencode.error_record import read
from recoveryd.clients.opencode.prompting import by_repair, by_shell, folder_of, put_in_by_repair
from recoveryd.clients.store import SessionStatus
from recoveryd.core import Diagnosis, Failure, Json, Kind, Message, RecordedError, Refused, json_of

_AT_ONCE_MS = 10_000
_LOOKED_AT = 2_000  # characters of an error
_WORD = re.compile(r"[!-~]+|[^!-~\s]+")  # a sentence of Chinese has no blanks; a number within it is a word
Parts = Callable[[str], Iterable[Json | None]]
Fails = Callable[[Message, Json], Failure]


def look(
    store: str,
    session: str,
    newest: Iterable[Message],
    parts: Parts,
    revert: Callable[[], Json | None],
    client: str = "opencode",
) -> SessionStatus:
    """Tell the status of a session: go through the newest messages (see `newest_first`) until one tells whether it
    failed, runs, or was answered.

    `parts` reads those of a message, `revert` what the session has of turns that its user took back. A message that was
    stopped tells it only if the model spoke in it: a stop may also cut off a refusal. A command that the user ran in
    the session (`!ls`) is passed over. `client`: whose the store is, whose configuration says how a provider is asked.
    """
    fails = partial(_failure, store, session, client, parts)
    older, seen = iter(newest), list[Message]()

    def noted() -> Iterator[Message]:
        for message in older:
            seen.append(message)
            yield message

    found = _end_of(fails, noted(), parts)
    if found.failure is not None and not found.running and (point := (revert() or {}).get("messageID")):
        seen += older
        at = next((at for at, message in enumerate(seen) if message.id == point), None)
        if at is not None:
            found = _without(seen[: at + 1], found, _end_of(fails, seen[at + 1 :], parts))
    failure = found.failure
    if failure is not None:
        read_so_far = {message.id: message for message in seen}
        if found.kept is None:
            failed = read_so_far.get(failure.message)
            alike = failure.begun and _broke_off_alike(failed, chain(seen, older), parts)
            found = replace(found, broke_off_alike=alike)
        found = _of_this_session(found, session, read_so_far)
    if failure is not None or not any(map(endless_compaction.may_go_round, seen)):
        return found
    return replace(found, endless=_endless(store, session, client, chain(seen, older), parts))


def _of_this_session(found: SessionStatus, session: str, read: Mapping[str, Message]) -> SessionStatus:
    """Tell what failed in this session from what it has of the one that it is a copy of: that may have been repaired
    there before, and the copy with it. Behind a failure of its own, or one that was taken back, that tells nothing.
    """

    def copied(failure: Failure | None) -> bool:
        message = read.get(failure.message) if failure is not None else None
        return message is not None and (ids.copied_at(session, message) > 0 or _imported(message))

    if found.failure is not None and copied(found.failure):
        at = ids.copied_at(session, read[found.failure.message]) if found.kept is None else 0
        before = replace(found, failure=None, earlier=(), kept=None)
        return replace(found, kept=before, copied=True, copied_at=at)
    kept = found.kept
    if kept is not None:
        kept = replace(kept, failure=None, earlier=()) if copied(kept.failure) else _own(kept, copied)
    return replace(_own(found, copied), kept=kept)


def _own(found: SessionStatus, copied: Callable[[Failure], bool]) -> SessionStatus:
    return replace(found, earlier=tuple(one for one in found.earlier if not copied(one)))


def _broke_off_alike(failed: Message | None, messages: Iterable[Message], parts: Parts) -> bool:
    """Whether the answer that ended the turn before the one that failed broke off, too, with the same words, and this
    turn came no further than a step. An answer that was stopped is passed over. `messages`: newest first.
    """
    if failed is None or _told_nothing(failed):
        return False
    before = dropwhile(lambda message: message.id != failed.id, messages)
    turn = [*takewhile(lambda message: message.role != "user", before)][1:]
    if sum(message.data.get("finish") == "tool-calls" for message in turn) > 1:
        return False  # its history was taken again and again
    ends = (one for one in chain(turn, before) if one.role == "assistant" and not _told_nothing(one))
    older = next(ends, None)
    return older is not None and _words(older) == _words(failed) and any(map(_of_the_model, parts(older.id)))


def _told_nothing(message: Message) -> bool:
    """Whether an answer does not tell how its turn ended: it was stopped, or is a step that the turn went on behind."""
    error, finish = message.error, message.data.get("finish")
    by_name = error.get("name") == "MessageAbortedError" if isinstance(error, Mapping) else False
    return by_name or (error is None and (not finish or finish == "tool-calls"))


def _words(message: Message) -> tuple[str, str]:
    """Return the name and the words of an error, without what numbers a request: an id, a date. All, if that is all."""
    error = message.error if isinstance(message.error, Mapping) else {}
    data = error.get("data")
    said = _text(data, "message")[:_LOOKED_AT] if isinstance(data, Mapping) else ""
    words = (word for word in _WORD.findall(said) if not any(map(str.isdigit, word)))
    return _text(error, "name"), " ".join(words) or said


def _imported(failed: Message) -> bool:
    """Whether the row of a refused turn was written long after it ended: `opencode import` does that, and 1.2 that took
    the files of 1.1 over; else nothing writes to it again (seen on 1.2.1 and 1.18.34).
    """
    row = json_of(failed.raw or b"")
    written = row.get("time_updated") if isinstance(row, dict) else None
    return isinstance(written, int) and bool(failed.completed) and written - failed.completed > _AT_ONCE_MS


def _without(behind: Sequence[Message], whole: SessionStatus, kept: SessionStatus) -> SessionStatus:
    """Choose what tells of a session whose next prompt goes without the messages `behind`; `kept`: by those before.

    What was refused in a turn that is behind may stand before it.
    """
    if whole.failure is None or all(message.id != whole.failure.message for message in behind):
        return kept
    return replace(whole, last_answer=kept.last_answer, kept=kept)


def _endless(store: str, session: str, client: str, newest: Iterable[Message], parts: Parts) -> Diagnosis | None:
    found = endless_compaction.rounds(newest, parts)
    if found is None:
        return None
    provider, model = _asks(found.prompt)
    failure = Failure(store, session, found.prompt.id, found.prompt.created, RecordedError(), provider, model)
    failure = as_asked(failure, client=client)
    return Diagnosis(failure, Refused(Kind.ENDLESS_COMPACTION), {"compactions": found.compactions})


def _end_of(fails: Fails, newest: Iterable[Message], parts: Parts) -> SessionStatus:
    failures: list[Failure] = []
    running, answered, silent, took = 0, 0, False, False
    newest_user: str | None = None
    asked, chosen = ("", ""), ""
    shell: set[object] = set()
    for message in newest:
        parent = str(message.data.get("parentID"))
        if by_shell(message, parts(message.id)):
            shell.add(parent)  # the client stores a prompt of its own before it
        if message.role not in ("user", "assistant"):
            continue
        asked = asked if any(asked) else _asks(message)  # a command says which model is chosen now
        chosen = chosen or (_asks(message)[1] if message.role == "user" else "")
        if not shell.isdisjoint((message.id, parent)) or put_in_by_repair(message, parts):
            continue
        error = message.error
        if message.role == "user":
            newest_user = newest_user or (None if failures else message.id)
        elif error is not None and error.get("name") != "MessageAbortedError":
            # Where anything of an answer came, the provider took the history.
            if not failures or not (took or any(True for _ in parts(failures[-1].message))):
                failures.append(fails(message, error))
        elif error is None and not message.completed:
            if not running and not failures:
                # Behind a turn that was cut off, say by a crash, a newer prompt may wait.
                running = message.created or 1
                silent = newest_user is not None or not any(map(_speaks, parts(message.id)))
        elif error is None and not message.data.get("finish") and not any(True for _ in parts(message.id)):
            continue  # nothing came of it: it was stopped while it waited to ask again, say after a refusal (1.18)
        elif failures and message.data.get("finish") == "tool-calls":
            took = True  # it proves that nothing older is stuck, but it is no answer yet
        elif error is None or any(map(_speaks, parts(message.id))):
            answered = message.completed or message.created
            break
    failure = failures[0] if failures else None
    return SessionStatus(failure, running, newest_user, answered, silent, tuple(failures[1:]), asked, chosen)


def _asks(message: Message) -> tuple[str, str]:
    """Return provider and model that a prompt asks, or that made an answer."""
    model = message.data.get("model") if message.role == "user" else message.data
    names = model if isinstance(model, Mapping) else {}
    return _text(names, "providerID"), _text(names, "modelID")


def _failure(store: str, session: str, client: str, parts: Parts, message: Message, error: Json) -> Failure:
    provider, model = _asks(message)
    time = message.created or message.completed
    path = message.data.get("path")
    where = path if isinstance(path, Mapping) else {}
    of_summary = truthy(message.data.get("summary"))
    begun = any(map(_of_the_model, parts(message.id)))
    folder = folder_of(message)
    failure = Failure(store, session, message.id, time, read(error), provider, model)
    failure = replace(failure, of_summary=of_summary, begun=begun, folder=folder)
    return as_asked(failure, folder, _text(where, "root"), client)


def _speaks(part: Json | None) -> bool:
    """Whether a part of an aborted message is one that the client goes on sending, and no text that a repair added: the
    last answer would move with the repair, and back with its undo.
    """
    if part is None or part.get("type") in ("step-start", "reasoning"):
        return False
    return not (truthy(part.get("synthetic")) and by_repair(part))


def _of_the_model(part: Json | None) -> bool:
    """Whether a part holds words that the model gave: no plugin and no repair put them there."""
    data = part or {}
    if data.get("type") not in ("text", "reasoning") or not _text(data, "text").strip():
        return False
    return not (truthy(data.get("synthetic")) or by_repair(data))


def _text(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
