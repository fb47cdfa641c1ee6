"""Stored sessions at random: healthy turns of every sort, and faults among them, all from one source of chance.

`CHANCE` is that source for hypothesis: half of it shrinks, half of it is a seed and lies all over the place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from tests.e2e.media import data_url, png
from tests.e2e.signing import redacted, sign
from tests.support.build import SessionBuilder
from tests.support.parts import (
    Part,
    aborted,
    api_error,
    compaction,
    file,
    raw,
    reasoning,
    step_finish,
    step_start,
    subtask,
    text,
    tool,
)
from tests.support.planted import Planted

START = 1_790_000_000_000  # ms: some weeks after ids started again near zero
OTHER = "claude-opus-4-1"
PICTURE = data_url(png(4, 4))
BLANKS = (" ", "\n", " \n\t", "\u00a0", "\u3000\n")
WORDS = ("a word", "two words", "日本語", "😀 grüße", "x\x00y", "line\nline", " spaced ", "{}", "[b]bold[/b]", "\ufffd")

CHANCE = st.one_of(st.integers(0, 2**32 - 1).map(random.Random), st.randoms(use_true_random=False))

Turns = Callable[[SessionBuilder, random.Random], object]
Where = Literal["first", "any", "last"]


@dataclass(frozen=True)
class Generated:
    """A session, the kinds of fault that were put in (some may do no harm where they came to stand), and whether the
    next prompt has thinking on."""

    planted: Planted
    faults: tuple[str, ...]
    thinking: bool


@dataclass(frozen=True)
class Fault:
    """Turns that a provider refuses where they are sent. Faults of an open turn are none but at the end."""

    kind: str
    where: Where
    turns: Turns


def generate(
    rng: random.Random, faults: int = 0, turns: int = 6, *, of: Sequence[Fault] = (), thinking: bool | None = None
) -> Generated:
    """A session of up to `turns` healthy turns with `faults` faults among them; `of`: not those of `FAULTS`."""
    on = rng.random() < 0.5 if thinking is None else thinking
    chosen = [rng.choice(of or FAULTS) for _ in range(faults)]
    session = SessionBuilder(START, seed=rng.getrandbits(32), title="generated")
    first = [fault for fault in chosen if fault.where == "first"][:1]
    last = [fault for fault in chosen if fault.where == "last"][:1]
    middle: list[Turns] = [rng.choice(HEALTHY) for _ in range(rng.randint(0, turns))]
    middle += [fault.turns for fault in chosen if fault.where == "any"]
    rng.shuffle(middle)
    for one in [*(f.turns for f in first), *middle, *(f.turns for f in last)]:
        one(session, rng)
    if session.messages and rng.random() < 0.05:
        session.session["revert"] = {"messageID": rng.choice(session.messages)["id"]}
    kept = [*first, *(fault for fault in chosen if fault.where == "any"), *last]
    return Generated(session.planted(), tuple(fault.kind for fault in kept), on)


def soup(rng: random.Random, messages: int = 5, parts: int = 5, *, wild: bool = False) -> Generated:
    """Messages of any parts in any order: mostly broken, in ways that nobody thought of. `wild`: illegal ones too."""
    session = SessionBuilder(START, seed=rng.getrandbits(32), title="soup")
    for _ in range(rng.randint(1, messages)):
        if rng.random() < 0.4:
            session.user(*_some(rng, (*USER_PARTS, *(WILD_USER_PARTS if wild else ())), 2))
        else:
            _answer(session, rng, parts, (*ANSWER_PARTS, *(WILD_PARTS if wild else ())))
    return Generated(session.planted(), (), rng.random() < 0.5)


def _answer(
    session: SessionBuilder, rng: random.Random, parts: int, makers: Sequence[Callable[[random.Random], Part]]
) -> None:
    error = aborted() if rng.random() < 0.15 else None
    fields = {"modelID": OTHER} if rng.random() < 0.1 else {}
    bare = rng.random() < 0.2
    session.assistant(*_some(rng, makers, parts), error=error, bare=bare, completed=rng.random() < 0.9, **fields)


def _some(rng: random.Random, makers: Sequence[Callable[[random.Random], Part]], most: int) -> list[Part]:
    return [rng.choice(makers)(rng) for _ in range(rng.randint(0, most))]


def words(rng: random.Random) -> str:
    return rng.choice(WORDS)


def blank(rng: random.Random) -> Part:
    return text(rng.choice(BLANKS))


def said(rng: random.Random) -> Part:
    return text(words(rng))


def thought(rng: random.Random) -> Part:
    return reasoning(words(rng))


def forged(rng: random.Random) -> Part:
    return reasoning(words(rng), f"forged-{rng.getrandbits(40)}")


def modified(rng: random.Random) -> Part:
    return reasoning(words(rng), sign("what was thought at first", f"m{rng.getrandbits(40)}"))


def unsigned(rng: random.Random) -> Part:
    return reasoning(words(rng), None)


def ended(rng: random.Random) -> Part:
    return tool(rng.choice(("bash", "read")), {"command": words(rng)}, words(rng))


def call(rng: random.Random) -> Part:
    """A tool call that a session may hold, in any of its states."""
    cleared = {"start": 1, "end": 2, "compacted": 3}
    return rng.choice(
        (
            ended,
            lambda r: tool(status="error", output=words(r)),
            lambda r: tool(status="running"),
            lambda r: tool(arguments={}, status="pending"),
            lambda r: tool("read", {"filePath": "/a.png"}, words(r), attachments=[file(PICTURE)]),
            lambda r: tool("read", {"filePath": "/a"}, "", time=cleared),
            lambda r: tool(output=""),
        )
    )(rng)


USER_PARTS: tuple[Callable[[random.Random], Part], ...] = (
    said,
    said,
    blank,
    lambda r: text(""),
    lambda r: text(words(r), ignored=True),
    lambda r: text(words(r), synthetic=True),
    lambda r: file(PICTURE),
    lambda r: file("file:///a.txt", "text/plain", "a.txt"),
    lambda r: {"type": "agent", "name": "general"},
    lambda r: subtask(),
)
ANSWER_PARTS: tuple[Callable[[random.Random], Part], ...] = (
    said,
    said,
    blank,
    thought,
    thought,
    unsigned,
    call,
    call,
    ended,
    lambda r: step_start(),
    lambda r: step_start(),
    lambda r: step_finish(),
    lambda r: text(""),
    lambda r: text(words(r), ignored=True),
    lambda r: reasoning(""),
    lambda r: reasoning(words(r), None, redactedData=redacted(f"{r.getrandbits(40)}")),
    lambda r: tool(status="streaming"),
    lambda r: tool("read", {"filePath": "/a.png"}, "", attachments=[file(PICTURE)]),
    lambda r: {"type": "thinking", "thinking": words(r)},
    lambda r: {"type": "patch", "hash": "x", "files": []},
)

HALF = "\ud83d"
PAGE = data_url(b"<html>not found</html>")
WILD_USER_PARTS: tuple[Callable[[random.Random], Part], ...] = (
    lambda r: text(f"{words(r)}{HALF}"),
    lambda r: file(PAGE),
    lambda r: file(data_url(b"<svg/>", "image/svg+xml"), "image/svg+xml"),
    lambda r: file(data_url(b"plain words", "application/pdf"), "application/pdf", "a.pdf"),
    lambda r: file("ftp://somewhere/else.png"),
    lambda r: raw(b'{"id": "prt_'),
)
WILD_PARTS: tuple[Callable[[random.Random], Part], ...] = (
    lambda r: tool(arguments=r.choice(("ls", ["ls"], 7, '{"command": "ls"}'))),
    lambda r: tool(input=None),
    lambda r: tool(call_id=r.choice(("", "toolu_same", "toolu_same", "call.1", "call_1"))),
    lambda r: tool(r.choice(("", "my tool", "server.search", "a" * 201))),
    lambda r: text(f"{HALF}{words(r)}"),
    lambda r: reasoning(f"{words(r)}{HALF}"),
    lambda r: tool(arguments={f"key{HALF}": f"{HALF}x"}, output=f"cut {HALF}"),
    lambda r: tool("read", {"filePath": "/a.png"}, words(r), attachments=[file(PAGE), file(PICTURE)]),
    lambda r: tool(status=""),
    lambda r: {**tool(), "state": None},
    lambda r: tool(output=None),
    lambda r: tool(time=None),
    lambda r: {**tool(), "metadata": {"providerExecuted": True}},
    lambda r: text(words(r), metadata="mine"),
    lambda r: raw(r.choice((b"", b"\0" * 20, b'{"id": "prt_', b"null"))),
)


def _asked(*makers: Callable[[random.Random], Part], **fields: Any) -> Turns:
    """A question, and one answer of these parts."""

    def turns(session: SessionBuilder, rng: random.Random) -> None:
        session.user(words(rng))
        session.assistant(*(maker(rng) for maker in makers), **fields)

    return turns


def _then(*all_turns: Turns) -> Turns:
    def turns(session: SessionBuilder, rng: random.Random) -> None:
        for one in all_turns:
            one(session, rng)

    return turns


def _user(*makers: Callable[[random.Random], Part]) -> Turns:
    return lambda session, rng: session.user(*(maker(rng) for maker in makers))


def _goes_on(*makers: Callable[[random.Random], Part], **fields: Any) -> Turns:
    return lambda session, rng: session.assistant(*(maker(rng) for maker in makers), **fields)


def _step(rng: random.Random) -> Part:
    del rng
    return step_start()


def _compacted(session: SessionBuilder, rng: random.Random) -> None:
    asked = session.user(compaction())
    session.assistant(f"summary: {words(rng)}", parentID=asked["id"], summary=True, mode="compaction")


def _failed(session: SessionBuilder, rng: random.Random) -> None:
    session.failed(words(rng), api_error(rng.choice(("Overloaded", "credit balance is too low"))))


PLAIN = _asked(said)
HEALTHY: tuple[Turns, ...] = (
    PLAIN,
    PLAIN,
    _then(_asked(thought, said, ended), _goes_on(said)),
    _then(_asked(thought, call, call), _goes_on(thought, said)),
    _asked(thought, said),
    _asked(thought, ended, _step, thought, call, _step, said),
    _asked(ended, _step, said),
    _asked(unsigned, said),
    _asked(lambda r: text(""), said, lambda r: text("")),
    _asked(said, call, error=aborted()),
    _then(_asked(unsigned, error=aborted()), PLAIN),
    _then(_asked(error=aborted()), PLAIN),
    _asked(said, lambda r: {"type": "patch", "hash": "x", "files": []}),
    _asked(thought, said, modelID=OTHER),
    _asked(lambda r: reasoning("", None, redactedData=redacted(f"{r.getrandbits(40)}")), said),
    _asked(said, lambda r: text(words(r), synthetic=True)),
    _then(_user(said), _user(said, lambda r: file(PICTURE)), PLAIN),
    _then(_user(said, lambda r: text(words(r), ignored=True)), _goes_on(said)),
    _then(_user(lambda r: subtask()), _goes_on(ended, bare=True), _goes_on(said)),
    _then(_asked(blank, ended, said, forged, error=api_error()), PLAIN),  # not sent, whatever it holds
    _then(_asked(completed=False), PLAIN),
    _then(_asked(call, completed=False), PLAIN),
    _failed,
    _compacted,
)
FAULTS: tuple[Fault, ...] = (
    Fault("tool_result_missing", "any", _then(_asked(ended, said), PLAIN)),
    Fault("tool_result_missing", "any", _then(_asked(thought, call, thought, said), PLAIN)),
    Fault("tool_result_missing", "any", _then(_asked(thought, said, call, said, call), _goes_on(said))),
    Fault("tool_result_missing", "any", _then(_asked(call, _step, said, call, said), PLAIN)),
    Fault("tool_result_missing", "any", _then(_asked(call, said, error=aborted()), PLAIN)),
    Fault("tool_result_missing", "last", _asked(call, said, completed=False)),
    Fault("empty_content", "any", _then(_asked(blank), PLAIN)),
    Fault("empty_content", "any", _then(_asked(thought, blank, said), PLAIN)),
    Fault("empty_content", "any", _then(_asked(blank, ended), _goes_on(said))),
    Fault("empty_content", "any", _then(_asked(ended, blank), PLAIN)),
    Fault("empty_content", "any", _then(_user(blank), _goes_on(said))),
    Fault("empty_content", "any", _then(_user(blank, said, blank), _goes_on(said))),
    Fault("empty_content", "any", _then(_asked(unsigned), PLAIN)),
    Fault("empty_content", "any", _then(_asked(unsigned, lambda r: text(""), error=aborted()), PLAIN)),
    Fault("empty_content", "any", _then(_asked(thought, modelID=OTHER), PLAIN)),
    Fault(
        "empty_content", "any", _then(_asked(lambda r: tool(output=" ", attachments=[file(PICTURE)])), _goes_on(said))
    ),
    Fault("thinking_final_block", "any", _then(_asked(thought), PLAIN)),
    Fault("thinking_final_block", "any", _then(_asked(thought, said, thought), PLAIN)),
    Fault("thinking_final_block", "any", _then(_asked(thought, thought), PLAIN)),
    Fault("thinking_final_block", "last", _asked(thought)),
    Fault("thinking_final_block", "last", _then(_asked(thought, ended), _goes_on(thought))),
    Fault("thinking_signature_invalid", "any", _then(_asked(forged, said), PLAIN)),
    Fault("thinking_signature_invalid", "any", _then(_asked(forged, ended), _goes_on(thought, said))),
    Fault("thinking_signature_invalid", "any", _then(_asked(modified, said), PLAIN)),
    Fault("thinking_signature_invalid", "last", _asked(forged, ended)),
    Fault("thinking_block_modified", "last", _asked(modified, said)),
    Fault("thinking_block_modified", "last", _asked(modified, ended)),
    Fault("thinking_block_modified", "last", _asked(thought, said, modified, said)),
    Fault("thinking_block_order", "last", _asked(ended)),
    Fault("thinking_block_order", "last", _asked(said, thought, call)),
    Fault("thinking_block_order", "last", _asked(unsigned, call, completed=False)),
    Fault("thinking_block_order", "last", _then(_asked(thought, ended), _goes_on(ended))),
    Fault("thinking_disabled_violation", "last", _asked(thought, ended)),
    Fault("thinking_disabled_violation", "last", _asked(thought, ended, _step, thought, call)),
    Fault("thinking_disabled_violation", "last", _asked(thought, call, error=aborted())),
    Fault("role_order", "first", _then(_user(lambda r: text("")), _goes_on(said))),
    Fault("role_order", "first", _then(_user(), _goes_on(ended), _goes_on(said))),
    Fault("role_order", "first", _goes_on(said)),
)

# Of illegal parts, for whose kinds the repairs came later.
LATER: tuple[Fault, ...] = (
    *(Fault("illegal", "any", _then(_user(said, part), _goes_on(said))) for part in WILD_USER_PARTS),
    *(Fault("illegal", "any", _then(_asked(said, part), PLAIN)) for part in WILD_PARTS),
)
