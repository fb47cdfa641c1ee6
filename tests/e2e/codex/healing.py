"""Many threads broken, healed by a running daemon and prompted again: what each of them came to."""

from __future__ import annotations

import itertools
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recoveryd.clients.codex.store import CodexThreads
from recoveryd.clients.codex.wire import CodexWire
from tests.e2e.codex.client import RpcError, Server, Turn
from tests.e2e.codex.provider import Asked
from tests.e2e.codex.rollout import Item, Rollout
from tests.e2e.codex.shapes import Shape, sound_turns
from tests.e2e.codex.strict import Fault, Strict, pictures
from tests.e2e.codex.world import Planted, World, at_once, running
from tests.e2e.daemon import Daemon

_OF_THE_CLIENT = "internal_chat_message_metadata_passthrough"  # sent to a provider that is named "OpenAI"
FURTHER = ("a first prompt more", "a second one", "a third one")


@dataclass(repr=False)
class Healed:
    """A thread: what the daemon says of it, its bytes once it is healed, and the prompts behind."""

    planted: Planted
    entries: list[dict[str, Any]] = field(default_factory=list)  # the oldest first
    after: bytes = b""  # of the file, once it was healed
    again: list[Turn] = field(default_factory=list)
    turns: int = 0
    fork: str | None = None
    undo: int | None = None
    after_undo: bytes = b""
    lost: list[str] = field(default_factory=list)
    refused: list[str | None] = field(default_factory=list)
    unforeseen: list[str] = field(default_factory=list)  # where the next request is another than `recoveryd` says

    @property
    def well(self) -> bool:
        """Whether each refusal was healed, as it should be, and the thread went on with nothing lost."""
        healed = self.kinds == list(self.planted.shape.kinds) and {e["outcome"] for e in self.entries} == {"healed"}
        return healed and [turn.error for turn in self.again] == [None] * len(FURTHER) and not self.lost

    @property
    def kinds(self) -> list[str]:
        """Of the recoveries, in their order."""
        return [str(entry["kind"]) for entry in self.entries]

    def tell(self) -> str:
        """What went wrong, for the message of an assertion."""
        said = [f"{entry['kind']} {entry['outcome']}: {entry['detail']}" for entry in self.entries]
        again = [turn.error for turn in self.again]
        return f"{self.planted.shape.name} ({self.planted.thread}): refused {self.refused}; {said}; then {again}"


@dataclass(repr=False)
class Rounds:
    """What was played; `control` are the sound threads without a daemon beside them.

    `undone` were refused twice before the daemon began: it finds them as it starts, and what it does is taken back.
    """

    stuck: dict[str, Healed]
    undone: dict[str, Healed]
    whole: dict[str, Planted]
    control: dict[str, Planted]
    blocked: Healed
    blocked_words: str
    history: list[dict[str, Any]]
    log: str


@contextmanager
def play(root: Path, stuck: Sequence[Shape], whole: Sequence[Shape]) -> Iterator[Rounds]:
    """Break and heal threads of these shapes under `root`. Raises `UnavailableError` without the client."""
    with running(root / "client") as world:
        control = {shape.name: world.plant(shape) for shape in whole}
        undone = {shape.name: Healed(world.plant(shape)) for shape in stuck}
        at_once(world.prompt, control.values())
        for _ in range(2):  # without a daemon they stay as they are
            at_once(lambda one: _refused(world, one), undone.values())
        for one in undone.values():
            one.refused = world.refused(one.planted)
        with watching(root / "daemon", world) as daemon:
            yield _rounds(world, daemon, stuck, whole, undone, control)


def watching(root: Path, world: World, **more: Any) -> Daemon:
    """A daemon that watches the home of a world, and no other store."""
    return Daemon(root, root / "nothing", env={"CODEX_HOME": str(world.codex.home)}, **more)


def _rounds(
    world: World,
    daemon: Daemon,
    stuck: Sequence[Shape],
    whole: Sequence[Shape],
    undone: dict[str, Healed],
    control: dict[str, Planted],
) -> Rounds:
    healed = {shape.name: Healed(world.plant(shape)) for shape in stuck}
    watched = {shape.name: world.plant(shape) for shape in whole}
    blocked = _blocked(world)
    at_once(lambda one: _refused(world, one), healed.values())
    at_once(world.prompt, [*watched.values(), blocked.planted])
    collect(daemon, [*healed.values(), *undone.values()], 1)
    _undo(daemon, list(undone.values()))
    twice = [one for one in healed.values() if len(one.planted.shape.kinds) > 1]
    at_once(lambda one: _refused(world, one), twice)
    collect(daemon, twice, 2)
    with world.codex.server() as server:
        for one in healed.values():
            _looked_at(server, one)
    at_once(lambda one: _go_on(world, one), healed.values())
    blocked.entries = daemon.by_session().get(blocked.planted.thread, [])
    words = daemon.run("explain", "--session", blocked.planted.thread).stdout
    history = daemon.history()
    return Rounds(healed, undone, watched, control, blocked, words, history, daemon.log)


