"""Sessions that are too long for their model, on the real client: refused, healed by a daemon, undone, healed, used.

`python -m tests.e2e.overflow --version 1.18.33` plays all of them in all ways, which takes minutes, and writes a table.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.wire.anthropic import AnthropicMessages
from recoveryd.clients.opencode.wire.form import Form
from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, Outcome, running, settle
from tests.e2e.heals import files
from tests.e2e.install import DATABASE, DEFAULT_VERSION, JSON_STORE
from tests.e2e.overflow_scenes import SCENES, Lived, Scene
from tests.e2e.provider import Request
from tests.e2e.strict import MAX_REQUEST
from tests.e2e.tokens import (
    NO_NUMBERS,
    SUM,
    TOO_LARGE,
    TOO_LARGE_MOONSHOT,
    TOO_LARGE_QWEN,
    TOO_LARGE_TOLD,
    TOO_LONG,
    count,
)
from tests.support.build import Planted, SessionBuilder
from tests.support.long_sessions import FIRST, LONG, Long
from tests.support.values import as_session

LIMIT = 200_000  # tokens
SHARE = 0.7
OFF = {"compaction": {"auto": False, "prune": False}}
PROMPTS = 3
_LOOK_S = 12.0  # until a daemon has healed what was refused, if it does


@dataclass(repr=False)
class Played:
    """What became of one session. `records` and `undone` are all of it, once it was refused and after the undo."""

    case: Long
    lived: Lived
    records: dict[str, bytes]
    entries: list[dict[str, Any]] = field(default_factory=list)
    undo: int = 0
    undone: dict[str, bytes] = field(default_factory=dict)
    again: list[Outcome] = field(default_factory=list)
    touched: bool = False
    later: int = 0  # repairs of what a later prompt was refused for: what the client itself did to bound thinking, say
    log: str = ""  # what the daemon said of it until it was to be healed

    @property
    def id(self) -> str:
        return self.lived.session

    @property
    def refused(self) -> Outcome:
        return self.lived.refused

    @property
    def healed(self) -> bool:
        return bool(self.entries) and self.entries[0]["outcome"] in ("healed", "undone")

    @property
    def sent(self) -> int:
        """The tokens of the first request that was accepted after all."""
        return count(self._first) if self._first else 0

    @property
    def _first(self) -> dict[str, Any] | None:
        return next((r.body for outcome in self.again for r in outcome.requests if r.refused is None and r.body), None)

    @property
    def problems(self) -> list[str]:
        """What should not be, of a session that is to be healed."""
        if not self.refused.requests:
            return [f"the client asked nobody: {self.refused.result}"]
        wrong = [] if not self.refused.accepted else ["it was not refused"]
        if not self.healed:
            return [*wrong, "it was not healed"]
        wrong += [] if self.undo == 0 and self.undone == self.records else [f"undo {self.undo}: {self._unlike()}"]
        if self.accepted < PROMPTS or len(self.again) > PROMPTS + self.later:
            wrong.append(f"{self.accepted} of {len(self.again)} prompts were accepted")
        said = json.dumps(self._first, ensure_ascii=False)
        wrong += [f"{what!r} is not sent" for what in self._owed() if what not in said]
        return wrong

    @property
    def accepted(self) -> int:
        """How many prompts were answered after all."""
        return sum(outcome.accepted for outcome in self.again)

    def _unlike(self) -> str:
        keys = self.records.keys() | self.undone.keys()
        return ", ".join(sorted(key for key in keys if self.records.get(key) != self.undone.get(key)))

    @property
    def kept(self) -> str:
        """What is sent after the heal, of what the target allows; "" where nothing was to be kept by its tokens."""
        by_tokens = all(" tokens: " in entry["detail"] for entry in self.entries)
        return f"{self.sent / (SHARE * LIMIT):.0%}" if self.healed and self.sent and by_tokens else ""

    @property
    def came_to(self) -> str:
        """What became of it, in a word or two."""
        if self.healed:
            return "healed" if not self.problems else f"WRONG: {'; '.join(self.problems)}"
        first = next((number for number, outcome in enumerate(self.again) if outcome.accepted), None)
        if self.refused.accepted or first is None or self.accepted < PROMPTS:
            what = "never refused" if self.refused.accepted and self.accepted == PROMPTS else "stuck"
        else:
            what = f"{'healed' if self.later else 'by itself'}, prompt {first + 2}"
        return f"WRONG: {what}, and touched" if self.touched and not self.later else what

    def _owed(self) -> Iterator[str]:
        """What has to be sent: the first task and the newest words, but for what the client itself left out before."""
        asked = [json.dumps(one.body) for one in self.refused.requests if one.body and one.body.get("tools")]
        for what in (FIRST, self.lived.newest):
            raw = next((raw for raw in self.records.values() if json.dumps(what)[1:-1].encode() in raw), b"")
            if b'"compacted"' not in raw and (not asked or json.dumps(what)[1:-1] in asked[-1]):
                yield what

    def tell(self) -> str:
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        first, then = (
            [(count(r.body or {}), r.refused) for r in some] for some in (self.refused.requests, self._then())
        )
        return f"{self.case.name} ({self.id}): {first}; {self.problems}; {said}; then {then}"

    def _then(self) -> list[Request]:
        return [request for outcome in self.again for request in outcome.requests]


def newest(planted: Planted) -> str:
    """The last line of what stands last in the planted session, as JSON spells it."""
    for message in reversed(planted.messages):
        for part in reversed(planted.parts[message["id"]]):
            state = part.get("state") or {}
            said = part.get("text") or state.get("output")
            if isinstance(said, str) and said:
                return said.strip().splitlines()[-1][-40:]
    raise AssertionError("nothing is said")


def records(harness: Harness, session: str) -> dict[str, bytes]:
    """All that the client keeps of a session, but when its record was last touched."""
    if not harness.client.database.exists():
        return {path: _bare(raw) for path, raw in files(harness.client.storage, session).items()}
    loaded = OpencodeSqlite(harness.client.database).load(session)
    found = {message.id: message.raw or b"" for message in loaded.messages}
    return found | {part.id: part.raw or b"" for message in loaded.messages for part in message.parts}


def _bare(raw: bytes) -> bytes:
    """Without what 1.1 adds to a prompt when it is done with its turn, and what it touches of the session itself."""
    data = json.loads(raw)
    return json.dumps({key: value for key, value in data.items() if key not in ("summary", "time")}).encode()


def _issue(harness: Harness, planted: Planted) -> None:
    """Bind its thinking to what the client sends of it with a prompt: a summary may be what is asked first."""
    if not harness.provider.strict.bound:
        return
    form = "new" if harness.client.version() not in (JSON_STORE, DATABASE) else "old"
    wire = AnthropicMessages("anthropic", harness.model["modelID"], Form.named(form))
    turns = wire.stored(as_session(planted)).turns
    asked = harness.provider.main[0].body or {}
    messages = [{"role": turn.role, "content": [dict(block.body) for block in turn.blocks]} for turn in turns]
    harness.provider.learn({**asked, "messages": messages})


def _go_on(harness: Harness, planted: Planted) -> Lived:
    refused = harness.prompt(planted.id, "go on", thinking=True, model=harness.model)
    settle(harness, planted.id)
    return Lived(planted.id, refused, newest(planted))


def play(harness: Harness, daemon: Daemon, cases: Sequence[Long], *, heals: bool = True) -> list[Played]:
    """Plant and prompt all; wait for the daemon; undo, heal again as a person does, and go on with each."""
    played: list[Played] = []
    for case in cases:
        planted = case.build()
        harness.plant(planted)
        _issue(harness, planted)
        with daemon.held():  # it would heal before the records are read
            lived = case.live(harness, planted.id) if isinstance(case, Scene) else _go_on(harness, planted)
            played.append(Played(case, lived, records(harness, lived.session)))
    found = daemon.wait_settled([one.id for one in played]) if heals else daemon.by_session()
    for one in played:
        one.entries = found.get(one.id, [])
        one.log = "\n".join(line for line in daemon.log.splitlines() if one.id in line)
    if heals:
        healed = [one for one in played if one.healed]
        codes = daemon.codes([["undo", one.entries[0]["id"]] for one in healed])
        for one, code in zip(healed, codes, strict=True):
            one.undo, one.undone = code, records(harness, one.id)
        daemon.codes([["scan", "--repair", "--yes", "--session", one.id] for one in healed])
    found = daemon.by_session()
    for one in played:
        _go_on_with(harness, daemon, one, len(found.get(one.id, [])))
        one.touched = any(b"recoveryd" in raw for raw in records(harness, one.id).values())
    return played


def _go_on_with(harness: Harness, daemon: Daemon, one: Played, known: int) -> None:
    """Prompt it until so many are answered; where one is refused, let the daemon look at it first. `known`: how many
    recoveries it had."""
    while one.accepted < PROMPTS and len(one.again) < 2 * PROMPTS:
        one.again.append(harness.prompt(one.id, f"and on, {len(one.again)}", thinking=one.lived.thinking))
        settle(harness, one.id)
        if not one.again[-1].accepted:
            found = _looked(daemon, one.id, known)
            one.later += len(found) > known and found[0]["outcome"] == "healed"
            known = len(found)


def _looked(daemon: Daemon, session: str, known: int) -> list[dict[str, Any]]:
    """The recoveries of a session, once there are more than `known`; it may be that nothing is to be done."""

    def done() -> bool:
        found = daemon.history(session)
        return len(found) > known and found[0]["outcome"] != "pending"

    with suppress(AssertionError):
        daemon.wait(done, "", timeout=_LOOK_S)
    return daemon.history(session)


@contextmanager
def place(
    root: Path,
    version: str,
    *,
    config: dict[str, Any] | None = None,
    bound: bool = False,
    words: str = TOO_LONG,
    max_bytes: int = MAX_REQUEST,
    of_bytes: str = TOO_LARGE,
    limit: int = LIMIT,
    context: int = LIMIT,
) -> Iterator[tuple[Harness, Daemon]]:
    """A client of this version, a provider with a `limit`, and a daemon on its store; `context`: by its settings."""
    with (
        running(root / "client", version, config=config, bound=bound, limit=limit, context=context) as harness,
        Daemon(root / "daemon", root / "client" / "data") as daemon,
    ):
        strict = harness.provider.strict
        strict.words, strict.max_bytes, strict.of_bytes = words, max_bytes, of_bytes
        if bound:  # what the client sends of its own
            harness.prompt(harness.client.new_session()["id"], "hello", thinking=True, model=harness.model)
        yield harness, daemon


def small_talk(s: SessionBuilder, _: random.Random) -> None:
    """Nothing is wrong with it."""
    s.user(FIRST)
    s.assistant("done")


@dataclass(frozen=True)
class Stopped:
    """What became of a client whose own words and tools are longer than its model takes, or its settings let it take.

    `entries`: what the daemon did; `asked`: the requests until it was done, and `later` those after that.
    """

    entries: list[dict[str, Any]]
    asked: int
    later: int
    touched: bool


def no_room(harness: Harness, daemon: Daemon) -> Stopped:
    """Prompt a short session of such a client, which may ask for ever."""
    planted = Long("no-room", small_talk).build()
    harness.plant(planted)
    before = len(harness.provider.requests)
    assert harness.client.prompt_async(planted.id, "go on") == 204
    daemon.wait_settled([planted.id])
    harness.client.wait_idle(planted.id)
    asked = len(harness.provider.requests) - before
    settle(harness, planted.id, quiet=1.5)
    later = len(harness.provider.requests) - before - asked
    marked = any(b"recoveryd" in raw for raw in records(harness, planted.id).values())
    return Stopped(daemon.history(planted.id), asked, later, marked)


NO_ROOM: dict[str, dict[str, Any]] = {"limit": {"limit": 8_000}, "settings": {"context": 8_000}}
WAYS: dict[str, dict[str, Any]] = {
    "off": {"config": OFF},  # the client neither clears nor compacts
    "default": {},
    "bound": {"config": OFF, "bound": True},
    "bound on": {"bound": True},  # and the client compacts
    "sum": {"config": OFF, "words": SUM},
    "no numbers": {"config": OFF, "words": NO_NUMBERS},
    "bytes": {"config": OFF, "max_bytes": 800_000},  # a 413 of a proxy
    "bytes told": {"config": OFF, "max_bytes": 800_000, "of_bytes": TOO_LARGE_TOLD},
    "bytes, Qwen": {"config": OFF, "max_bytes": 800_000, "of_bytes": TOO_LARGE_QWEN},  # with a 400
    "bytes, Moonshot": {"config": OFF, "max_bytes": 800_000, "of_bytes": TOO_LARGE_MOONSHOT},
}
HEAD = "| case | version | way | came to | of the target | undo | then |\n|---|---|---|---|---|---|---|"


def row(version: str, way: str, one: Played) -> str:
    """Tell in a row of a table what became of a session."""
    undo = ("exact" if one.undo == 0 and one.undone == one.records else "WRONG") if one.healed else ""
    accepted = f"{one.accepted} of {len(one.again)}" + (f", healed {one.later} more" if one.later else "")
    return f"| {one.case.name} | {version} | {way} | {one.came_to} | {one.kept} | {undo} | {accepted} |"


def main() -> None:
    """Play all cases in all ways, and tell what became of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument(
        "--case", nargs="+", choices=[*LONG, "control", *SCENES, "all", "scenes", "no-room"], default=["all"]
    )
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--tell", action="store_true", help="all of each, not only of what went wrong")
    asked = parser.parse_args()
    if "no-room" in asked.case:
        for way, how in NO_ROOM.items():
            with tempfile.TemporaryDirectory() as folder, place(Path(folder), asked.version, **how) as (h, daemon):
                print(asked.version, way, no_room(h, daemon), flush=True)
        return
    every = {**LONG, "control": Long("control", small_talk), **SCENES}
    named = {"all": list(every), "scenes": list(SCENES)}
    cases = [every[name] for case in asked.case for name in named.get(case, [case])]
    print(HEAD, flush=True)
    for way in [asked.way] if asked.way else WAYS:
        small = "max_bytes" in WAYS[way]  # less than a scene says before anything is to be refused
        played = [case for case in cases if not (small and isinstance(case, Scene))]
        with tempfile.TemporaryDirectory() as folder, place(Path(folder), asked.version, **WAYS[way]) as (h, daemon):
            for one in play(h, daemon, played):
                print(row(asked.version, way, one), flush=True)
                if asked.tell or "WRONG" in one.came_to or one.came_to == "stuck":
                    print(one.tell()[:2000], file=sys.stderr, flush=True)
            if "Traceback" in daemon.log or "fault of" in daemon.log:
                print(daemon.log[-3000:], file=sys.stderr)


if __name__ == "__main__":
    main()
