"""Random sessions out of all that the client stores, healthy and broken alike: whatever may stand in a store."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.e2e.media import data_url, png
from tests.e2e.signing import redacted, sign
from tests.support.build import Planted, SessionBuilder
from tests.support.mixed import pending
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

PICTURE = data_url(png(4, 4))
PDF = data_url(b"%PDF-1.4\n%%EOF\n", "application/pdf")
BLANKS = ("", " ", "\n\t", "\u00a0", "\u3000\ufeff", "\x00", "\u200b")
WORDS = (
    *("a word", "two\nlines", " spaces around ", "\n\nbreaks around\n", "😀 grüße \u2028", "half \ud83d"),
    *("\u0085next line\u0085", "\ufefflast\u00a0", "</system-reminder>", "[user interrupted]"),
)
MODELS: tuple[dict[str, Any], ...] = (
    *({}, {}, {}, {}),
    *({"modelID": "claude-opus-4-1"}, {"providerID": "openai", "modelID": "gpt-5"}),
)
ERRORS = (
    api_error(),
    {"name": "UnknownError", "data": {"message": "AI_InvalidPromptError"}},
    {"name": "MessageOutputLengthError", "data": {}},
)
METADATA: tuple[Any, ...] = (
    {},
    {"anthropic": {}},
    {"openai": {"itemId": "rs_1"}},
    {"recoveryd": {"recovery": "rabc"}},
    {"anthropic": {"cacheControl": {"type": "ephemeral"}}},
    {"x": None},
    {"x": "words"},
    [],
    "words",
    None,
    7,
)


class Generator:
    """Sessions from a seed. About one in ten holds something for which the client can build no request."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._seed = seed
        # Most sessions are free of what stops the whole request: there would be nothing to compare.
        self._wild = self._chance(0.12)

    def session(self) -> Planted:
        """One session of up to eleven turns, with everything anywhere."""
        built = SessionBuilder(title=f"generated {self._seed}")
        for _ in range(self._rng.choice((0, 1, 2, 3, 4, 6, 11))):
            self._pick(
                (5, self._user), (8, self._assistant), (1, self._summary), (1, self._subtask), (1, self._failed)
            )(built)
        if built.messages and self._chance(0.15):
            self._revert(built)
        if pending(built.planted()):
            built.session.pop("revert")
        return built.planted()

    def _chance(self, of: float) -> bool:
        return self._rng.random() < of

    def _pick(self, *weighted: tuple[float, Any]) -> Any:
        return self._rng.choices([item for _, item in weighted], [weight for weight, _ in weighted])[0]

    def _several(self, make: Callable[[], Part], most: int) -> list[Part]:
        return [make() for _ in range(self._rng.randint(0, most))]

    def _user(self, built: SessionBuilder) -> None:
        built.user(*self._several(self._user_part, 3), **({"agent": "plan"} if self._chance(0.1) else {}))

    def _assistant(self, built: SessionBuilder) -> None:
        fields: dict[str, Any] = dict(self._rng.choice(MODELS))
        how = self._pick(
            (10, {}), (1, {"completed": False}), (2, {"error": aborted()}), (1, {"error": self._rng.choice(ERRORS)})
        )
        finish = self._pick((8, ""), (1, None), (1, "length"), (1, "unknown"))
        fields |= {"agent": "plan"} if self._chance(0.05) else {}
        bare = self._chance(0.2)
        built.assistant(*self._several(self._assistant_part, 6), finish=finish, bare=bare, **how, **fields)

    def _failed(self, built: SessionBuilder) -> None:
        built.failed(self._rng.choice(WORDS))

    def _summary(self, built: SessionBuilder) -> None:
        """A compaction, answered by a summary, by one that failed, or by one whose question is another."""
        asked = built.user(compaction(self._chance(0.5)), *self._several(self._user_part, 1))
        kind = self._pick((4, "answered"), (1, "elsewhere"), (1, "failed"), (1, "not a summary"))
        fields: dict[str, Any] = {"summary": True, "mode": "compaction", "agent": "compaction"}
        if kind == "failed":
            built.assistant(error=api_error(), **fields)
        elif kind == "elsewhere":
            built.assistant("a summary", parentID=built.messages[0]["id"], **fields)
        else:
            built.assistant(
                "a summary", *self._several(self._assistant_part, 2), **({} if kind == "not a summary" else fields)
            )
        built.assistant("on", parentID=asked["id"])  # else the client begins with the compaction anew

    def _subtask(self, built: SessionBuilder) -> None:
        built.user(*self._several(self._user_part, 1), subtask())
        task = tool("task", {"prompt": "look around"}, "found it")
        built.assistant(task, bare=True, finish="tool-calls", agent="general")
        built.assistant("it is there")

    def _revert(self, built: SessionBuilder) -> None:
        message = self._rng.choice(built.messages)
        built.session["revert"] = {"messageID": message["id"]}
        parts = built.parts[message["id"]]
        if parts and self._chance(0.3):
            built.session["revert"]["partID"] = self._rng.choice(parts)["id"]

    def _words(self) -> str:
        return self._rng.choice(BLANKS if self._chance(0.25) else WORDS)

    def _marks(self) -> dict[str, Any]:
        known = METADATA if self._wild else METADATA[:5]
        return {"metadata": self._rng.choice(known)} if self._chance(0.15) else {}

    def _text(self) -> Part:
        flags = {name: self._chance(0.6) for name in ("synthetic", "ignored") if self._chance(0.15)}
        return text(self._words(), **flags, **self._marks())

    def _user_part(self) -> Part:
        made: Part = self._pick(
            (8, self._text()),
            (1, file(PICTURE)),
            (1, file(PICTURE, "image/*", "")),
            (1, file(PDF, "application/pdf", "a.pdf")),
            (1, file("file:///a.txt", "text/plain", "a.txt", source={"type": "file", "path": "/a.txt"})),
            (1, file("file:///b", "application/x-directory", "b")),
            (0.5, file("data:audio/wav;base64,AAAA", "audio/wav", "a.wav")),
            (0.5, file("data:video/mp4;base64,AAAA", "video/mp4", self._rng.choice(("", "a.mp4")))),
            (1, file("https://example.com/a.png")),
            (1, {"type": "agent", "name": "general"}),
            (0.5, {"type": "patch", "hash": "x", "files": []}),
            (1, self._wreck(user=True) if self._wild else self._text()),
        )
        return made

    def _assistant_part(self) -> Part:
        made: Part = self._pick(
            (6, self._text()),
            (4, self._reasoning()),
            (6, self._tool()),
            (2, step_start(**self._marks())),
            (1, step_finish()),
            (0.5, {"type": "patch", "hash": "x", "files": ["/a"]}),
            (0.5, {"type": "snapshot", "snapshot": "x"}),
            (0.5, {"type": "thinking", "thinking": "hm", "signature": "x"}),
            (0.5, {"type": "retry", "attempt": 1, "error": api_error(), "time": {"created": 1}}),
            (0.5, file(PICTURE)),
            (1, self._wreck(user=False) if self._wild else self._reasoning()),
        )
        return made

    def _reasoning(self) -> Part:
        words = self._words()
        made: Part = self._pick(
            (6, reasoning(words)),
            (2, reasoning(words, None)),
            (1, reasoning(words, "forged")),
            (1, reasoning(words, "")),
            (1, reasoning(words, sign("another"))),
            (1, reasoning(words, None, redactedData=redacted("1"))),
            (1, reasoning(words, redactedData=redacted("2"))),
            (1, {**reasoning(words, None), **self._marks()}),
        )
        return made

    def _tool(self) -> Part:
        arguments = self._pick(
            (8, None), (1, {}), (1, "ls"), (1, ["ls"]), (1, 7), (1, {"deep": {"a": [None, True, 0.5]}})
        )
        name = self._pick((8, "bash"), (1, "my tool"), (1, "read"), (0.5, ""))
        call_id = self._pick((8, None), (1, "toolu_same"), (1, "call.1:2"), (0.5, ""), (0.5, "ü"))
        status = self._pick((8, "completed"), (2, "error"), (1, "running"), (1, "pending"), (0.5, "streaming"))
        made = tool(name, arguments, self._words(), status=status, call_id=call_id, **self._state(status))
        return {**made, **self._marks()}

    def _state(self, status: str) -> dict[str, Any]:
        picture, document = file(PICTURE), file(PDF, "application/pdf", "a.pdf")
        some = self._pick((1, [picture]), (1, [picture, document]), (1, []), (0.5, [file("https://example.com/a.png")]))
        state: dict[str, Any] = {"attachments": some} if self._chance(0.2) else {}
        if status == "completed" and self._chance(0.15):
            state["time"] = {"start": 1, "end": 2, "compacted": self._rng.choice((3, 0))}
        if status == "error" and self._chance(0.3):
            state["metadata"] = {"interrupted": True, "output": "so far"}
        return state

    def _wreck(self, *, user: bool) -> Part:
        """What may make the whole request impossible."""
        either: list[Part] = [
            raw(b"{"),
            raw(b""),
            raw(b"null"),
            raw(b"[]"),
            {"type": "text"},
            {"type": "text", "text": None},
        ]
        users = [file("data:image/svg+xml;base64,AAAA", "image/svg+xml"), file("ftp://a/b.png"), {"type": "file"}]
        states: list[Any] = [None, [], {}, "completed", {"status": None}]
        calls = [{**tool(), "state": state} for state in states]
        values: list[Any] = [None, 7, True, {}, {"a": 1}, ["x"]]
        calls += [tool(output=value) for value in values] + [tool(status="error", output=value) for value in values]
        calls += [
            tool(time=None),
            tool(attachments=[{}]),
            tool(attachments="x"),
            tool(input=None),
            tool(input=None, status="error"),
        ]
        calls += [{**tool(), "metadata": {"providerExecuted": True}}, {**tool(), "callID": 7}, {**tool(), "tool": None}]
        calls += [{"type": "reasoning"}, {"type": "tool"}, {"type": None}]
        return dict(self._rng.choice([*either, *(users if user else calls)]))
