"""Lives made of what a user does, in any order, on the real client: a prompt that is refused, and again, taken back,
copied, compacted, stopped; a repair that is undone, by force too.

After each round of acts the daemon looks at the sessions. Then a second client prompts each of them on a copy of the
store: is what recoveryd says of it so? `python -m tests.e2e.acts --version 1.2.1 --seed 7` plays lives that are drawn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Client
from tests.e2e.crowd import Records, records
from tests.e2e.daemon import Daemon
from tests.e2e.harness import Harness, Outcome, running, settle
from tests.e2e.install import DEFAULT_VERSION
from tests.e2e.media import data_url, png
from tests.e2e.overflow import OFF
from tests.e2e.replies import Reply
from tests.e2e.signing import Block

LIMIT = 90_000  # tokens: small, so that little makes a session too long
FILES = 9  # of about 12,000 tokens each
STILL_S = 0.5  # the client wrote nothing for so long: it has done with a turn that ended
QUIET_S = 2.0  # nothing came of what was done for so long: the daemon has seen it all
_PICTURE = {"type": "file", "mime": "image/jpeg", "filename": "a.jpg", "url": data_url(png(10, 10), "image/jpeg")}
_NO_MONEY = "Your credit balance is too low to access the Anthropic API."
_NUMBERS = itertools.count()


@dataclass
class World:
    """A client, its provider, and the daemon on its store; below `root`."""

    harness: Harness
    daemon: Daemon
    root: Path
    repaired: dict[str, tuple[Records, Records]] = field(default_factory=dict)  # by recovery: before it, and behind it


@dataclass(repr=False)
class Life:
    """A session, and what its user does: rounds of acts, between which the daemon may look at it.

    `undone`: its repair was, and no prompt was answered since.
    """

    world: World
    rounds: list[list[str]]
    session: str
    undone: bool = False
    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def prompt(self, words: str = "go on", *replied: Reply, **fields: Any) -> str:
        """Prompt the session, with these answers to come; what came of it, in a word or in the provider's."""
        harness = self.world.harness
        harness.provider.script.extend(replied)
        outcome = harness.prompt(self.session, f"{words} {next(_NUMBERS)}", thinking=True, timeout=30, **fields)
        harness.provider.script.clear()
        settle(harness, self.session)
        self.undone = self.undone and not outcome.accepted
        return what_came(outcome)

    def call(self, what: str, body: dict[str, Any]) -> Any:
        status, answer = self.world.harness.client.call("POST", f"/session/{self.session}/{what}", body)
        return answer if status == 200 else status

    def tell(self) -> str:
        return f"{self.session}: {self.problems}; {self.said}"


def what_came(outcome: Outcome) -> str:
    """Whether a prompt was answered; else the provider's words, or the client's."""
    if outcome.accepted:
        return "answered"
    told = [request.refused for request in outcome.requests if request.refused is not None]
    return f"refused: {(told or [json.dumps(outcome.result.error)])[-1][:90]}"


def _thought() -> Block:
    return replies.thinking(f"a plan {next(_NUMBERS)}")


def _bash() -> Block:
    return replies.tool_use("bash", {"command": "echo done", "description": "a step"})


def _answer() -> Reply:
    return Reply([_thought(), replies.text("done")])


def _called(life: Life) -> str:
    return life.prompt("do", Reply([_thought(), _bash()]), _answer())


def _late(life: Life) -> str:
    """An answer that ends in thinking, behind its call."""
    return life.prompt("do", Reply([_thought(), _bash(), _thought()]), _answer())


def _forged(life: Life) -> str:
    return life.prompt("do", Reply([replies.thinking("a plan", "forged"), _bash()]), _answer())


def _picture(life: Life) -> str:
    return life.prompt(parts=[{"type": "text", "text": "look"}, _PICTURE])


def _paste(life: Life) -> str:
    return life.prompt("see " + "lorem ipsum dolor " * 23_000)


def _outputs(life: Life) -> str:
    """Read one file after the other in a turn, until it is too long."""
    folder = life.world.harness.client.directory
    read = [replies.tool_use("read", {"filePath": str(folder / f"{number}.txt")}) for number in range(FILES)]
    return life.prompt("read all", *(Reply([_thought(), one]) for one in read), _answer())


def _account(life: Life) -> str:
    life.world.harness.provider.force(_NO_MONEY)
    said = life.prompt()
    life.world.harness.provider.unforce()
    return said


