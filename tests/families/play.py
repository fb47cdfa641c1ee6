"""Many sessions of a family: prompted on the real client, healed by `recoveryd run`, and prompted on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recoveryd.clients.opencode.files.store import OpencodeFiles
from recoveryd.clients.opencode.protocols import protocol_of
from recoveryd.clients.opencode.sqlite.store import OpencodeSqlite
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.core.errors import StoreError
from recoveryd.core.model import Failure, Json, Message, RecordedError, Session
from recoveryd.core.request import Request, Turn
from tests.e2e.client import Client, PromptResult
from tests.e2e.daemon import CONFIG, PATIENCE, Daemon
from tests.e2e.install import JSON_STORE, ensure
from tests.families.fake import Fake
from tests.families.gemini import counted
from tests.families.table import Family
from tests.shapes import SHAPES, Shape, is_old
from tests.support.build import Planted
from tests.support.plant import write_sqlite, write_tree

UNNAMED = ("gemini", "gemini-2", "vertex")  # whose calls have no ids
Records = dict[str, bytes | None]
Messages = dict[str, set[str]]  # of each session, by their ids
_UNDOES = 40  # by one process, which has a minute
_NOT_SENT = ("functionality not supported", "Unsupported image mime type")  # the words of an SDK that can't send a file


@dataclass(repr=False)
class Played:
    """One shape under a family: the first prompt, what the daemon says, whether the wire was rebuilt, and the rest."""

    shape: Shape
    planted: Planted
    before: Records
    stored: Session | None = None  # as it was planted
    first: PromptResult | None = None
    expected: str | None = None  # what the product's wire says that will be sent, as JSON; None: nothing
    rebuilt: bool = True  # whether that was sent
    entries: list[dict[str, Any]] = field(default_factory=list)
    again: list[bool] = field(default_factory=list)
    after: Records = field(default_factory=dict)

    @property
    def refused(self) -> str | None:
        """The error of the first prompt, "no request" where there is none; None where it was answered."""
        if self.first is None or self.first.info is None:
            return "no request"
        error = self.first.error
        return None if error is None else str((error.get("data") or {}).get("message"))

    @property
    def healed(self) -> bool:
        """Whether its recoveries all healed it and the prompts then were answered; a second fault shows by itself.

        Before them an old failure among what was planted, which another family said, may have been left alone.
        """
        outcomes = [entry["outcome"] for entry in self.entries]
        while outcomes[1:] and outcomes[-1] == "refused":
            outcomes.pop()
        return set(outcomes) == {"healed"} and bool(self.again) and all(self.again[len(outcomes) - 1 :])

    @property
    def stuck(self) -> bool:
        """Whether a prompt was refused, or the daemon mended what shows by itself before it was prompted.

        What it left alone then is an old failure among what was planted, which another family said.
        """
        return self.refused is not None or any(entry["outcome"] != "refused" for entry in self.entries)

    @property
    def untouched(self) -> bool:
        """Whether what was planted is as it was; what is reverted, the client deletes."""
        reverted = "revert" in self.planted.session
        return reverted or all(self.after.get(key) == value for key, value in self.before.items())

    @property
    def left(self) -> bool:
        """Whether it was refused for reasoning that nobody has any more, named, and left as it was.

        A part that the client itself fails on is mended first: before that, nothing was sent that could be refused.
        """
        told = {(entry["outcome"], entry["kind"]) for entry in self.entries}
        mended = ("healed", "unsendable_part") in told
        named = told - {("healed", "unsendable_part")} == {("refused", "reasoning_missing")}
        return self.refused is not None and named and (mended or self.untouched)

    def tell(self) -> str:
        """What became of it, in a line."""
        said = [f"{e['kind']} {e['outcome']}: {e['detail']}" for e in self.entries]
        return f"{self.shape.name} ({self.planted.id}): {self.refused!r}; history {said}; then {self.again}"


@dataclass(repr=False)
class Stage:
    """A running client, the fake of a family, and the daemon on its store."""

    client: Client
    fake: Fake
    daemon: Daemon
    family: Family
    version: str

    def plant(self, shape: Shape) -> Played:
        """Write a shape into the store of the client, as this family would have stored it."""
        planted = self.family.dressed(shape.build())
        self.write(planted)
        stored = self.store.load(planted.id)
        return Played(shape, planted, self.records(planted), stored, expected=self.built(stored))

    def write(self, planted: Planted) -> None:
        """Write a session into whichever store this version of the client has."""
        if self.client.database.exists():
            write_sqlite(planted, self.client.database, directory=str(self.client.directory))
        else:
            write_tree(planted, self.client.storage, directory=str(self.client.directory))

    def prompt(self, played: Played) -> PromptResult:
        """As a TUI does, which always names the model."""
        session, thinking = played.planted.id, played.shape.thinking
        return self.client.prompt(session, thinking=thinking, timeout=300, model=dict(self.family.ids))

    def messages(self, played: Played) -> set[str]:
        """The ids of its messages as they are now; none of a session that the product can't read."""
        try:
            return {message.id for message in self.store.load(played.planted.id).messages}
        except StoreError:
            return set()

    def records(self, planted: Planted) -> Records:
        """The parts of what was planted, as they are now."""
        ids = {message["id"] for message in planted.messages}
        loaded = self.store.load(planted.id)
        return {part.id: part.raw for message in loaded.messages if message.id in ids for part in message.parts}

    @property
    def store(self) -> OpencodeFiles | OpencodeSqlite:
        """The client's store, read by the product."""
        database = self.client.database
        return OpencodeSqlite(database) if database.exists() else OpencodeFiles(self.client.storage)

    def built(self, session: Session, failed: str = "") -> str | None:
        """The conversation that the product expects for the next prompt, as JSON; None: that none can be sent.

        `failed`: what the client itself said of it, and recorded.
        """
        family = self.family
        if failed:
            error = {"name": "UnknownError", "data": {"message": failed}}
            now = {"created": time.time_ns() // 1_000_000}
            answer = Message("msg_zzz", {"role": "assistant", "error": error, "time": now, **family.ids})
            session = replace(session, messages=(*session.messages, answer))
        said = RecordedError(texts=(family.said,))
        failure = Failure("", "", "", 0, said, family.provider, family.model, family.protocol)
        old = "paged" if self.client.database.exists() else "old"
        form = Form.named(old if is_old(self.version) else "new")
        request = wires_of(failure, protocol_of(failure), [form])[0].build(session)
        if request.unsendable:
            return None
        messages = [{"role": turn.role, "content": _content(request, turn)} for turn in request.turns]
        return _as_json(counted(messages) if self.family.name in UNNAMED else messages)


def _content(request: Request, turn: Turn) -> list[Json]:
    """The blocks of a turn; of a flat request a prompt of several parts is one item."""
    blocks = [block.body for block in turn.blocks]
    if not request.flat or len(blocks) < 2:
        return blocks
    return [{**blocks[0], "content": [block["content"][-1] for block in blocks]}]


def _as_json(messages: object) -> str:
    return json.dumps(messages, sort_keys=True, default=dict)


@contextmanager
def staged(root: Path, family: Family, version: str, made: type[Fake] = Fake) -> Iterator[Stage]:
    """The client of a version before the fake of a family, and the daemon beside it; all below `root`."""
    binary = ensure(version)
    with made(family.name) as fake:
        config = family.config(fake.address)
        env = fake.google_login(root / "google") if family.google_login else {}
        with Client(binary, root / "client", fake.address, config=config, env=env, model=family.model) as client:
            if family.protocol:  # the daemon has settings of its own, and reads those of the project
                (client.directory / "opencode.json").write_text(json.dumps({"provider": config["provider"]}))
            client.call("GET", "/session")
            with Daemon(root / "daemon", root / "client" / "data", config=family.settings + CONFIG) as daemon:
                yield Stage(client, fake, daemon, family, version)


def shapes_for(version: str) -> list[Shape]:
    """Those that can be planted into this version's store, but the session in which nothing was said yet."""
    kept = [shape for shape in SHAPES.values() if version == JSON_STORE or not shape.json_only]
    return [shape for shape in kept if not shape.name.startswith("nothing-yet")]


def played(stage: Stage, shapes: Sequence[Shape], *, further: int = 3, at_once: int = 1) -> list[Played]:
    """Break, heal and go on with all shapes. `further`: prompts then; one of them where nothing was refused.

    `at_once`: prompts in flight, each in a session of its own.
    """
    made = [stage.plant(shape) for shape in shapes]
    with ThreadPoolExecutor(at_once) as pool:
        stored = {one.planted.id: stage.messages(one) for one in made}
        for one, result in zip(made, pool.map(stage.prompt, made), strict=True):
            one.first = result
        sent = {_as_json(asked.messages) for asked in stage.fake.asked}
        for one in made:
            one.rebuilt = one.expected in sent if one.expected is not None else one.refused is not None
            if one.stored and one.refused is not None and any(words in one.refused for words in _NOT_SENT):
                one.rebuilt = stage.built(one.stored, one.refused) is None  # what it can't send, its failure tells
        _collect(stage, made, [one for one in made if one.refused is not None], stored)
        for number in range(further):
            asked = [one for one in made if number == 0 or one.stuck]
            stored = {one.planted.id: stage.messages(one) for one in asked}
            for one, result in zip(asked, pool.map(stage.prompt, asked), strict=True):
                one.again.append(result.info is not None and result.error is None)
            _collect(stage, made, [one for one in asked if not one.again[-1]], stored)
    for one in made:
        one.after = stage.records(one.planted)
    return made


def undone(stage: Stage, shapes: Sequence[Shape], at_once: int = 6) -> list[bool | None]:
    """Have new sessions of these shapes healed, and take it back: whether every byte is as it was planted.

    None where a fault that shows by itself was mended before the prompt: behind an answer nothing is taken back.
    """
    made = played(stage, shapes, further=0, at_once=at_once)
    commands = [["undo", entry["id"]] for one in made for entry in one.entries]
    for start in range(0, len(commands), _UNDOES):
        stage.daemon.codes(commands[start : start + _UNDOES])
    exact = [bool(one.entries) and stage.records(one.planted) == one.before for one in made]
    return [same if one.refused is not None else None for one, same in zip(made, exact, strict=True)]


def _collect(stage: Stage, made: Sequence[Played], refused: Sequence[Played], stored: Messages) -> None:
    """Wait until the daemon is done with all that was refused just now, and keep what it says of each session.

    It is told by the messages that were not `stored` before: what else it recorded of the session is of another prompt,
    or of an old failure among what was planted. Where the client failed before it stored any, all it records counts.
    """
    since = {one.planted.id: stage.messages(one) - stored[one.planted.id] for one in refused}
    deadline = time.monotonic() + PATIENCE  # what did not happen by then is for the lines of those shapes to say
    while time.monotonic() < deadline:
        ended = {session: stage.daemon.ended(session) for session in since}
        if all(ended[session] & new if new else ended[session] for session, new in since.items()):
            break
        time.sleep(0.2)
    history = stage.daemon.by_session()
    for one in made:
        one.entries = history.get(one.planted.id, [])
