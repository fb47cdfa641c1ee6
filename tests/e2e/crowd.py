"""Many sessions with faults of every kind at once: prompted side by side, healed by a running daemon, taken back."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.client import Client
from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, Outcome
from tests.e2e.heals import files
from tests.e2e.provider import Request
from tests.e2e.strict import Strict
from tests.support.generate import Generated

SIDE_BY_SIDE = 6
# That a signature is bad shows in nothing but the provider's words, and it has words for other faults first; then for
# the latest message, then for all. What it names goes with all thinking behind it: each of the two is said but once.
SIGNATURE = ("thinking_block_modified", "thinking_signature_invalid")
ROUNDS = 4  # one more than there may be
_HALF = re.compile("[\ud800-\udfff]")
_MARK = re.compile(rb"<(ses_\w+) (\d+)>")
Records = dict[str, str]


@dataclass(repr=False)
class Case:
    """One session on its way: every prompt with what it came to, what the daemon says of it, and what was stored."""

    generated: Generated
    other_way: bool  # whether the first prompt after the heal has thinking the other way
    prompts: list[Outcome] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    planted: Records = field(default_factory=dict)
    undone: Records = field(default_factory=dict)
    silenced: list[str] = field(default_factory=list)  # what was said, and is not there any more once it is healed
    codes: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.generated.planted.id

    @property
    def broken(self) -> bool:
        """Whether the provider refused it from the start, or the client had nothing to send."""
        return not self.prompts[0].accepted or self.forestalled

    @property
    def forestalled(self) -> bool:
        """Whether the client took so long to begin that what it would have failed on was mended before."""
        begun = float(((self.prompts[0].result.info or {}).get("time") or {}).get("created") or 0)
        first = self.entries[-1] if self.entries and self.prompts[0].accepted else None
        return first is not None and first["kind"] == "unsendable_part" and 1000 * float(first["time"]) < begun

    @property
    def overtaken(self) -> list[dict[str, Any]]:
        """A client under load may read half of a repair, made because it had not begun: told, and no recovery."""
        return [entry for entry in self.entries if "on its way" in entry["detail"]]

    @property
    def refusals(self) -> list[str]:
        """The kind of each prompt that came to nothing, in order; "crash" where nothing was sent."""
        return [_kind(outcome) for outcome in self.prompts if not outcome.accepted]

    def tell(self) -> str:
        """What went wrong, for the message of an assertion."""
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        asked = [[r.refused for r in outcome.requests] or outcome.result.error for outcome in self.prompts]
        on = "on" if self.generated.thinking else "off"
        return f"{self.id} {self.generated.faults} thinking {on}: {self.problems}; asked {asked}; history {said}"


def _kind(outcome: Outcome) -> str:
    return next((str(request.kind) for request in outcome.requests if request.refused is not None), "crash")


def play(harness: Harness, daemon: Daemon, generated: Sequence[Generated], *, bound: bool) -> list[Case]:
    """Plant the sessions, and go the whole way with each: refused, healed, prompted on, taken back."""
    harness.provider.strict.bound = bound
    harness.client.prompt(harness.client.new_session()["id"])  # the first prompt of a server may take seconds
    cases = [Case(made, other_way=number % 2 == 1) for number, made in enumerate(generated)]
    for case in cases:
        harness.plant(case.generated.planted)
        case.planted = records(harness.client, case.id)
    _prompt_all(harness, cases, lambda case: case.generated.thinking)
    waiting = [case for case in cases if case.broken]
    for times in range(1, ROUNDS + 1):
        found = daemon.wait_settled([case.id for case in waiting], times)
        for case in waiting:
            case.entries = found.get(case.id, [])
        _prompt_all(harness, waiting, lambda case: case.generated.thinking != case.other_way)
        waiting = [case for case in waiting if not case.prompts[-1].accepted and case.entries]
        waiting = [case for case in waiting if case.entries[0]["outcome"] == "healed"]
    _prompt_all(harness, cases, lambda case: case.generated.thinking == case.other_way)
    history = daemon.by_session()
    for case in cases:
        case.entries = history.get(case.id, [])
        case.silenced = _silenced(case, _parts(harness, case.id))
    _undo_all(daemon, cases)
    for case in cases:
        case.undone = records(harness.client, case.id)
        case.problems = list(problems(case))
    harness.provider.clear()
    return cases


def _undo_all(daemon: Daemon, cases: Sequence[Case]) -> None:
    """Each recovery of each session, the newest first; by force, for the model has answered since."""
    undoable = [(case, entry["id"]) for case in cases for entry in case.entries if entry["outcome"] == "healed"]
    codes = daemon.codes([["undo", name, "--force"] for _, name in undoable]) if undoable else []
    for (case, _), code in zip(undoable, codes, strict=True):
        case.codes.append(code)


def _prompt_all(harness: Harness, cases: Sequence[Case], thinking: Callable[[Case], bool]) -> None:
    """One prompt more for each, some of them at a time. A request is known by the mark in its last prompt."""
    marks = {case.id: f"<{case.id} {len(case.prompts)}>" for case in cases}
    before = len(harness.provider.requests)

    def ask(case: Case) -> Any:
        # As a TUI does, which always names the model: a client that fails on a part then stores the prompt at least.
        return harness.client.prompt(case.id, f"go on {marks[case.id]}", thinking(case), 150, model=harness.model)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = list(pool.map(ask, cases))
    caused: dict[str, list[Request]] = {}
    for request in harness.provider.requests[before:]:
        marked = _MARK.findall(request.raw)
        if marked and not request.is_title:
            caused.setdefault(f"<{marked[-1][0].decode()} {int(marked[-1][1])}>", []).append(request)
    for case, result in zip(cases, results, strict=True):
        case.prompts.append(Outcome(result, caused.get(marks[case.id], [])))


def records(client: Client, session: str) -> Records:
    """Every message and part of a session as it is stored: a file's text, or all columns of a row."""
    if not client.database.exists():
        stored = files(client.storage, session).items()
        return {path: content.decode("latin-1") for path, content in stored if not path.startswith("session/")}
    with contextlib.closing(sqlite3.connect(client.database, timeout=10)) as db:
        return {
            f"{table} {row[0]}": repr(row)
            for table in ("message", "part")
            for row in db.execute(f"SELECT * FROM {table} WHERE session_id = ?", (session,))
        }