def _stopped(life: Life) -> str:
    """Stop an answer on its way (ESC)."""
    harness, hold = life.world.harness, threading.Event()
    before = len(harness.provider.main)
    harness.provider.script.append(Reply([_thought(), replies.text("half an ans")], hold))
    assert harness.client.prompt_async(life.session, "wait", thinking=True, model=harness.model) == 204
    life.world.daemon.wait(lambda: len(harness.provider.main) > before, "nothing was asked")
    time.sleep(0.3)
    harness.client.abort(life.session)
    hold.set()
    settle(harness, life.session)
    harness.provider.script.clear()
    return "stopped"


def _back(life: Life) -> str:
    """`/undo` in the TUI: take the last prompt back, and what came of it."""
    listed = [message["info"] for message in life.world.harness.client.messages(life.session)]
    life.call("revert", {"messageID": [info["id"] for info in listed if info["role"] == "user"][-1]})
    return "taken back"


def _fork(life: Life) -> str:
    """Go on in a copy."""
    life.session = life.call("fork", {})["id"]
    life.undone = False
    return life.session


def _compact(life: Life) -> str:
    life.world.harness.provider.script.append(Reply([replies.text("## Goal\nall of it")]))
    life.call("summarize", life.world.harness.model)
    life.world.harness.provider.script.clear()
    return "compacted"


def _undo(life: Life, *how: str) -> str:
    """Take the newest repair back. Where nothing came since, each byte is as it was."""
    world, client = life.world, life.world.harness.client
    made = [entry["id"] for entry in world.daemon.history(life.session) if entry["outcome"] == "healed"]
    if not made:
        return "nothing to undo"
    stored, (before, behind) = records(client, life.session), world.repaired.get(made[0], ({}, {}))
    code = world.daemon.run("undo", made[0], *how).returncode
    now = records(client, life.session)
    if code == 0:
        life.undone = True
        if stored == behind and now != before:
            life.problems.append(f"undo of {made[0]} is not exact")
    elif now != stored:
        life.problems.append(f"undo of {made[0]} changed something, and ended with {code}")
    return f"{made[0]}, {code}"


def _repair(life: Life) -> str:
    """Name it for a repair: what was undone is not repaired by itself."""
    world, client = life.world, life.world.harness.client
    stored = records(client, life.session)
    code = world.daemon.run("scan", "--repair", "--yes", "--session", life.session).returncode
    made = world.daemon.history(life.session)
    if made and made[0]["outcome"] == "healed":
        world.repaired.setdefault(made[0]["id"], (stored, records(client, life.session)))
        life.undone = False
    return f"{code}"


FAULTS: dict[str, Callable[[Life], str]] = {
    "forged": _forged,
    "late": _late,
    "picture": _picture,
    "paste": _paste,
    "outputs": _outputs,
}
ACTS: dict[str, Callable[[Life], str]] = {
    **FAULTS,
    "ask": lambda life: life.prompt("ask", _answer()),
    "called": _called,
    "again": Life.prompt,
    "account": _account,
    "stopped": _stopped,
    "back": _back,
    "forth": lambda life: str(life.call("unrevert", {})),  # `/redo`
    "fork": _fork,
    "compact": _compact,
    "undo": _undo,
    "force": lambda life: _undo(life, "--force"),
    "repair": _repair,
}


@contextmanager
def world(root: Path, version: str) -> Iterator[World]:
    """The client of a version that compacts only when it is told to, with files to read, and the daemon."""
    with (
        running(root / "client", version, config=OFF, limit=LIMIT, context=LIMIT) as harness,
        Daemon(root / "daemon", root / "client" / "data") as daemon,
    ):
        lines = [f"{number} token buffer stream index offset branch commit value" for number in range(780)]
        for number in range(FILES):
            (harness.client.directory / f"{number}.txt").write_text("\n".join(lines))
        harness.prompt(harness.client.new_session()["id"], "hello")
        yield World(harness, daemon, root)


def live(world: World, lives: Sequence[Sequence[str]]) -> list[Life]:
    """Live all, round by round; each round of a life is acts with blanks between them."""
    new = world.harness.client.new_session
    lived = [Life(world, [one.split() for one in rounds], new("a life")["id"]) for rounds in lives]
    for number in range(max(len(life.rounds) for life in lived)):
        _round(world, lived, number)
    return lived


