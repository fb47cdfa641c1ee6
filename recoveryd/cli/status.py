"""`recoveryd status`"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from recoveryd.cli.common import client_meant, none_found, sound_of, stores_of, whose_by, with_clients
from recoveryd.cli.output import Result, local_time, print_field, render
from recoveryd.clients import Whose
from recoveryd.core import Outcome, __version__, command_line, first_of
from recoveryd.diagnose import Needing
from recoveryd.disk import REPLACED, LockOwner
from recoveryd.doctor import HOW, NOT_READABLE, LedgerSummary, Status, StoreStatus, collect_status
from recoveryd.service import of_this_system
from recoveryd.settings import but_of_environment, paths

_ASK_S = 5.0
_NOT = "no; what gets stuck stays so. To start it: {start}"
_RESTARTING = "no; restarting: the service ended, and is started again within half a minute"


def status(arguments: argparse.Namespace) -> int:
    """Run `recoveryd status`: print which stores are watched, and what came of it."""
    config, problem = sound_of(arguments)
    file = arguments.config or paths.config_file()
    whose = whose_by(config)
    only = client_meant(arguments, whose)
    stores = stores_of(config, only)
    wanted = (lambda _: True) if only is None else (lambda store_id: whose.name(store_id) == only)
    found = collect_status(config, stores, paths.state_dir(), file, time.time(), wanted)
    data = {**with_clients(_json(found), whose), "config_problem": problem.message if problem else ""}
    none = "" if found.stores else none_found(config, whose, only)
    return render(Result(data, lambda out: _show(out, found, whose, none)), as_json=arguments.json, paged=True)


def _json(found: Status) -> dict[str, Any]:
    return {
        "version": __version__,
        "running": [_holder(holder) for holder in found.running],
        "repairs": not found.unrepaired,
        "unrepaired": found.unrepaired,
        "paused": None if found.pause is None else asdict(found.pause),
        "stores": [
            {
                "store": store.id,
                "generation": store.generation.name if store.generation else None,
                "watched": None if store.watched is None else store.watched.pid,
                "locked_by": list(store.locked),
                "late": store.late,
                "problem": store.problem,
            }
            for store in found.stores
        ],
        "today": _counts(found.summary.today),
        "ever": _counts(found.summary.ever),
        "pending": [entry.id for entry in found.summary.pending],
        "need_user": [
            {"store": one.store, "session": one.session, "title": one.title, "recovery": one.recovery}
            for one in found.summary.need_user
        ],
        "conflicts": [entry.id for entry in found.summary.conflicts],
        "capped": [{"store": s, "session": session, "title": title} for s, session, title in found.summary.capped],
        "ignored": list(found.ignored),
        "ledger_problem": found.summary.problem or found.unwritable,
        "config": str(found.config),
        "ledger": str(found.ledger),
        "log": str(found.log),
    }


def _holder(holder: LockOwner) -> dict[str, Any]:
    said = {"pid": holder.pid, "since": holder.since, "version": holder.version, "as": holder.doing}
    return {**said, "idle": holder.idle}


def _counts(counts: Mapping[Outcome, int]) -> dict[str, int]:
    return {outcome.value: counts.get(outcome, 0) for outcome in Outcome}


def _show(out: Console, found: Status, whose: Whose, none: str) -> None:
    for holder in found.running:
        other = "" if holder.version == __version__ else f", version {holder.version} (this is {__version__})"
        print_field(
            out,
            "running",
            f"{HOW.get(holder.doing, '')}, pid {holder.pid}, since {local_time(holder.since)}{other}".lstrip(", "),
        )
    if not found.running:
        # Asked only then, and of a manager that takes long nothing is waited for.
        waits = of_this_system(os.environ, _ASK_S).state() == "restarting"
        print_field(out, "running", _RESTARTING if waits else _NOT.format(start=command_line("start")))
    for why in dict.fromkeys(holder.idle for holder in found.running if holder.idle):
        then = "" if why == REPLACED else "; the log says what would be done"
        print_field(out, "repairs", f"nothing is repaired: {why}{then}")
    if found.idle and not any(holder.idle for holder in found.running):
        read = " It reads that once it is told to (SIGHUP) or started again." if found.running else ""
        print_field(out, "repairs", f"by the configuration, nothing is repaired: {found.idle}.{read}")
    if found.pause is not None:
        until = f"`{command_line('unpause')}`" if found.pause.until is None else local_time(found.pause.until)
        since = f"since {local_time(found.pause.since)}, " if found.pause.since is not None else ""
        note = "" if since else "; since when, its file does not tell"
        print_field(out, "paused", f"{since}until {until}: nothing is repaired{note}")
    if found.ignore_problem:
        print_field(out, "ignored", f"{found.ignore_problem} Nothing is repaired until it can be.")
    if found.unwritable != found.summary.problem:
        print_field(out, "repairs", found.unwritable)
    if not found.any_kind:
        print_field(out, "repairs", "by the configuration, no kind is repaired (`kinds = []`)")
    for store in found.stores:
        print_field(out, "store", _store(store, f" ({whose.title(store.id)})" if whose.several else ""))
    if not found.stores:
        print_field(out, "store", none)
    _show_summary(out, found.summary, whose, running=bool(found.running))
    print_field(out, "ignored", ", ".join(found.ignored))
    missing = "" if found.config.exists() else f"not there: all defaults{but_of_environment(os.environ)}"
    print_field(out, "config", str(found.config), missing)
    print_field(out, "ledger", str(found.ledger))
    print_field(out, "log", str(found.log))


def _show_summary(out: Console, summary: LedgerSummary, whose: Whose, *, running: bool) -> None:
    if summary.problem:
        print_field(out, "ledger", summary.problem)
    else:
        print_field(out, "today", _sum(summary.today))
        print_field(out, "in all", _sum(summary.ever))
    print_field(out, "need you", _need_you(summary.need_user, whose))
    start = command_line("restart" if running else "start")
    print_field(
        out,
        "under way",
        first_of([one.id for one in summary.pending]),
        f"or cut off by a crash; `{start}` brings that to an end",
    )
    print_field(
        out,
        "conflict",
        first_of([one.id for one in summary.conflicts]),
        f"it does not stand as it was written; `{command_line('show', 'ID')}`",
    )
    for _, session, title in summary.capped:
        more = f"`{command_line('explain', session=session)}` says what there is to do"
        left = f"left alone until a prompt of it is answered; {more}"
        print_field(out, "capped", f"{title or '(no title)'} ({session}): {left}")


def _store(store: StoreStatus, client: str) -> str:
    state = "watched" if store.watched else "not watched"
    if store.late:
        after = "" if store.late.endswith(".") else "."
        state = f"looked at once a minute only. {store.late}{after} Once that is mended: `{command_line('restart')}`"
    if store.locked:
        state += f" from here: process {', '.join(map(str, store.locked[:3]))} has its lock and does not say why"
    words = store.generation.words if store.generation else NOT_READABLE
    if store.generation is not None and store.generation.use == "left":
        return f"{store.id}{client}: {words}"  # nothing of it is repaired, whoever watches
    said = store.generation is not None and store.generation.says_why
    problem = f". {store.problem}" if store.problem and not said else ""
    return f"{store.id}{client}: {words}; {state}{problem}"


def _need_you(needing: Sequence[Needing], whose: Whose) -> str:
    if not needing:
        return ""
    of = {one.store: f" of {told}" if (told := whose.told(one.store)) else "" for one in needing[:3]}
    named = ", ".join(f"{one.title or one.session}{of[one.store]}" for one in needing[:3])
    named += " and more" if len(needing) > 3 else ""
    many = "1 session is" if len(needing) == 1 else f"{len(needing)} sessions are"
    return f"{many} stuck ({named}): `{command_line('scan')}`"


def _sum(counts: Mapping[Outcome, int]) -> str:
    said = [f"{n} {outcome.value.replace('_', ' ')}" for outcome in Outcome if (n := counts.get(outcome, 0))]
    return ", ".join(said) or "nothing yet"
