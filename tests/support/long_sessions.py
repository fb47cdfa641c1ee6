"""Sessions that are too long for their model, with the usage that a truthful provider would have reported of them."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.build import Planted, SessionBuilder, api_error, reasoning, text, tool
from tests.support.parts import Part, file

BASE = 10_600  # tokens of the client's own: system and tools
FIRST = "first task: keep the parser small and fast"
PER_TOKEN = 4
IMAGE = 1_600
_WORDS = (
    *("parser", "token", "buffer", "stream", "index", "offset", "branch", "commit", "value", "error", "result"),
    *("field", "while", "until", "after", "before", "under"),
)


def words(rng: random.Random, characters: int) -> str:
    """So many characters of words in lines."""
    line = " ".join(rng.choice(_WORDS) for _ in range(12))
    lines = [f"{number} {line[number % 9 :]}" for number in range(characters // 60 + 1)]
    return "\n".join(lines)[:characters]


def spent(planted: Planted, base: int = BASE) -> Planted:
    """The session with the tokens of each answer as the fake provider of the tests counts them."""
    sent = 0
    for message in planted.messages:
        parts = planted.parts.get(message["id"], [])
        own = sum(map(weight, parts))
        if message["role"] == "assistant" and "error" not in message and message.get("finish"):
            written = max(1, sum(weight(part, results=False) for part in parts) // PER_TOKEN)
            read = base + sent // PER_TOKEN
            tokens: dict[str, Any] = {"input": 10, "output": written, "reasoning": 0, "total": 10 + written + read}
            tokens["cache"] = {"read": read, "write": 0}
            message["tokens"] = tokens
            for part in parts:
                if part["type"] == "step-finish":
                    part["tokens"] = tokens
        if "error" not in message:
            sent += own
    return planted


def weight(part: Part, *, results: bool = True) -> int:
    """The characters that a part takes in a request; without `results` those alone that the model wrote."""
    match part["type"]:
        case "text":
            return len(json.dumps({"type": "text", "text": part["text"]}, ensure_ascii=False)) + 32
        case "reasoning":
            return len(json.dumps(part["text"], ensure_ascii=False)) + 120
        case "file":
            return IMAGE * PER_TOKEN
        case "tool":
            state = part["state"]
            said = json.dumps(state.get("output") or state.get("error"), ensure_ascii=False)
            images = len(state.get("attachments") or [])
            asked = len(json.dumps(state["input"])) + 100
            return asked + results * (len(said) + 160 + images * IMAGE * PER_TOKEN)
    return 0


@dataclass(frozen=True)
class Long:
    """A session longer than its model takes. `build` makes it anew each time."""

    name: str
    turns: Callable[[SessionBuilder, random.Random], None]

    def build(self, now_ms: int | None = None, seed: int | None = None) -> Planted:
        session = SessionBuilder(now_ms, seed=seed, title=self.name)
        self.turns(session, random.Random(7 if seed is None else seed))
        return spent(session.planted())


def bash(rng: random.Random, characters: int) -> Part:
    """A call of `bash` with so much output."""
    return tool("bash", {"command": f"run {rng.randrange(10**6)}"}, words(rng, characters))


def _thought(rng: random.Random, characters: int = 200) -> Part:
    return reasoning(words(rng, characters))


def long_turn(s: SessionBuilder, rng: random.Random) -> None:
    """One turn of many steps; its last step brought more than was left."""
    s.user(FIRST)
    for _ in range(40):
        s.assistant(_thought(rng), bash(rng, 14_000))
    s.assistant(_thought(rng), *(bash(rng, 50_000) for _ in range(5)))


def many_turns(s: SessionBuilder, rng: random.Random) -> None:
    """A dozen turns with tools; the last one brought more than was left."""
    s.user(FIRST)
    for turn in range(12):
        for _ in range(3):
            s.assistant(_thought(rng), bash(rng, 15_000))
        s.assistant(_thought(rng), f"step {turn} is done")
        s.user(f"go on with step {turn + 1}")
    s.assistant(_thought(rng), *(bash(rng, 50_000) for _ in range(5)))


def huge_output(s: SessionBuilder, rng: random.Random) -> None:
    """One output that is longer than all the model takes."""
    s.user(FIRST)
    s.assistant(_thought(rng), "reading")
    s.user("print the log")
    s.assistant(_thought(rng), bash(rng, 860_000))


def first_paste(s: SessionBuilder, rng: random.Random) -> None:
    """The first thing said is a text that is too long, behind the task."""
    s.user(FIRST, words(rng, 860_000))


def later_paste(s: SessionBuilder, rng: random.Random) -> None:
    s.user(FIRST)
    s.assistant(_thought(rng), "reading")
    s.user("look at this", words(rng, 860_000))


def talk(s: SessionBuilder, rng: random.Random, turns: int = 46, answer: int = 17_000) -> None:
    """Nothing but words, most of it said by a model that takes more. `answer`: the characters of each."""
    s.user(FIRST)
    for turn in range(turns):
        s.assistant(words(rng, answer))
        s.user(f"and then, {turn}? " + words(rng, 3_000))
    s.assistant("that is all")


def inputs(s: SessionBuilder, rng: random.Random) -> None:
    """Files that the model wrote: what it gave to its tools."""
    s.user(FIRST)
    for turn in range(30):
        s.assistant(_thought(rng), tool("write", {"filePath": f"/src/f{turn}.py", "content": words(rng, 20_000)}, "ok"))
    calls = (tool("write", {"filePath": f"/src/g{n}.py", "content": words(rng, 60_000)}, "ok") for n in range(4))
    s.assistant(_thought(rng), *calls)


def thinking(s: SessionBuilder, rng: random.Random) -> None:
    """Thinking is most of it."""
    s.user(FIRST)
    for turn in range(30):
        s.assistant(_thought(rng, 26_000), f"thought about {turn}")
        s.user(f"think on, {turn}")
    s.assistant(_thought(rng, 26_000), "done")


_SHOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGP8z8DAwMDAxMDAwMDAAAANHQEDasKb6QAAAABJRU5ErkJggg=="
)


def screens(s: SessionBuilder, rng: random.Random) -> None:
    """A dozen screenshots of 3 MB each: more bytes than a request may have."""
    image = "data:image/png;base64," + base64.b64encode(_SHOT + bytes(2_250_000)).decode()
    s.user(FIRST)
    for turn in range(12):
        s.assistant("show me")
        s.user(f"screen {turn}", file(image, filename=f"screen{turn}.png"))
    s.assistant("I see")


def shell(s: SessionBuilder, rng: random.Random) -> None:
    """A command that the user ran, whose output the client stores whole."""
    s.user(FIRST)
    s.assistant(_thought(rng), "hello")
    s.user(text("The following tool was executed by the user", synthetic=True))
    s.assistant(bash(rng, 900_000), bare=True, finish=None)


def goes_round(s: SessionBuilder, rounds: int, *, by_settings: bool = False) -> SessionBuilder:
    """So many compactions, each with an answer that is too long at once: refused, or more than `by_settings` it may."""
    for _ in range(rounds):
        answers = ("ok",) if by_settings else ()
        s.assistant(*answers, finish="stop" if by_settings else None)
        marker = s.user({"type": "compaction", "auto": True, "overflow": not by_settings})
        s.assistant("all in short", summary=True, parentID=marker["id"])
        s.user(text("Continue if you have next steps", synthetic=True))
    return s


LONG = {
    case.__name__.replace("_", "-"): Long(case.__name__.replace("_", "-"), case)
    for case in (long_turn, many_turns, huge_output, first_paste, later_paste, talk, inputs, thinking, screens, shell)
}


def small(s: SessionBuilder, rng: random.Random) -> str:
    """A session of a few thousand tokens, of anything that may be long, too long for a model that takes fewer.

    Returns what the provider says of it.
    """
    s.user(FIRST)
    for turn in range(rng.randint(2, 7)):
        for _ in range(rng.randint(0, 3)):
            write = tool("write", {"filePath": "/a.py", "content": words(rng, rng.randint(10, 6_000))}, "ok")
            s.assistant(_thought(rng, rng.randint(1, 900)), rng.choice((bash(rng, rng.randint(1, 4_000)), write)))
        s.assistant(_thought(rng), words(rng, rng.randint(1, 2_000)))
        if rng.random() < 0.2:
            tail = {"tail_start_id": rng.choice(s.messages)["id"]} if rng.random() < 0.5 else {}
            marker = s.user({"type": "compaction", "auto": True, **tail})
            error = api_error("Your credit balance is too low", 400) if rng.random() < 0.6 else None
            s.assistant(*([] if error else ["in short"]), error=error, summary=True, parentID=marker["id"])
        s.user(words(rng, rng.choice((20, 200, 9_000))) + f" {turn}")
    planted = spent(s.planted(), base=200)
    asked = 200 + sum(weight(part) for parts in planted.parts.values() for part in parts) // PER_TOKEN
    limit = max(256, int(asked * rng.uniform(0.2, 0.99)))
    by_bytes = f"Request exceeds the maximum size of {limit * PER_TOKEN} bytes"
    return rng.choice((f"prompt is too long: {asked} tokens > {limit} maximum", "Prompt exceeds max length", by_bytes))
