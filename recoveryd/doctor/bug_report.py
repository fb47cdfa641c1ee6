"""Make a bug report of a session without a word of its content. Writes nothing."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recoveryd.clients import Clients, Config, Content, Store, Whose, look_up, not_found, read_error
from recoveryd.core import (
    KINDS,
    OTHER,
    Change,
    Claims,
    Diagnosis,
    Entry,
    Failure,
    RecoverydError,
    Refusal,
    Refused,
    Session,
    Violation,
    __version__,
    command_line,
    is_session_id,
    known_word,
    words,
)
from recoveryd.diagnose import Case, Context, as_meant, diagnose_unsendable
from recoveryd.doctor.report_shapes import Shaper, model_in_report
from recoveryd.heal import Recovery, find_store
from recoveryd.ledger import KnownStores, Ledger
from recoveryd.providers import VERSION, classify, provider_of
from recoveryd.repair import NOTHING_EXPLAINS, WHICH_IS_NOT_KNOWN, objections

FORMAT = 1
_BLOCKS = words(  # of a request; one that is not listed may be of anybody's naming
    "text thinking redacted_thinking tool_use tool_result server_tool_use mcp_tool_use mcp_tool_result image document "
    "web_search_tool_result web_fetch_tool_result container_upload message reasoning function_call "
    "function_call_output custom_tool_call custom_tool_call_output web_search_call tool_call tool functionCall "
    "functionResponse"
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What a bug report is made from."""

    config: Config
    stores: Sequence[Store]
    ledger: Ledger
    state_dir: Path


def bundle(sources: Sources, name: str) -> dict[str, Any]:
    """Make the bug report of a recovery, or of a session, by its id. Raises NotFoundError when neither is there."""
    entry, store, session = _found(sources, name)
    whose = Whose(sources.config, sources.stores, KnownStores(sources.ledger.file).clients())
    content = store.content if store is not None else whose.content(entry.store if entry is not None else "")
    shaper = Shaper(content)
    made: dict[str, Any] = {"format": FORMAT, **_versions(sources, store)}
    if store is not None and session is not None:
        made |= _session(sources, store, session, shaper, entry)
    if entry is not None:
        made["recovery"] = _recovery(entry, sources.ledger.changes(entry.id), shaper, content)
        made["history"] = [
            {"kind": one.kind, "outcome": one.outcome, "edits": one.edits, "actions": list(one.actions)}
            for one in sources.ledger.history(20, entry.session)
        ]
    return made


def _found(sources: Sources, name: str) -> tuple[Entry | None, Store | None, Session | None]:
    """Find the recovery (of a session: its newest one), the store and the session; what is gone is None."""
    newest = [entry for entry in sources.ledger.history(20, name) if not entry.overwritten][:1]
    for store in sources.stores:
        with suppress(RecoverydError):
            session = store.load(name)
            if session.messages:
                return (newest[0] if newest else None), store, session
    if not newest and is_session_id(name):
        history, scan = command_line("history"), command_line("scan")
        which = f"`{history}` lists the recoveries, `{scan}` the sessions that are stuck; either id will do."
        having, unread = look_up(Clients(sources.config), sources.stores, name)
        for store in having:
            store.load(name)  # it is there: what keeps it from being read is told
        raise not_found(sources.stores, name, unread.values(), which, nor=", and no recovery of one")
    entry = newest[0] if newest else sources.ledger.get(name)
    found = find_store(sources.stores, sources.ledger, entry.store)
    if found is not None:
        with suppress(RecoverydError):
            return entry, found, found.load(entry.session)
    return entry, found, None


def _versions(sources: Sources, store: Store | None) -> dict[str, Any]:
    default, changed = Config().model_dump(), sources.config.model_dump()
    generation: str | None = None
    if store is not None:
        with suppress(RecoverydError):
            generation = store.generation().name
    clients = Clients(sources.config)
    version = clients.version() if store is None else clients.of(store).version()
    return {
        "recoveryd": __version__,
        "rules": VERSION,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.system(),
        "client": ".".join(map(str, version)) if version else None,
        "client_name": store.client.partition("/")[0] if store is not None else None,  # not what the user calls it
        "store": generation,
        "settings_changed": sorted(key for key in changed if changed[key] != default[key]),
    }