def _parts(harness: Harness, session: str) -> list[dict[str, Any]]:
    """The parts that are stored and can be read."""
    if harness.client.database.exists():
        with contextlib.closing(sqlite3.connect(harness.client.database, timeout=10)) as db:
            rows = [row[0] for row in db.execute("SELECT data FROM part WHERE session_id = ?", (session,))]
    else:
        rows = [content for path, content in files(harness.client.storage, session).items() if path.startswith("part/")]
    found = []
    for row in rows:
        with contextlib.suppress(ValueError):
            found.append(json.loads(row))
    return [part for part in found if isinstance(part, dict)]


def _silenced(case: Case, now: list[dict[str, Any]]) -> list[str]:
    """Texts and outputs that were planted and are gone, but for half a character in them, and what a revert took."""
    kept = {json.dumps(value) for part in now for value in _said(part)}
    planted = case.generated.planted
    lost = []
    for part in (part for parts in planted.parts.values() for part in parts if part["id"] not in planted.raw):
        for value in _said(part) if not _reverted(case, part["id"]) else ():
            whole = _HALF.sub("\N{REPLACEMENT CHARACTER}", value)
            noted = json.dumps(whole)[:-1] + "\\n[The "  # an image was taken out of the output
            if not kept & {json.dumps(value), json.dumps(whole)} and not any(text.startswith(noted) for text in kept):
                lost.append(value)
    return lost


def _said(part: dict[str, Any]) -> list[str]:
    """The text of user and model, and what tools gave back; blank ones say nothing."""
    stored = part.get("state")
    state = stored if isinstance(stored, dict) else {}
    said = [part.get("text")] if part.get("type") == "text" else [state.get("output"), state.get("error")]
    return [text for text in said if isinstance(text, str) and text.strip()]


def unforeseen(case: Case) -> list[str]:
    """The kinds of later refusals that are about nothing which only they tell: a signature, or an image that this door
    does not take. It takes 5 MB of one, Anthropic 10.
    """
    later = [kind for kind in case.refusals[1:] if kind not in SIGNATURE]
    told = [str(request.refused) for outcome in case.prompts for request in outcome.requests if request.refused]
    sizes = sum("image exceeds 5 MB maximum" in words for words in told)
    return [kind for number, kind in enumerate(later) if kind != "media_rejected" or number >= sizes]


def problems(case: Case) -> list[str]:
    """What does not hold of this session: nothing, if all is well."""
    found: list[str] = []
    outcomes = [entry["outcome"] for entry in case.entries if entry not in case.overtaken]
    if not case.broken:
        if outcomes:
            found.append("it was accepted, and there is a recovery")
        if _lost(case, case.undone):
            found.append(f"it was accepted, and changed: {_lost(case, case.undone)}")
        return found
    if outcomes != ["healed"] * (len(case.refusals) + case.forestalled):
        found.append(f"{len(case.refusals)} refusals, and these recoveries: {outcomes}")
    signatures = [kind for kind in case.refusals if kind in SIGNATURE]
    if unforeseen(case) or signatures != [kind for kind in SIGNATURE if kind in signatures]:
        found.append(f"a chain of refusals: {case.refusals}")
    if any("bound to a different" in str(request.refused) for outcome in case.prompts for request in outcome.requests):
        found.append("thinking was left that is bound to something else")
    raced = bool(case.forestalled or case.overtaken)
    if not all(outcome.accepted for outcome in case.prompts[-1 if raced else -2 :]):
        found.append("it does not go on")
    elif not raced and (why := _the_other_way(case)) is not None:
        found.append(f"it goes on in one way of thinking only: {why}")
    if case.silenced:
        found.append(f"healed, it does not say {case.silenced} any more")
    if any(case.codes):
        found.append(f"undo: {case.codes}")
    if lost := _lost(case, case.undone):
        found.append(f"undo did not bring back {lost}")
    if left := [key for key, content in case.undone.items() if "recoveryd" in content]:
        found.append(f"undo left {left}")
    return found


def _the_other_way(case: Case) -> str | None:
    """What a provider says of the first request that was accepted, were thinking the other way."""
    request = next(o for o in case.prompts if o.accepted).requests[0]
    body = dict(request.body or {})
    on = body.pop("thinking", None)
    if on is None:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    refusal = Strict().judge(json.loads(json.dumps(body)))
    return refusal.message if refusal else None


def _lost(case: Case, now: Records) -> list[str]:
    """Planted records that are not as they were, but for what the client takes back with a revert."""
    return [key for key, content in case.planted.items() if now.get(key) != content and not _reverted(case, key)]


def _reverted(case: Case, key: str) -> bool:
    planted = case.generated.planted
    target = planted.session.get("revert", {}).get("messageID")
    ids = [message["id"] for message in planted.messages]
    gone = ids[ids.index(target) :] if target else []
    return any(message in key or any(part["id"] in key for part in planted.parts[message]) for message in gone)
