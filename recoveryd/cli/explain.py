"""`recoveryd explain`"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from recoveryd.classify import classify, classify_text
from recoveryd.cli.common import config_of, stores_of
from recoveryd.cli.output import OK, USAGE, WRONG, Result, render, wrapped
from recoveryd.cli.scan import Finding, find, show_finding
from recoveryd.errors import NotFoundError, RecoverydError
from recoveryd.model import Kind
from recoveryd.report import cause, remedy, repairable


def explain(arguments: argparse.Namespace) -> int:
    if arguments.jsonl:
        return _lines()
    if arguments.session:
        return _session(arguments)
    if arguments.text is None:
        print("recoveryd explain: give the error's text, - to read it from stdin, or --session ID", file=sys.stderr)  # noqa: T201
        return USAGE
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if arguments.text == "-" else arguments.text
    kind = classify_text(text)

    def say(out: Console) -> None:
        if kind is None:
            wrapped(out, "This is not about the stored history of a session, as far as recoveryd knows.")
        else:
            wrapped(out, f"{kind}: the request holds {cause(kind)}.")
        wrapped(out, remedy(kind))

    return render(Result(_verdict(kind), say), as_json=arguments.json)


def _verdict(kind: Kind | None) -> dict[str, Any]:
    return {"kind": kind, "repairable": repairable(kind), "action": remedy(kind)}


def _lines() -> int:
    """One JSON object a line in, one out; a line that is none is answered too, so that the lines stay in step."""
    code = OK
    for line in sys.stdin.buffer:  # bytes: one that is no UTF-8 is one bad line, not the end
        if not line.strip():
            continue
        try:
            asked = json.loads(line)
            kind = _asked(asked)
            answer = _verdict(kind)
        except (ValueError, RecursionError):
            code = WRONG
            answer = {**_verdict(None), "problem": "this line is no JSON object with an error or a text"}
        print(json.dumps(answer), flush=True)  # noqa: T201
    return code


def _asked(asked: object) -> Kind | None:
    if isinstance(asked, Mapping):
        error, text = asked.get("error"), asked.get("text")
        if isinstance(error, Mapping):
            return classify(error)
        if isinstance(text, str):
            return classify_text(text)
        if isinstance(error, str):
            return classify_text(error)
    raise ValueError(asked)


def _session(arguments: argparse.Namespace) -> int:
    config = config_of(arguments)
    for store in stores_of(config):
        finding = find(store, config, arguments.session)
        if finding is not None:
            return render(_told(finding), as_json=arguments.json)
        if _knows(store, arguments.session):
            return render(_not_stuck(arguments.session), as_json=arguments.json)
    hint = "`recoveryd scan` lists those that are stuck."
    raise NotFoundError(f"There is no session {arguments.session} in any store.", hint)


def _told(finding: Finding) -> Result:
    return Result(finding.data(), lambda out: show_finding(out, finding))


def _not_stuck(session: str) -> Result:
    words = f"Session {session} is not stuck: its last answer came through, or no error is recorded."
    return Result({"session": session, "kind": None}, lambda out: wrapped(out, words))


def _knows(store: Any, session: str) -> bool:
    try:
        return bool(store.load(session).messages)
    except RecoverydError:
        return False