def _blocked(world: World) -> Healed:
    rollout = Rollout(world.codex.directory)
    sound_turns(rollout, 2)
    path = rollout.write(world.codex.home)
    thread = rollout.thread
    world.provider.force = lambda of, body: Fault("Request blocked.", None, None) if of == thread else None
    shape = Shape("blocked", lambda _: None)
    return Healed(Planted(shape, thread, path, path.read_bytes(), path.stat().st_ino))


def _refused(world: World, one: Healed) -> None:
    world.prompt(one.planted)


def collect(daemon: Daemon, all_: Sequence[Healed], times: int) -> None:
    """Wait until the daemon was so many times done with each thread; keep what it says, and the file."""
    found = daemon.wait_settled((one.planted.thread for one in all_), times)
    for one in all_:
        one.entries = found.get(one.planted.thread, [])[::-1]
        one.after = one.planted.path.read_bytes()


def _undo(daemon: Daemon, all_: Sequence[Healed]) -> None:
    some = [one for one in all_ if one.entries]
    codes = daemon.codes([["undo", one.entries[-1]["id"]] for one in some])
    for one, code in zip(some, codes, strict=True):
        one.undo, one.after_undo = code, one.planted.path.read_bytes()


def _looked_at(server: Server, one: Healed) -> None:
    """What the client's own server makes of a thread after the heal."""
    one.turns = len(server.read(one.planted.thread))
    try:
        one.fork = str(server.call("thread/fork", threadId=one.planted.thread)["thread"]["id"])
    except RpcError as error:
        one.fork = None
        one.lost.append(str(error))


def _go_on(world: World, one: Healed) -> None:
    session = CodexThreads(world.codex.home / "sessions").load(one.planted.thread)
    foreseen = [comparable(dict(block.body)) for block in CodexWire().build(session).blocks()]
    one.again = [world.prompt(one.planted, text) for text in FURTHER]
    one.refused = world.refused(one.planted)
    asked = world.asked(one.planted)
    sent = [comparable(item) for item in asked[-len(FURTHER)].body["input"]]
    if sent[-1]["type"] == "configuration_update":  # of the turn that the prompt begins
        sent.pop()
    pairs = itertools.zip_longest(foreseen, sent)
    one.unforeseen = [f"{built} is sent as {real}" for built, real in pairs if built != real]
    one.lost += sorted(said(asked[0].body["input"]) - said(asked[-1].body["input"]))
    door = one.planted.shape.door
    if door is not None and door.names_pictures:
        one.lost += sorted(_sound(door, asked[0]) - _sound(door, asked[-1]))


def _sound(door: Strict, asked: Asked) -> set[str]:
    """The images of a request that its provider takes."""
    return {url for _, url in pictures(asked.body["input"]) if door.refuses not in b64decode(url.partition(",")[2])}


def comparable(item: Item) -> Item:
    """An item without what differs from prompt to prompt: ids that the client makes, and what is not there."""
    kept = {key: value for key, value in item.items() if value is not None and key != _OF_THE_CLIENT}
    action = kept.get("action")
    if isinstance(action, dict):
        kept["action"] = {key: value for key, value in action.items() if value is not None}
    content = kept.get("content")
    words = content[0].get("text") if isinstance(content, list) and content and isinstance(content[0], dict) else None
    if words in (*FURTHER, "continue"):
        return {"type": "message", "role": "user", "content": "the next prompt"}
    if kept["type"] == "additional_tools":  # which those are, the client says anew
        return {"type": "additional_tools"}
    if kept.get("output") == "aborted" or kept.get("role") == "developer":
        kept.pop("id", None)
    return kept


def said(items: Sequence[Item]) -> set[str]:
    """What a person wrote, what was answered, and what tools gave back, in the items of a request."""
    found: set[str] = set()
    for item in items:
        kind = str(item["type"])
        if kind == "message" or kind.endswith("_output") or kind == "agent_message":
            told = item.get("output" if kind.endswith("_output") else "content")
            parts = told if isinstance(told, list) else [{"text": told}]
            found |= {str(part["text"]) for part in parts if part.get("text")}
    return found
