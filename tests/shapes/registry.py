"""How a shape is declared: a function that adds turns to a session, and the ways in which it is planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.shapes.history import long_history
from tests.support.build import Planted, SessionBuilder

Turns = Callable[[SessionBuilder], None]


@dataclass(frozen=True)
class Shape:
    """A stored session of one kind. `kind` is None for a healthy one and "crash" where no request is sent at all.

    `thinking` tells how it is to be prompted; `stage` when the repair of its kind is due. `newer` is what it is to
    clients from 1.14 on: the "same", another kind, "healthy", or "slow" (the same, after a minute of retries).
    `json_only`: harmless in a database.
    """

    name: str
    kind: str | None
    thinking: bool
    turns: Turns
    stage: int = 2
    newer: str = "same"
    json_only: bool = False
    deep: bool = False
    tail: bool = False

    def kind_for(self, version: str) -> str | None:
        """The kind that this version of the client meets; None if the shape is healthy to it."""
        if is_old(version) or self.newer in ("same", "slow"):
            return self.kind
        return None if self.newer == "healthy" else self.newer

    def build(self, now_ms: int | None = None, seed: int | None = None) -> Planted:
        """The session, built anew: ids are fresh unless a seed is given."""
        session = SessionBuilder(now_ms, seed=seed, title=self.name)
        if self.deep:
            long_history(session)
        self.turns(session)
        if self.tail:
            long_history(session, rounds=3)
        return session.planted()


def is_old(version: str) -> bool:
    """Whether this version of the client sends the older form (before 1.14)."""
    return tuple(int(number) for number in version.split(".")[:2]) < (1, 14)


SHAPES: dict[str, Shape] = {}
OPEN_KINDS = ("thinking_block_order", "thinking_disabled_violation", "thinking_block_modified")


def _register(shape: Shape) -> None:
    assert shape.name not in SHAPES, f"two shapes are called {shape.name}"
    SHAPES[shape.name] = shape


def broken(
    kind: str,
    *,
    thinking: tuple[bool, ...] = (False,),
    deep: bool = False,
    stage: int = 2,
    newer: str = "same",
    json_only: bool = False,
) -> Callable[[Turns], Turns]:
    """Declare a broken shape, once for each way of prompting, and with `deep` in a long history as well.

    Kinds that concern the last assistant message stand at the end of that history, the others in its middle.
    """

    def declare(turns: Turns) -> Turns:
        base = turns.__name__.replace("_", "-")
        for on in thinking:
            name = f"{base}{'-on' if on else '-off'}" if len(thinking) > 1 else base
            _register(Shape(name, kind, on, turns, stage, newer, json_only))
            if deep:
                tail = kind not in OPEN_KINDS
                _register(Shape(f"{name}-deep", kind, on, turns, stage, newer, json_only, True, tail))
        return turns

    return declare


def healthy(*, thinking: tuple[bool, ...] = (False, True), stage: int = 2) -> Callable[[Turns], Turns]:
    """Declare a shape that must be accepted."""

    def declare(turns: Turns) -> Turns:
        base = turns.__name__.replace("_", "-")
        for on in thinking:
            _register(Shape(f"{base}{'-on' if on else '-off'}", None, on, turns, stage))
        return turns

    return declare
