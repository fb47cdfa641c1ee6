"""Threads as they are found: stuck for good, in a form that the client mends itself, and sound.

`STUCK`, `MENDED` and `SOUND` map a name to its shape; each is built anew by `Shape.build`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.e2e.codex.pictures import data_url, png
from tests.e2e.codex.rollout import MODEL, SOL, Item, Rollout
from tests.e2e.codex.sealed import seal
from tests.e2e.codex.strict import Fault, Strict

Turns = Callable[[Rollout], None]
REFUSED_PICTURE = png(extra=b"refuse this one")
ALIEN = "gAAAAABnotofthisworld=="


@dataclass(frozen=True)
class Shape:
    """A thread. `kinds`: what `recoveryd` repairs, one for each refusal; empty where it leaves the thread alone.

    `door`: a provider of another temper; `spell`: how a gateway says its refusals; `in_stream`: they come in a stream.
    """

    name: str
    turns: Turns
    kinds: tuple[str, ...] = ()
    door: Strict | None = None
    spell: Callable[[Fault], bytes] | None = None
    in_stream: bool = False
    slow: bool = False  # for the long form alone
    model: str = MODEL  # that is asked
    begun: str = ""  # the model that was asked first; "": the same
    configured: bool = False  # its provider is named "OpenAI": the client tells such a model its configuration by items

    def build(self, directory: Path) -> Rollout:
        """The thread, not written yet: two turns before the fault and two behind it."""
        rollout = Rollout(directory, model=self.begun or self.model, configured=self.configured)
        sound_turns(rollout, 2)
        self.turns(rollout)
        sound_turns(rollout, 2)
        return rollout


STUCK: dict[str, Shape] = {}
MENDED: dict[str, Shape] = {}
SOUND: dict[str, Shape] = {}


def sound_turns(rollout: Rollout, many: int) -> None:
    """Turns as any thread has them: reasoning, a call, its output, an answer."""
    for number in range(many):
        rollout.turn(f"question {number}")
        rollout.reasoning(seal())
        rollout.call(f"cat file{number}", f"the content of file {number}")
        rollout.answer(f"answer {number}")


def stuck(*kinds: str, **more: Any) -> Callable[[Turns], Turns]:
    """Declare a shape that is refused at every prompt."""
    return _declared(STUCK, kinds, more)


def again(name: str, *, begun: str = SOL, configured: bool = False) -> None:
    """Declare a shape once more, of a thread in which a model since GPT-5.6 is asked: each place is another."""
    shape = STUCK[name]
    more = f"{name}-on-{SOL}" if begun == SOL else f"{name}-moved-to-{SOL}"
    more = f"{more}-configured" if configured else more
    STUCK[more] = replace(shape, name=more, model=SOL, begun=begun, slow=False, configured=configured)


def mended(turns: Turns) -> Turns:
    """Declare a shape that the client mends as it sends it."""
    return _declared(MENDED, (), {})(turns)


def sound(turns: Turns) -> Turns:
    """Declare a shape that is accepted as it is."""
    return _declared(SOUND, (), {})(turns)


def _declared(where: dict[str, Shape], kinds: tuple[str, ...], more: dict[str, Any]) -> Callable[[Turns], Turns]:
    def declare(turns: Turns) -> Turns:
        name = turns.__name__.replace("_", "-")
        assert name not in {**STUCK, **MENDED, **SOUND}, name
        where[name] = Shape(name, turns, kinds, **more)
        return turns

    return declare


def detail(fault: Fault) -> bytes:
    """As ChatGPT's backend says anything."""
    del fault
    return b'{"detail":"Bad Request"}'


def from_zod(fault: Fault) -> bytes:
    """As a gateway says which item it does not know."""
    words = f"{(fault.param or '').replace('[', '.').replace(']', '')}: Invalid input"
    return json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()


def from_nginx(fault: Fault) -> bytes:
    """As a server in between says that a request is too large."""
    del fault
    return b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body></body></html>"


def in_numbers(fault: Fault) -> bytes:
    """As a gateway says it that names its limit."""
    del fault
    said = "Request body size exceeds maximum allowed size: 2097152 bytes"
    return json.dumps({"code": "RequestEntityTooLarge", "message": said, "requestId": "x"}).encode()


def picture(data: bytes | None = None, **more: Any) -> Item:
    """An image as a message or an output holds it."""
    return {"type": "input_image", "image_url": data_url(png() if data is None else data), **more}


@dataclass
class Gateway(Strict):
    """Knows fewer types of items, and fewer fields, than OpenAI's own."""

    unknown: frozenset[str] = field(default_factory=frozenset)
    unknown_fields: frozenset[str] = field(default_factory=frozenset)

    def judge(self, body: Item, size: int) -> Fault | None:
        for number, item in enumerate(body.get("input") or ()):
            if item.get("type") in self.unknown:
                return Fault(f"Invalid value: '{item['type']}'.", f"input[{number}].type")
            for name in sorted(self.unknown_fields & item.keys()):
                return Fault(f"Unknown parameter: 'input[{number}].{name}'.", f"input[{number}].{name}")
        return super().judge(body, size)