def _round(world: World, lives: list[Life], number: int) -> None:
    """Act in all sessions while the daemon stands still, let it look at them, and judge what it did and says."""
    client = world.harness.client
    with world.daemon.held():
        for life in lives:
            for act in life.rounds[number] if number < len(life.rounds) else ():
                life.said.append(f"{act}: {ACTS[act](life)}")
        before = _still(client, lives)
        unhealed = _copied(world, world.root / f"before-{number}")
    _quiet(world.daemon)
    behind = {life.session: records(client, life.session) for life in lives}
    for session, entries in world.daemon.by_session().items():
        for entry in entries:
            if session in before:
                world.repaired.setdefault(entry["id"], (before[session], behind[session]))
    edited = [life for life in lives if before[life.session] != behind[life.session]]
    for life, came in zip(edited, _asked(world, unhealed, edited), strict=True):
        if came == "answered" or life.undone:
            why = "its user had undone that" if life.undone else "its next prompt would have been answered"
            life.problems.append(f"round {number}: edited, and {why}")
    told = _told(world.daemon)
    for life, came in zip(lives, _asked(world, _copied(world, world.root / f"behind-{number}"), lives), strict=True):
        _judge(life, number, came, told.get(life.session, {"list": "fine", "reason": "", "action": ""}))


def _still(client: Client, lives: Sequence[Life]) -> dict[str, Records]:
    """What is stored of each session once the client writes no more: 1.18 notes at a prompt what its turn changed in
    files, when it has said already that it is idle."""
    stored: dict[str, Records] = {}
    while stored != (now := {life.session: records(client, life.session) for life in lives}):
        stored = now
        time.sleep(STILL_S)
    return stored


def _judge(life: Life, number: int, came: str, told: dict[str, Any]) -> None:
    """Hold what `scan` says of a session against what came of its next prompt."""
    life.said.append(f"[{number}: {told['list']} {told['reason']}; {came}]")
    stuck, refused = told["list"] == "stuck", came != "answered"
    if (
        told["reason"] in ("repair_undone", "refused_before_copy")
        or "before the session was repaired" in told["action"]
    ):
        return  # it says itself that nobody knows yet
    if stuck != refused:
        life.problems.append(f"round {number}: told as {told['list']} ({told['action']}), and {came}")
    if refused and not life.undone:
        life.problems.append(f"round {number}: not healed: {told['action']}")


def _quiet(daemon: Daemon) -> None:
    """Wait until the daemon has done with all that was done."""
    seen, since = daemon.recorded(), time.monotonic()

    def done() -> bool:
        nonlocal seen, since
        now = daemon.recorded()
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_S and all(entry.outcome != "pending" for entry in now)

    daemon.wait(done, "it never came to rest")


def _told(daemon: Daemon) -> dict[str, dict[str, Any]]:
    """What `scan` says, by session, with the list in which it says it."""
    found = json.loads(daemon.run("scan", "--json").stdout)
    return {one["session"]: {**one, "list": name} for name in ("elsewhere", "healed", "stuck") for one in found[name]}


def _copied(world: World, root: Path) -> Client:
    """A second client, on a copy of the store as it is now."""
    client = world.harness.client
    twin = Client(client.binary, root, world.harness.provider.url, config=OFF, context=LIMIT)
    twin.directory = client.directory
    if client.database.exists():
        world.harness.copy_store("", twin.data)
    else:
        shutil.copytree(client.storage, twin.storage)
    return twin


def _asked(world: World, twin: Client, lives: Sequence[Life]) -> list[str]:
    """Prompt these sessions where a copy is; what came of it."""
    if not lives:
        return []
    with twin:
        harness = Harness(twin, world.harness.provider)
        return [what_came(harness.prompt(life.session, "now?", thinking=True, timeout=30)) for life in lives]


def main() -> None:
    """Live lives that are drawn, and tell of those in which something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lives", type=int, default=24)
    asked = parser.parse_args()
    rng, acts = random.Random(asked.seed), sorted(ACTS)
    first = [f"called {fault}{again}" for fault in sorted(FAULTS) for again in ("", " again", " again again")]
    drawn = [[rng.choice(first), *rng.choices(acts, k=3)] for _ in range(asked.lives)]
    with tempfile.TemporaryDirectory() as folder, world(Path(folder), asked.version) as lived_in:
        wrong = [life.tell() for life in live(lived_in, drawn) if life.problems]
    print(*wrong, f"{len(drawn)} lives on {asked.version}; something did not hold in {len(wrong)}", sep="\n")


if __name__ == "__main__":
    main()
