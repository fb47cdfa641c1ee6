"""The provider and the real client together: threads planted, prompted, and what was asked of the provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.e2e.codex import stuck as _stuck  # noqa: F401 the shapes declare themselves
from tests.e2e.codex import whole as _whole  # noqa: F401
from tests.e2e.codex.client import Codex, Turn
from tests.e2e.codex.install import ensure
from tests.e2e.codex.provider import Asked, Provider
from tests.e2e.codex.shapes import Shape

AT_ONCE = 4  # clients that run beside each other: most of their time is waiting
T = TypeVar("T")
R = TypeVar("R")


@dataclass(repr=False)
class Planted:
    """A thread of a shape, and the bytes that were planted."""

    shape: Shape
    thread: str
    path: Path
    before: bytes
    inode: int
    turns: list[Turn] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """A home of Codex, and the provider that it talks to."""

    codex: Codex
    provider: Provider

    def plant(self, shape: Shape) -> Planted:
        """Write a thread of this shape."""
        rollout = shape.build(self.codex.directory)
        path = rollout.write(self.codex.home)
        if shape.door is not None:
            self.provider.doors[rollout.thread] = shape.door
        if shape.spell is not None:
            self.provider.spell[rollout.thread] = shape.spell
        if shape.in_stream:
            self.provider.in_stream.add(rollout.thread)
        return Planted(shape, rollout.thread, path, path.read_bytes(), path.stat().st_ino)

    def prompt(self, planted: Planted, text: str = "go on") -> Turn:
        """Prompt a thread; the turn is kept with it."""
        named = ("-c", 'model_providers.fake.name="OpenAI"') if planted.shape.configured else ()
        turn = self.codex.resume(planted.thread, text, "-m", planted.shape.model, *named)
        planted.turns.append(turn)
        return turn

    def refused(self, planted: Planted) -> list[str | None]:
        """The words with which each request of a thread was refused; None for one that was accepted."""
        return [asked.refused for asked in self.provider.asked(planted.thread)]

    def asked(self, planted: Planted) -> list[Asked]:
        """Each request of a thread."""
        return self.provider.asked(planted.thread)


@contextmanager
def running(root: Path, *, lenient: bool = False) -> Iterator[World]:
    """A home under `root` and a strict provider. Raises `UnavailableError` where the client cannot be had."""
    binary = ensure()
    with Provider(lenient=lenient) as provider:
        yield World(Codex(binary, root, provider.url), provider)


def at_once(do: Callable[[T], R], all_: Iterable[T], many: int = AT_ONCE) -> list[R]:
    """The results of a function for each of many things, so many of them beside each other, in their order."""
    with ThreadPoolExecutor(many) as pool:
        return list(pool.map(do, all_))
