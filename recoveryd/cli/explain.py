"""`recoveryd explain`"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rich.console import Console

from recoveryd.cli.common import config_of, known_ledger, no_session, stores_of, with_clients
from recoveryd.cli.findings import Finding, finding_of, show_finding
from recoveryd.cli.output import OK, WRONG, Result, print_wrapped, render
from recoveryd.cli.reasons import NOT_THE_HISTORY
from recoveryd.clients import Clients, Store, Whose, look_up, read_error, root_title
from recoveryd.core import (
    Diagnosis,
    Failure,
    Kind,
    RecordedError,
    RecoverydError,
    UsageError,
    command_line,
    is_repairable,
    is_session_id,
    kind_info,
)
from recoveryd.diagnose import Context
from recoveryd.heal import Recovery
from recoveryd.providers import candidates, classify, families_with, other_cause
from recoveryd.settings import paths
from recoveryd.tell import cause, remedy


def explain(arguments: argparse.Namespace) -> int:
    """Run `recoveryd explain`: tell what an error or a session is about, and what would be done."""
    if sum(map(bool, (arguments.jsonl, arguments.session, arguments.text))) > 1:
        raise UsageError("A text, --session or --jsonl: it explains one of these.")
    if arguments.jsonl:
        return _lines()
    if arguments.session:
        return _session(arguments)
    if arguments.text is None or not arguments.text.strip():
        raise UsageError("What is to be explained?", "Give the error's text, - to read it from stdin, or --session ID.")
    _must_be_words(arguments.text)
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if arguments.text == "-" else arguments.text
    if not text.strip():
        raise UsageError("What was read from stdin is empty.", "Give it the error's text.")
    error = read_error(text)
    kind = _kind(error)

    def say(out: Console) -> None:
        print_wrapped(out, _no_kind(error) if kind is None else f"{kind}: {cause(kind)}.")
        by_name = error.kind is Kind.CONTEXT_OVERFLOW
        if kind is not None and not by_name and not candidates(error):
            print_wrapped(out, _NOT_BY_WORDS.format(command=command_line("explain", session="ID")))
        print_wrapped(out, remedy(kind))
        if kind is not None and (names := families_with(kind)):
            words, offer = "; ".join(sorted(names)), kind_info(kind).offer
            print_wrapped(out, f"In sessions with {words} you can {offer}" if offer else _WHOSE.format(names=words))
        if kind is Kind.CONTEXT_OVERFLOW:
            print_wrapped(out, _SHORTER.format(command=command_line("explain", session="ID")))

    return render(Result(_verdict(kind, error), say), as_json=arguments.json)


def _must_be_words(text: str) -> None:
    """Raise UsageError for the id of a session or of a recovery in the place of an error's text."""
    if is_session_id(text):
        raise UsageError(f"{text} is the id of a session, and no error.", command_line("explain", session=text))
    known = False
    if text.isascii() and text.isalnum():
        with suppress(RecoverydError), known_ledger() as ledger:  # a damaged one is no matter of a text
            known = ledger.find(text) is not None
    if known:
        raise UsageError(f"{text} is the id of a recovery, and no error.", command_line("show", text))


_WHOSE = (
    "This is done in sessions with {names}. Those with others are left as they are, but for parts on which the client "
    "itself fails; so are those that the client mends by itself, as Claude Code mostly does."
)
_SHORTER = (
    "This is done in sessions of OpenCode and of clients made from it, but not with every provider: `{command}` tells "
    "of a session. In Codex and Claude Code: `/compact`."
)
_NOT_BY_WORDS = "The words alone do not tell that. Of a session, `{command}` tells what is meant."
_UNKNOWN = (
    "recoveryd does not know this error. Send the prompt again; if it fails each time, please report the text; "
    f"{NOT_THE_HISTORY}."
)


def _kind(error: RecordedError) -> Kind | None:
    refused = classify(error)
    return refused.kind if refused is not None else None


def _no_kind(error: RecordedError) -> str:
    """Tell in words why there is no kind."""
    kinds = candidates(error)
    if len(kinds) > 1:
        return f"This fits more than one kind ({', '.join(sorted(kinds))}), and recoveryd does not guess."
    return other_cause(error) or _UNKNOWN


def _verdict(kind: Kind | None, error: RecordedError) -> dict[str, Any]:
    action = remedy(kind) if kind is not None else f"{remedy(kind)} {_no_kind(error)}"
    return {"kind": kind, "repairable": is_repairable(kind), "action": action}


def _lines() -> int:
    """Answer one JSON object a line with one line. A line that is no object is answered too: the lines stay in step."""
    code = OK
    for line in sys.stdin.buffer:  # bytes: one that is no UTF-8 is one bad line, not the end
        if not line.strip():
            continue
        try:
            error = read_error(_asked(json.loads(line)))
            answer = _verdict(_kind(error), error)
        except (ValueError, RecursionError):
            code = WRONG
            answer = {
                **_verdict(None, RecordedError()),
                "problem": "this line is no JSON object with an error or a text",
            }
        print(json.dumps(answer), flush=True)  # noqa: T201
    return code


def _asked(asked: object) -> object:
    """Return what a line asks about: an error as a client records it, or a text."""
    if isinstance(asked, Mapping):
        error, text = asked.get("error"), asked.get("text")
        for one in (error if isinstance(error, Mapping) else None, text, error):
            if isinstance(one, (Mapping, str)):
                return one
    raise ValueError(asked)


def _session(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    stores, unread = look_up(Clients(config), there := stores_of(config), arguments.session)
    if not stores:
        lists = f"`{command_line('scan')}` lists those that are stuck."
        raise no_session(arguments.session, there, map(str, unread.values()), lists)
    with known_ledger() as ledger:
        recovery = Recovery(Context(ledger, config, paths.state_dir()))
        asked = [finding_of(store, arguments.session, recovery) for store in stores]
    findings = [finding for finding in asked if finding is not None]
    stuck = [finding for finding in findings if finding.stuck]
    whose = Whose(config)
    told = _told(stuck or findings, whose) if findings else _not_stuck(stores[0], arguments.session)
    return render(replace(told, data=with_clients(told.data, whose)), as_json=arguments.json)


def _told(findings: Sequence[Finding], whose: Whose) -> Result:
    """Tell of a session in one store, or in several that have it; as JSON of the first."""

    def show(out: Console) -> None:
        for number, finding in enumerate(findings):
            if number:
                out.print()
            show_finding(out, finding, whose)

    return Result({"stuck": findings[0].stuck, **findings[0].data()}, show)


def _not_stuck(store: Store, session: str) -> Result:
    words = f"Session {session} is not stuck, by what is stored: its newest prompt was not refused."
    nothing = Diagnosis(Failure(store.id, session, "", 0), None, code="")
    fine = Finding(nothing, root_title(store, session), words)
    return Result({"stuck": False, **fine.data()}, lambda out: print_wrapped(out, words))