def _session(sources: Sources, store: Store, session: Session, shaper: Shaper, entry: Entry | None) -> dict[str, Any]:
    made: dict[str, Any] = {"messages": shaper.session(session), "reverted": session.revert is not None}
    recovery = Recovery(Context(sources.ledger, sources.config, sources.state_dir))
    client = recovery.context.clients.of(store)
    found_now = diagnose_unsendable(client, store, session, None)
    failure = _failure(store, session, entry) or (found_now.failure if found_now is not None else None)
    if failure is None:
        return {**made, "failure": None}
    refused = as_meant(client, store, Diagnosis(failure, classify(failure.error))).refused
    if refused is None and entry is not None and entry.kind is not None:
        refused = Refused(entry.kind)
    kind = refused.kind if refused is not None else None
    made["failure"] = {
        "message": shaper.messages.of(failure.message),
        "kind": kind,
        "family": None if (provider := provider_of(failure)) is None else provider.name,
        "model": model_in_report(failure.model),
        "running": bool(store.look(session.id).running),
    }
    found = {}
    if provider is not None:
        wires = client.wires(store, failure)
        found = {wire.form_name: objections(session, [wire], provider, Claims()) for wire in wires}
    made["objections"] = {name: [_violation(one, shaper) for one in each] for name, each in found.items()}
    if refused is not None:
        made["plan"] = _plan(recovery, Case.begin(store, failure, refused), session, shaper)
    return made


def _failure(store: Store, session: Session, entry: Entry | None) -> Failure | None:
    """Return the failure that the session is stuck on now, else the one that the recovery was about."""
    stuck = store.look(session.id).failure
    if stuck is not None or entry is None:
        return stuck
    for message in session.messages:
        if message.id == entry.message and message.error is not None:
            provider, model = (str(message.data.get(key, "")) for key in ("providerID", "modelID"))
            error = read_error(message.error)
            return Failure(store.id, session.id, message.id, message.created, error, provider, model)
    return None


def _violation(found: Violation, shaper: Shaper) -> dict[str, Any]:
    block = found.block
    part = block.part_id if block is not None else found.part_id
    return {
        "kind": found.kind,
        "turn": found.turn,
        "block": known_word(block.type, _BLOCKS) if block is not None else None,
        "message": shaper.messages.of(block.message_id) if block is not None and block.message_id else None,
        "part": shaper.parts.of(part) if part else None,
    }


def _plan(recovery: Recovery, case: Case, session: Session, shaper: Shaper) -> dict[str, Any]:
    """Tell what would be edited now. Of an error on the way only the type is told, not its words."""
    try:
        _, planned = recovery.propose(case)
    except Exception as error:
        return {"fault": type(error).__name__}
    if isinstance(planned, Refusal):
        known = (reason for reason in (KINDS[case.kind].unrepaired, NOTHING_EXPLAINS, WHICH_IS_NOT_KNOWN) if reason)
        reason = next((one for one in known if planned.reason.startswith(one)), OTHER)
        return {"refused": reason, "understood": planned.understood}
    return {"kinds": list(planned.kinds), "edits": [shaper.edit(edit, session) for edit in planned.edits]}


def _recovery(entry: Entry, changes: Sequence[Change], shaper: Shaper, content: Content) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": int(entry.time),
        "kind": entry.kind,
        "outcome": entry.outcome,
        "edits": entry.edits,
        "actions": list(entry.actions),
        "images": [
            {
                "of": "part" if content.is_part(change.key) else "message",
                "before": _image(change.before, content, shaper),
                "after": _image(change.after, content, shaper),
            }
            for change in changes
        ],
    }


def _image(raw: bytes | None, content: Content, shaper: Shaper) -> dict[str, Any] | None:
    if raw is None:
        return None
    return {"bytes": len(raw), **shaper.part(content.said(raw))}
