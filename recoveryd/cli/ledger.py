"""`recoveryd ledger prune`, `forget` and `export`"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from recoveryd.cli.asking import insist
from recoveryd.cli.common import config_of, known_ledger, whose_by
from recoveryd.cli.output import Result, local_time, print_wrapped, render, table
from recoveryd.core import Entry, Outcome, capital, command_line
from recoveryd.ledger import FORGOTTEN, Held, Upkeep
from recoveryd.ledger import export as write


def prune(arguments: argparse.Namespace) -> int:
    """Run `recoveryd ledger prune`: drop originals that are older or larger than the limits."""
    limits = (config := config_of(arguments)).ledger
    days = limits.keep_days if arguments.keep_days is None else arguments.keep_days
    now = time.time()
    with known_ledger() as ledger:
        whose = whose_by(config, ledger)
        upkeep = Upkeep(ledger, whose.sole, whose.quoting_titles)
        gone = upkeep.beyond(days, limits.keep_mb, now, all_content=arguments.all_content)
        names = [held.entry.id for held in gone]
        titles = upkeep.quoted(days, now, names)
        if (gone or titles) and not arguments.dry_run:
            due = [held.entry.id for held in upkeep.beyond(limits.keep_days, limits.keep_mb, now)]
            kept = {*names, *titles}.difference(due, upkeep.quoted(limits.keep_days, now, due))
            if kept:  # what is beyond the limits of the configuration goes by itself, sooner or later
                insist(_lost(gone, titles, arguments), yes=arguments.yes)
            upkeep.clear(names, titles)
        stays = upkeep.kept_beyond(days, limits.keep_mb, now, names)
        empty = not upkeep.image_bytes()
    size = sum(held.size for held in gone)

    def show(out: Console) -> None:
        _table(out, gone)
        what = [f"the originals of {_recoveries(len(gone))} ({_kilobytes(size)})"] if gone else []
        what += [f"the titles of {_recoveries(len(titles))} (words of a prompt)"] if titles else []
        if what:
            verb = "would go" if arguments.dry_run else "are gone for good"
            print_wrapped(out, f"{capital(' and '.join(what))} {verb}.")
        limit = f"{days} days, {limits.keep_mb} MB"
        if stays:
            only = "What else is beyond the limits" if what else "All that is beyond the limits"
            print_wrapped(out, f"{only} ({limit}) exists nowhere else now: {_sole(stays, arguments)}")
        elif not what:
            nothing = "The ledger holds no originals, so there is nothing to remove."
            print_wrapped(out, nothing if empty else f"Nothing is beyond the limits: {limit}.")

    data = {"removed": not arguments.dry_run, "bytes": size, "recoveries": names, "titles": titles}
    return render(Result(data, show), as_json=arguments.json)


def _sole(stays: int, arguments: argparse.Namespace) -> str:
    same = () if arguments.keep_days is None else ("--keep-days", str(arguments.keep_days))
    way = f"`{command_line('ledger', 'prune', *same, '--all-content')}` takes it out for good."
    return f"the originals of {_recoveries(stays)}. They stay. {way}"


def forget(arguments: argparse.Namespace) -> int:
    """Run `recoveryd ledger forget`: remove all that the ledger holds of what a session said."""
    with known_ledger() as ledger:
        upkeep = Upkeep(ledger)
        held = upkeep.held(arguments.session)
        full = {one.entry.id for one in held}
        entries = [e for e in upkeep.forgettable(arguments.session) if e.id in full or e.title or e.detail != FORGOTTEN]
        size, images = sum(one.size for one in held), sum(one.images for one in held)
        gone = f"{images} original{'' if images == 1 else 's'} ({_kilobytes(size)}), and the titles and details of"
        words = f"{gone} {_recoveries(len(entries))}"
        others = upkeep.titled(arguments.session)
        if others:
            words += f", and the title, which is this session's, of {_recoveries(len(others))} of its subagents"
        left = bool(entries or others)
        if left and not arguments.dry_run:
            insist(f"This removes for good: {words}.{_not_undone(held)}", yes=arguments.yes)
            upkeep.forget(arguments.session)

    def show(out: Console) -> None:
        _table(out, held)
        if not left:
            print_wrapped(out, f"Nothing of what session {arguments.session} said is left in the ledger.")
        elif arguments.dry_run:
            print_wrapped(out, f"Would go for good: {words}.")
        else:
            print_wrapped(
                out, f"Gone for good: {words}.{_not_undone(held)} What failed then is not repaired again by itself."
            )

    data = {**_forgotten(arguments, entries, held), "titles": others}
    return render(Result(data, show), as_json=arguments.json)


def export(arguments: argparse.Namespace) -> int:
    """Run `recoveryd ledger export`: write the originals of a recovery into a folder."""
    with known_ledger() as ledger:
        entry = ledger.get(arguments.id)
        folder = arguments.out or Path(f"recoveryd-{entry.id}")
        files = write(entry, ledger.changes(entry.id), folder)
    originals = len(files) - 1
    words = f"Wrote {originals} original{'' if originals == 1 else 's'} and index.json into {folder}, for you alone."
    none = "The forced undo" if entry.overwritten else "This recovery"
    told = " They hold what your session said." if originals else f" {none} only added what was not there before."
    data = {"id": entry.id, "folder": str(folder), "files": files}
    return render(Result(data, lambda out: print_wrapped(out, words + told)), as_json=arguments.json)


def _lost(gone: Sequence[Held], titles: Sequence[str], arguments: argparse.Namespace) -> str:
    named = f"{_recoveries(len(titles))} will be listed by the session's id and no more by words of its prompt."
    if not gone:
        return named
    also = ", also what exists nowhere else now" if arguments.all_content else ""
    what = "1 recovery loses its" if len(gone) == 1 else f"{len(gone)} recoveries lose their"
    return f"{what} originals for good{also}.{_not_undone(gone)}{f' {named}' if titles else ''}"


def _not_undone(gone: Sequence[Held]) -> str:
    """Tell, as a sentence behind others, how many of these could still be undone."""
    stood = sum(held.entry.outcome is Outcome.HEALED for held in gone)
    if not stood:
        return ""
    if stood < len(gone):
        return f" {stood} of them can't be undone any more."
    return f" {'It' if stood == 1 else 'They'} can't be undone any more."


def _forgotten(arguments: argparse.Namespace, entries: Sequence[Entry], held: Iterable[Held]) -> dict[str, Any]:
    return {
        "session": arguments.session,
        "removed": not arguments.dry_run,
        "bytes": sum(one.size for one in held),
        "recoveries": [entry.id for entry in entries],
    }


def _table(out: Console, held: Sequence[Held]) -> None:
    if held:
        rows = [
            (h.entry.id, local_time(h.entry.time)[:16], _kilobytes(h.size), h.entry.title or h.entry.session)
            for h in held
        ]
        table(out, ["id", "when", "originals", "session"], rows)
        out.print()


def _recoveries(count: int) -> str:
    return "1 recovery" if count == 1 else f"{count} recoveries"


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.1f} kB"
