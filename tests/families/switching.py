"""`python -m tests.families.switching [--family F] [--version V] [--fault F]`: sessions that go between families.

On the real client. Each session was made by several families in turn, with thinking and calls; then each of them is
asked again. What is refused is healed by `recoveryd run` and goes on; what a family took before, it takes after.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from pathlib import Path

from tests.e2e.client import Client
from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.install import NEWEST, ensure
from tests.families.fake import Fake
from tests.families.judged import made_worse, session_of
from tests.families.play import Stage
from tests.families.table import FAMILIES, Family
from tests.shapes import SHAPES
from tests.support.build import Planted, SessionBuilder, reasoning, text, tool

CIRCLE = ("bedrock", "openai", "gemini", "kimi", "bedrock")  # Claude, GPT, Gemini, Kimi, Claude
FAULTS = ("sound", "forged", "blank", "misplaced", "between")
FORMS = ("old", "new")
_PROMPTS = 3


@dataclass
class Gone:
    """What became of a session: for each family that was asked, whether each of its prompts was answered."""

    session: str
    answers: list[tuple[str, list[bool]]] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)

    @property
    def went_on(self) -> bool:
        """Whether every family answered in the end, and every recovery healed."""
        return all(answers[-1] for _, answers in self.answers) and set(self.outcomes) <= {"healed"}

    @property
    def refused(self) -> int:
        """How many prompts were refused."""
        return sum(answers.count(False) for _, answers in self.answers)


def made_by(order: Sequence[Family], fault: str) -> Planted:
    """A session with a round of each family, in this order, as each SDK stores its own; the fault is in the first's."""
    session = SessionBuilder(title=f"{fault}: {' '.join(family.name for family in order)}")
    ends = []
    for number in range(len(order)):
        session.user(f"question {number}")
        broken = fault if number == 0 else "sound"
        signed = {"signature": "EqQBCkYIAhgCIkDforged"} if broken == "forged" else {}
        behind = [text("behind the call")] if broken in ("misplaced", "between") else []
        behind += [tool()] if broken == "between" else []
        session.assistant(reasoning(f"a plan {number}", **signed), text("I look"), tool(), *behind)
        session.assistant(reasoning(f"a thought {number}"), text(" " if broken == "blank" else f"answer {number}"))
        ends.append(len(session.planted().messages))
    whole = session.planted()
    messages = []
    for family, start, end in zip(order, [0, *ends], ends, strict=False):
        own = family.dressed(replace(whole, messages=whole.messages[start:end]))
        messages += own.messages
        whole.parts |= {
            message["id"]: own.parts[message["id"]] for message in own.messages if message["id"] in own.parts
        }
    return replace(whole, messages=messages)


@contextmanager
def staged(root: Path, names: Sequence[str], version: str) -> Iterator[dict[str, Stage]]:
    """One client that knows all these families, each with a strict fake of its own, and the daemon beside it."""
    with ExitStack() as stack:
        fakes = {name: stack.enter_context(Fake(name)) for name in dict.fromkeys(names)}
        configs = [FAMILIES[name].config(fake.address) for name, fake in fakes.items()]
        config = {**configs[0], "provider": {key: value for one in configs for key, value in one["provider"].items()}}
        first = next(iter(fakes.values())).address
        model = FAMILIES[names[0]].model
        client = stack.enter_context(Client(ensure(version), root / "client", first, config=config, model=model))
        client.call("GET", "/session")
        settings = "".join(FAMILIES[name].settings for name in fakes)
        daemon = stack.enter_context(Daemon(root / "daemon", root / "client" / "data", config=settings + CONFIG))
        yield {name: Stage(client, fake, daemon, FAMILIES[name], version) for name, fake in fakes.items()}


def gone(stages: dict[str, Stage], order: Sequence[str], fault: str, asked: Sequence[str]) -> Gone:
    """Plant a session that `order` made, and ask these families one after the other."""
    some = stages[order[0]]
    planted = made_by([FAMILIES[name] for name in order], fault)
    some.write(planted)
    made = Gone(planted.id)
    healed = 0
    for name in asked:
        answers: list[bool] = []
        while len(answers) < _PROMPTS and not (answers and answers[-1]):
            ids = dict(FAMILIES[name].ids)
            result = some.client.prompt(planted.id, f"for {name}", timeout=300, model=ids)
            answers.append(result.info is not None and result.error is None)
            if not answers[-1]:
                healed += 1
                some.daemon.wait_settled([planted.id], healed)
        made.answers.append((name, answers))
    made.outcomes = [entry["outcome"] for entry in some.daemon.by_session().get(planted.id, [])]
    return made


def main() -> None:
    """Play what is asked for; print a line a session, or a case that is bad, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--family", action="append", choices=FAMILIES, help="two or more; those of the circle by default"
    )
    parser.add_argument("--version", default=NEWEST)
    parser.add_argument("--fault", action="append", choices=FAULTS, help="one or more; all by default")
    parser.add_argument(
        "--without-client",
        action="store_true",
        help="all pairs of families, shapes and forms, by the product's own request",
    )
    chosen = parser.parse_args()
    if chosen.without_client:
        _pairs(chosen.family or list(FAMILIES))
    else:
        _play(chosen.family or CIRCLE, chosen.version, chosen.fault or FAULTS)


def _play(circle: Sequence[str], version: str, faults: Sequence[str]) -> None:
    """Play each order of two of the families of a circle, there and back, and the circle, both ways round."""
    names = list(dict.fromkeys(circle))
    bad = refused = played = 0
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        staged(Path(root), names, version) as all_,
    ):
        ways = [((before,), (now, before)) for before, now in permutations(names, 2)]
        for order, asked in [*ways, (circle, circle), (circle, circle[::-1])]:
            for fault in faults:
                made = gone(all_, order, fault, asked)
                played, refused, bad = played + 1, refused + made.refused, bad + (not made.went_on)
                shown = ", ".join(
                    f"{name} {''.join('.' if ok else 'x' for ok in answers)}" for name, answers in made.answers
                )
                print(f"{fault:10} {'ok ' if made.went_on else 'BAD'} {shown} {made.outcomes}", flush=True)
    print(f"{played} sessions, {refused} prompts refused, {bad} did not go on")


def _pairs(families: Sequence[str]) -> None:
    """Print a line a case in which a session of one of `families` is stuck on another or made worse, and the sums."""
    cases = bad = 0
    for before in families:
        session_of.cache_clear()
        for now, form, shape in product(FAMILIES, FORMS, SHAPES.values()):
            if now == before or shape.json_only:
                continue
            cases, why = cases + 1, made_worse(before, now, form, shape)
            if why is not None:
                bad += 1
                print(f"{before} -> {now}, {form}, {shape.name}: {why}", flush=True)
        print(f"{before}: {cases} cases so far, {bad} stuck or worse", flush=True)


if __name__ == "__main__":
    main()
