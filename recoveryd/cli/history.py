"""`recoveryd history`, `show` and `undo`"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from recoveryd.cli.common import (
    client_meant,
    in_brackets,
    known_ledger,
    recovery_hint,
    sound_of,
    store_named,
    stores_of,
    tell_client_undone,
    whose_by,
    whose_of,
)
from recoveryd.cli.output import Result, diff, local_time, print_labelled, print_wrapped, render, show_changes, table
from recoveryd.clients import Config, Store, Whose
from recoveryd.core import (
    CUT_OFF,
    Change,
    Entry,
    Kind,
    NotFoundError,
    Outcome,
    RecoverydError,
    RefusedError,
    command_line,
    kind_info,
)
from recoveryd.disk import private_files
from recoveryd.heal import UNDOABLE, find_store, take_back, why_not_undone
from recoveryd.ledger import KindStats, Ledger, Upkeep, peek, stats_by_kind, without_originals
from recoveryd.settings import load_sound, may_forbid, paths
from recoveryd.tell import NOT_AGAIN, cause

# What the detail of a recovery is, by its outcome; of all others, why nothing was done.
_LABELS = {Outcome.HEALED: "done", Outcome.UNDONE: "done", Outcome.UNDOING: "done", Outcome.PENDING: "begun"}


def history(arguments: argparse.Namespace) -> int:
    """Run `recoveryd history`: list the recoveries, or their figures by kind."""
    if arguments.stats:
        return _stats(arguments)
    whose = whose_of(arguments)
    only = client_meant(arguments, whose)
    every = arguments.limit is None or only is not None
    with known_ledger() as ledger:
        entries = ledger.history(-1 if every else arguments.limit, arguments.session)
        entries = [entry for entry in entries if only in (None, whose.name(entry.store))][: arguments.limit]
        any_at_all = bool(entries or ledger.history(1))
        if arguments.session and not entries:
            hint = recovery_hint(ledger, arguments.session)
            if hint:
                raise NotFoundError(f"{arguments.session} is no session.", hint)

    def show_all(out: Console) -> None:
        if not entries:
            print_wrapped(out, _none(any_at_all=any_at_all))
            return
        rows = [(e.id, local_time(e.time)[:16], _came_of(e), f"{_named(e, whose)}: {_detail(e)}") for e in entries]
        table(out, ["id", "when", "outcome", "session: what was done, or why not"], rows)

    return render(Result([_json(entry, whose) for entry in entries], show_all), as_json=arguments.json, paged=True)


def _none(*, any_at_all: bool) -> str:
    none = f"None of those. `{command_line('history')}` lists what there is."
    return none if any_at_all else "No recovery so far."


def _named(entry: Entry, whose: Whose) -> str:
    name = entry.title or entry.session
    return name + in_brackets(whose, entry.store)


def _came_of(entry: Entry) -> str:
    """Tell the outcome of a recovery; "kept" of what a forced undo wrote over, which no sum counts as undone."""
    return "kept" if entry.overwritten and entry.outcome is Outcome.UNDONE else str(entry.outcome)


def _detail(entry: Entry) -> str:
    return entry.detail if entry.confirmed else f"{entry.detail} (not read back yet)"


def _stats(arguments: argparse.Namespace) -> int:
    whose = whose_of(arguments)
    only = client_meant(arguments, whose)
    ended = peek(paths.ledger_file(paths.state_dir()), lambda ledger: Upkeep(ledger).ended()) or []
    mine = [one for one in ended if arguments.session in (None, one.session)]
    lines = stats_by_kind([one for one in mine if only in (None, whose.name(one.store))])

    def show_all(out: Console) -> None:
        if not lines:
            print_wrapped(out, _none(any_at_all=bool(ended)))
            return
        rows = [(str(n.total), _percent(n.success), _time(n.median_seconds), _outcomes(n)) for n in lines]
        table(out, ["in all", "healed", "median", "kind: what came of it"], rows)
        out.print()
        print_wrapped(out, "healed: of those tried; median: from the start of a repair to the disk.")
        if any(line.kind is Kind.CONTEXT_OVERFLOW for line in lines):
            by_hand = command_line("compact")
            print_wrapped(out, f"{Kind.CONTEXT_OVERFLOW}: also what `{by_hand}` made shorter, refused or not.")

    data = [
        {
            "kind": line.kind,
            "total": line.total,
            "outcomes": {outcome.value: n for outcome, n in line.outcomes.items()},
            "success": line.success,
            "median_seconds": line.median_seconds,
        }
        for line in lines
    ]
    return render(Result(data, show_all), as_json=arguments.json)


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.0%}"


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f} s"


def _outcomes(line: KindStats) -> str:
    said = ", ".join(f"{n} {outcome.value.replace('_', ' ')}" for outcome, n in line.outcomes.items())
    return f"{line.kind or 'not known'}: {said}"


def show(arguments: argparse.Namespace) -> int:
    """Run `recoveryd show`: print one recovery with each record before and after."""
    with known_ledger() as ledger:
        entry = ledger.get(arguments.id)
        changes = ledger.changes(entry.id)
        file = arguments.config or paths.config_file()
        config, unsound = load_sound(Config, file)
        forbids = unsound if unsound is not None and may_forbid(file, unsound) else None
        store = find_store(stores_of(config), ledger, entry.store)
        whose = whose_by(config, ledger)
        way_back = _way_back(config, ledger, entry, store, forbids) if changes else _way_on(ledger, entry)
    content = whose.content(entry.store)
    data = {**_json(entry, whose), "changes": [{"record": c.key, "diff": diff(content, c)} for c in changes]}

    def show_entry(out: Console) -> None:
        out.print(f"{entry.id}  {local_time(entry.time)}  {_came_of(entry)}")
        print_labelled(out, "session", f"{entry.title or '(no title)'} ({entry.session})", width=9)
        print_labelled(out, "store", entry.store, width=9)
        print_labelled(out, "client", whose.title(entry.store), width=9)
        print_labelled(out, "cause", f"{_about(entry)} ({entry.kind or 'not known'})", width=9)
        print_labelled(out, _LABELS.get(entry.outcome, "why"), entry.detail, width=9)
        if changes:
            out.print()
            show_changes(out, content, changes)
        elif entry.edits:
            gone = f"{without_originals(entry)}. So what it changed can't be shown"
            print_wrapped(out, f"{gone}{', nor undone' if entry.outcome in UNDOABLE else ''} any more.")
        if entry.overwritten and entry.outcome not in CUT_OFF and changes:
            out.print(f"\nWhat it wrote over, as files: {command_line('ledger', 'export', entry.id)}")
        elif way_back:
            out.print()
            print_wrapped(out, way_back)

    return render(Result(data, show_entry), as_json=arguments.json, paged=True)


def _way_back(config: Config, ledger: Ledger, entry: Entry, store: Store | None, forbids: RecoverydError | None) -> str:
    """Tell how a recovery that has its originals is taken back as things are now, or why it can't be; "" of one that
    is not there to be taken back. `forbids`: what in the configuration lets nothing be written.
    """
    if entry.outcome not in UNDOABLE:
        return ""
    originals, back = command_line("ledger", "export", entry.id), command_line("undo", entry.id)
    if store is None:
        return f"Its store is not found: `{back}` says why. The originals, as files: {originals}"
    problem = why_not_undone(store, ledger, entry) or forbids
    if isinstance(problem, RefusedError):
        return f"{problem.message} {problem.hint}".strip()
    if problem is not None:
        return f"`{back}` would fail now: {problem.message} {problem.hint}".strip()
    return f"To take it back: {back}" + (" (`dry_run` is set: it only shows that)" if config.dry_run else "")


def _way_on(ledger: Ledger, entry: Entry) -> str:
    """Tell how a session is repaired once more that was given up last; "" of any other recovery."""
    [newest] = ledger.history(1, entry.session, entry.store)
    if entry.outcome is not Outcome.GAVE_UP or newest.id != entry.id:
        return ""
    would, again = (command_line(*what, session=entry.session) for what in (("explain",), ("scan", "--repair")))
    return f"To repair it once more: {again} (`{would}` says what that would do)"


def _about(entry: Entry) -> str:
    """Tell what a recovery is about. The ledger does not tell a session that was refused from one that was not."""
    return kind_info(entry.kind).about or cause(entry.kind)


def undo(arguments: argparse.Namespace) -> int:
    """Run `recoveryd undo`: put the originals of a recovery back."""
    config, _ = sound_of(arguments, forbidden=lambda *what: not arguments.dry_run and may_forbid(*what))
    with known_ledger() as ledger:
        entry = ledger.get(arguments.id)
        store = store_named(config, ledger, entry.id)
        state = private_files.make_folder(paths.state_dir())
        dry = arguments.dry_run or config.dry_run
        newest = ledger.history(1, entry.session, entry.store)[0].id
        entry, changes = take_back(store, ledger, paths.lock_dir(state), entry.id, force=arguments.force, dry_run=dry)
        last = ledger.history(1, entry.session, entry.store)[0]
        kept = last.id if last.overwritten and last.id != newest else None  # of an undo by force
        then = "" if dry else _told_undone(store, entry, ledger, kept)
        again = f", and the session {NOT_AGAIN}" if store.has(entry.session) else ""
    if not dry:
        tell_client_undone(config, store, entry, quiet=arguments.quiet)

    def say(out: Console) -> None:
        if dry:
            why = "" if arguments.dry_run else ", for `dry_run` is set in the configuration"
            if not changes:
                print_wrapped(out, f"Nothing that {entry.id} wrote is stored any more; nothing was written{why}.")
                return
            show_changes(out, store.content, changes)
            out.print()
            print_wrapped(out, f"This is what undoing {entry.id} would write; nothing was written{why}.")
            return
        if not changes:
            print_wrapped(out, f"Took back {entry.id}: nothing that it wrote is stored any more{again}.")
            return
        those = "1 record is" if len(changes) == 1 else f"{len(changes)} records are"
        print_wrapped(out, f"Took back {entry.id}: {those} as before{then}")

    records = [change.key for change in changes]
    data = {**_json(entry, Whose(config)), "undone": not dry, "records": records, "kept": kept}
    return render(Result(data, say), as_json=arguments.json)


def _told_undone(store: Store, entry: Entry, ledger: Ledger, kept: str | None) -> str:
    """Tell, behind the number of records that are as before again, which are not, and what becomes of the session:
    less is certain of one that changed or went on since. `kept` has what an undo by force wrote over.
    """
    changes = ledger.changes(entry.id)
    said = _lost(store, changes) if kept else ""
    if not store.has(entry.session):
        return f"{said}. Its session is not stored any more."
    since = _since(store, changes, ledger.changes(kept), kept) if kept else ""
    info = kind_info(entry.kind)
    then = info.undone if not kept and _is_as_then(store, entry) else info.forced or info.undone
    return f"{said}. {since}{then}, and the session {NOT_AGAIN}."


def _since(store: Store, changes: Sequence[Change], written_over: Sequence[Change], kept: str) -> str:
    """Tell what became of what came since a recovery that was undone by force: records that had changed are written
    over.
    """
    left = {change.key: change.after for change in store.located(changes)}
    changed = sum(c.before not in (None, left.get(c.key, c.before)) for c in written_over)
    if not changed:
        return "What came since stays. "
    files = command_line("ledger", "export", kept)
    return f"{changed} had changed since; what stood there is kept (as files: {files}). What else came since stays. "


def _lost(store: Store, changes: Sequence[Change]) -> str:
    """Tell of how many records nothing came back: what they belonged to is gone."""
    kept = store.located(changes)
    now = store.read_all([change.key for change in kept])
    lost = sum(record != change.before for record, change in zip(now, kept, strict=True))
    each = "1 is not: what it belonged to is gone" if lost == 1 else f"{lost} are not: what they belonged to is gone"
    return f"; {each}" if lost else ""


def _is_as_then(store: Store, entry: Entry) -> bool:
    """Whether nothing came to a session since a recovery of it, and none of its turns are taken back."""
    try:
        session = store.load(entry.session)
    except RecoverydError:
        return False
    return session.revert is None and session.newest is not None and session.newest.id == entry.message


def _json(entry: Entry, whose: Whose) -> dict[str, Any]:
    return {
        "id": entry.id,
        "time": entry.time,
        "store": entry.store,
        "client": whose.name(entry.store),
        "session": entry.session,
        "title": entry.title,
        "kind": entry.kind,
        "outcome": entry.outcome,
        "edits": entry.edits,
        "detail": entry.detail,
        "confirmed": entry.confirmed,
        "overwritten": entry.overwritten,
    }
