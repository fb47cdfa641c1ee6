"""`recoveryd scan`"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console

from recoveryd.cli.asking import agreed, before_question, is_asked
from recoveryd.cli.common import (
    client_meant,
    config_of,
    in_brackets,
    known_ledger,
    no_session,
    none_found,
    open_ledger,
    stores_of,
    with_clients,
)
from recoveryd.cli.findings import Finding, finding_ahead, finding_of, show_finding
from recoveryd.cli.listing import Listing
from recoveryd.cli.output import OK, WRONG, Result, console, plain, print_wrapped, render, show_changes, to_nowhere
from recoveryd.cli.progress import Bar
from recoveryd.cli.reasons import ended_words
from recoveryd.cli.repairing import repair_found
from recoveryd.clients import Config, Store, Whose, stores_having
from recoveryd.core import Kind, NotFoundError, RecoverydError, UsageError, command_line, kind_info, why_off
from recoveryd.diagnose import Context
from recoveryd.heal import Recovery, follow_moved
from recoveryd.settings import ignored, paths
from recoveryd.tell import evidence_line

MOST = 20  # records of a diff; `--dry-run` shows all of them
_LATER = (
    "What is listed is healed once its next prompt was refused. With `heal_ahead = true`, recoveryd repairs a "
    "session before that, if it sees the turn end after which it would be."
)


@dataclass
class _Seen:
    """What a scan came upon. `due`: which of `found` are to be repaired, and their stores.

    `others`: how many are stuck on another kind than was asked for.
    """

    whose: Whose
    listing: Listing
    none: str = ""  # what is told where there is no store
    found: list[Finding] = field(default_factory=list)
    ignored: list[Finding] = field(default_factory=list)
    elsewhere: list[Finding] = field(default_factory=list)
    due: list[tuple[int, Store]] = field(default_factory=list)
    others: int = 0
    asked: Mapping[str, str | None] = field(default_factory=dict)  # what was asked for alone, as options of the command
    off: str = ""  # why the kind that was asked for is never found
    named: bool = False  # by its id: then all is told of it, also where the user wants it left alone
    ahead: list[Finding] | None = None  # those that the next prompt would be refused in, where they are asked for

    @property
    def code(self) -> int:
        """The exit code. Nothing is known to be in order where nothing could be read."""
        stuck = self.others or any(not finding.healed for finding in self.found)
        return WRONG if self.listing.failed or stuck or self.ahead else OK

    def data(self) -> dict[str, Any]:
        unreadable = [{"store": store, "problem": problem} for store, problem in self.listing.unreadable.items()]
        return {
            **({"unreadable": unreadable} if unreadable else {}),
            **({"other_kinds": self.others} if self.others else {}),
            **({"ahead": [finding.data() for finding in self.ahead]} if self.ahead is not None else {}),
            "stores": self.listing.names,
            "sessions_seen": self.listing.sessions,
            "stuck": [finding.data() for finding in self.found if not finding.earlier],
            "healed": [finding.data() for finding in self.found if finding.earlier],
            "ignored": [finding.data() for finding in self.ignored],
            "elsewhere": [finding.data() for finding in self.elsewhere],
        }


def scan(arguments: argparse.Namespace) -> int:
    """Run `recoveryd scan`: list stuck sessions, and repair them with `--repair`; 1 where one stays stuck."""
    if arguments.ahead and arguments.repair:
        raise UsageError("--ahead only lists.", _LATER)
    config = config_of(arguments)
    whose = Whose(config)
    repairs = arguments.repair and not (arguments.dry_run or config.dry_run)
    if repairs:
        ignored(paths.state_dir())  # raises where it can't be read: what is to be left alone is not known then
    with open_ledger() if repairs else known_ledger() as ledger:
        recovery = Recovery(Context(ledger, config, paths.state_dir()))
        for store in stores_of(config, client_meant(arguments, whose)) if repairs else ():
            with suppress(RecoverydError):  # what can't be read is said by the look
                follow_moved(store, ledger)
        try:
            seen = _look(arguments, recovery, whose, before_question(arguments) if repairs else console())
        except BrokenPipeError:  # `recoveryd scan --dry-run | head`: what is shown by then is stuck
            to_nowhere(sys.stdout)
            return WRONG
        if arguments.session and not seen.listing.sessions:
            raise _not_here(arguments, config, whose, seen)
        if seen.due and repairs:
            count = sum(bool(seen.found[number].changes) for number, *_ in seen.due)
            if (
                count
                and is_asked(arguments)
                and not agreed("Make this repair?" if count == 1 else f"Make these {count} repairs?")
            ):
                return render(Result({}, lambda out: out.print("Nothing was repaired."), WRONG), as_json=False)
            repair_found(recovery, seen.found, seen.due, named=bool(arguments.session))

    def show(out: Console) -> None:
        _show(out, seen, diff=bool(arguments.session) and not _plans(arguments), advise=not config.dry_run)
        if _plans(arguments) and not repairs:
            why = "" if arguments.dry_run else " `dry_run` is set in the configuration."
            out.print(f"\nDry run: nothing was written.{why}")

    return render(Result(with_clients(seen.data(), whose), show, seen.code), as_json=arguments.json)


def _not_here(arguments: argparse.Namespace, config: Config, whose: Whose, seen: _Seen) -> NotFoundError:
    """Make the error for a session that is in none of the stores that were asked for."""
    stores = stores_of(config, only := client_meant(arguments, whose))
    if only is None:
        return no_session(arguments.session, stores, seen.listing.unreadable.values())
    elsewhere, _ = stores_having(stores_of(config), arguments.session)
    hint = f"It is one of {whose.title(elsewhere[0].id)}: leave out --client." if elsewhere else ""
    return no_session(arguments.session, stores, seen.listing.unreadable.values(), hint, of=f" of {whose.called(only)}")


def _plans(arguments: argparse.Namespace) -> bool:
    """Whether each repair is shown as a diff."""
    return bool(arguments.repair or arguments.dry_run)


def _look(arguments: argparse.Namespace, recovery: Recovery, whose: Whose, out: Console) -> _Seen:
    """Go through all sessions. Each repair that is to be made is shown on `out` as it is found; nothing is written."""
    config = recovery.context.config
    asked = {"client": arguments.client, "session": arguments.session, "kind": arguments.kind}
    listing = Listing(quiet=arguments.json)
    seen = _Seen(whose, listing, named=bool(arguments.session), asked=asked, off=_why_off(config, arguments.kind))
    bar = Bar(shown=not arguments.quiet)
    ahead: list[Finding] = []
    seen.ahead = ahead if arguments.ahead else None
    stores = stores_of(config, client_meant(arguments, whose))
    for store, sessions in seen.listing.walk(recovery.context.clients, stores, arguments.session):
        for session in bar.over(sessions, len(sessions)):
            finding = finding_of(store, session, recovery)
            if finding is None:
                coming = finding_ahead(store, session, recovery) if arguments.ahead else None
                ahead += [coming] if coming is not None and arguments.kind in (None, coming.kind) else []
                continue
            if arguments.kind and finding.kind != arguments.kind:
                seen.others += finding.stuck and not finding.ignored
                continue
            if finding.elsewhere:
                seen.elsewhere.append(finding)
                continue
            if finding.ignored:
                seen.ignored.append(finding)
                continue
            if _plans(arguments) and _is_due(arguments, config, finding):
                seen.due.append((len(seen.found), store))
                if finding.changes and not arguments.json:
                    with bar.aside():
                        _show_due(out, finding, arguments, seen.whose, dry=config.dry_run)
            # Without a diff to show, only whether there is one: old sessions may be all that there are.
            whole = arguments.session and not _plans(arguments)
            seen.found.append(finding if whole else replace(finding, changes=finding.changes[:1]))
    if not stores:
        seen.none = none_found(config, whose, client_meant(arguments, whose))
    return seen


def _why_off(config: Config, kind: Kind | None) -> str:
    """Tell that what would be of a kind counts as in order, since the configuration does not name it; "" of others."""
    if kind is None or kind in config.kinds or not kind_info(kind).opt_in:
        return ""
    return f"{why_off(kind)}: until it is, no session counts as stuck on it."


def _is_due(arguments: argparse.Namespace, config: Config, finding: Finding) -> bool:
    """Whether a finding is to be repaired. An unwanted kind is not recorded as refused: it may be wanted later."""
    named = arguments.session or arguments.kind
    left = finding.healed or finding.kind not in config.kinds
    left = left or bool(finding.undone and not arguments.session)  # not again without a question
    return not left and bool(named or not finding.waits)


def _show_due(out: Console, finding: Finding, arguments: argparse.Namespace, whose: Whose, *, dry: bool) -> None:
    """Show a repair that is to be made, or would be (`dry`: by the configuration)."""
    at_once = len(finding.changes) > MOST and not (dry or is_asked(arguments))
    show_finding(out, finding, whose)
    _show_planned(out, finding, None if arguments.dry_run else MOST, at_once=at_once)
    out.print()


def _show_planned(out: Console, finding: Finding, most: int | None = MOST, *, at_once: bool = False) -> None:
    """Print the changes; `at_once`: they are made before anybody can type what shows those that are not printed. Of a
    repair that could not be made the ledger knows nothing.
    """
    if finding.case is None:
        return
    show_changes(out, finding.case.store.content, finding.changes, most)
    if most is not None and len(finding.changes) > most:
        dry = f"All of them: {command_line('scan', '--dry-run', session=finding.failure.session)}"
        shown = f"Once made, all of them: {command_line('show', finding.case.recovery)}"
        print_wrapped(out, shown if at_once else dry)


def _show(out: Console, seen: _Seen, *, diff: bool, advise: bool) -> None:
    names, found = seen.listing.names, seen.found
    if not names:
        print_wrapped(out, seen.none)
        return
    stuck = sum(not finding.healed for finding in found)
    sessions = "1 session" if seen.listing.sessions == 1 else f"{seen.listing.sessions} sessions"
    where = names[0] if len(names) == 1 else f"{len(names)} stores"
    none = "none of those that could be read is stuck" if seen.listing.unreadable else "none is stuck"
    none += " but what is ignored" if seen.ignored else ""
    out.print(f"{sessions} in {plain(where)}: {f'{stuck} stuck' if stuck else none}{_others(seen)}.")
    if diff:
        for finding in (*found, *seen.ignored, *seen.elsewhere):
            out.print()
            show_finding(out, finding, seen.whose)
            _show_planned(out, finding)
    else:
        for finding in (*found, *(seen.ignored if seen.named else ())):
            state = "healed" if finding.healed else "stuck and ignored" if finding.ignored else "stuck"
            _row(out, seen, finding, f", {state}", finding.outlook)
    if seen.off:
        out.print()
        print_wrapped(out, seen.off)
    _show_ahead(out, seen)
    if seen.elsewhere and not diff:
        _show_elsewhere(out, seen.elsewhere)
    if seen.ignored and not seen.named:
        out.print()
        those = "1 is" if len(seen.ignored) == 1 else f"{len(seen.ignored)} are"
        print_wrapped(out, f"{those} stuck and ignored (`{command_line('ignore')}`).")
    healable = [f for f in found if f.changes and not f.healed and not f.undone]
    _advise(out, healable if advise else [], seen.asked, stuck)


def _show_elsewhere(out: Console, found: Sequence[Finding]) -> None:
    """Say how many there are of each sort. Nothing else names their ids to a person: that of the newest is told."""
    out.print()
    for reason, many in Counter(finding.diagnosis.reason for finding in found).items():
        those = (finding for finding in found if finding.diagnosis.reason == reason)
        newest = max(those, key=_ended_at).failure
        of_them = "" if many == 1 else f" of the newest; `{command_line('scan', '--json')}` has the id of each"
        explain = command_line("explain", session=newest.session)
        print_wrapped(out, f"{many} {ended_words(reason)}: `{explain}` says more{of_them}.")


def _ended_at(finding: Finding) -> float:
    """Tell when a session came to what it is told of (milliseconds): its failure, or else the undo of its repair."""
    return finding.failure.time or ((finding.undone and finding.undone.undone) or 0) * 1000


def _row(out: Console, seen: _Seen, finding: Finding, state: str, outlook: str) -> None:
    out.print()
    print_wrapped(out, finding.title or "(no title)")
    named = finding.failure.session + in_brackets(seen.whose, finding.failure.store)
    print_wrapped(out, f"{named}{state}: {finding.cause}", 4)
    if state and finding.evidence and (finding.silent or finding.kind is None) and not finding.healed:
        print_wrapped(out, evidence_line(finding.evidence), 4)
    print_wrapped(out, outlook, 4)


def _show_ahead(out: Console, seen: _Seen) -> None:
    if seen.ahead is None:
        return
    out.print()
    if not seen.ahead:
        print_wrapped(out, "Of the others, none is known to be refused at its next prompt.")
        return
    when = "its next prompt" if len(seen.ahead) == 1 else "their next prompts"
    print_wrapped(out, f"{len(seen.ahead)} more would be refused at {when}:")
    for finding in seen.ahead:
        _row(out, seen, finding, "", finding.action)
    if any(finding.changes for finding in seen.ahead):
        out.print()
        print_wrapped(out, _LATER)


def _others(seen: _Seen) -> str:
    """Tell what is stuck on other kinds than the one that was asked for."""
    if not seen.others:
        return ""
    lists = command_line("scan", **{**seen.asked, "kind": None})
    return f" on that kind, {seen.others} on another (`{lists}` lists {'it' if seen.others == 1 else 'them'})"


def _advise(out: Console, left: Sequence[Finding], asked: Mapping[str, str | None], stuck: int) -> None:
    """Name the command that heals what is `left` to heal of what is `stuck`, and nothing else (`asked`)."""
    waiting = Counter(finding.kind for finding in left if finding.waits)
    now = len(left) - waiting.total()
    if now:
        what = f"{now} of these" if now < stuck else "it" if now == 1 else "them"
        out.print()
        print_wrapped(out, f"To heal {what}: {command_line('scan', '--repair', **asked)}")
    for kind, n in waiting.items():
        each = "1 is" if n == 1 else f"{n} are"
        heals = command_line("scan", "--repair", **{**asked, "kind": kind})
        out.print()
        print_wrapped(out, f"{each} in order until the next prompt. To heal: {heals}")
