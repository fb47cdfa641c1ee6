"""A copy of OpenCode's, by a fork or an import, holds the refusals from before, and what was repaired since."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from recoveryd.cli.findings import finding_of
from recoveryd.clients.opencode.ids import WRAP_MS, copied_at
from recoveryd.core import Kind, Message, Outcome
from recoveryd.diagnose import diagnose
from recoveryd.diagnose.earlier_repairs import stored_repair
from tests.conftest import Run
from tests.support.build import BINDS, SessionBuilder
from tests.support.database import NEW, Base
from tests.support.judge import refusal
from tests.support.parts import api_error, reasoning
from tests.support.plant import dump, write_sqlite
from tests.support.trees import EMPTY, SIGNATURE, Bench, Tree, blank_answer, write_over

NAMED = "messages.3.content.0: Invalid `signature` in `thinking` block"


def made_at(kind: str, ms: int) -> str:
    value = ms * 4096 % 2**48
    return f"{kind}_{value if kind == 'msg' else 2**48 - 1 - value:012x}ForkForkForkFo"


def fork(tree: Tree, session: str, later_ms: int = 60_000) -> str:
    """As the client makes one: the same messages and parts under new ids, each as old as it was."""
    now = int(time.time() * 1000) + later_ms
    messages, new = tree.store.load(session).messages, made_at("ses", now)
    ids = {session: new, **{m.id: made_at("msg", now + 1 + n) for n, m in enumerate(messages)}}
    ids |= {part.id: f"{part.id[:-4]}Fork" for message in messages for part in message.parts}

    def renamed(text: str) -> str:
        for old, name in ids.items():
            text = text.replace(old, name)
        return text

    for path in [path for path in tree.root.rglob("*.json") if any(name in str(path) for name in ids)]:
        copy = Path(renamed(str(path)))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(dump(json.loads(renamed(path.read_text()))))
    return new


def fails_itself(tree: Tree, copy: str, words: str) -> str:
    """A failure of the copy's own, behind those that it was made with; return its message."""
    failed = max((tree.root / "message" / copy).iterdir())
    later = int(time.time() * 1000) + 120_000
    own = {**json.loads(failed.read_text()), "id": made_at("msg", later), "error": api_error(words, 400)}
    own["time"] = {"created": later, "completed": later + 1}
    failed.with_name(f"{own['id']}.json").write_bytes(dump(own))
    return str(own["id"])


@pytest.mark.parametrize(("turns", "words"), [(blank_answer, EMPTY), (blank_answer, SIGNATURE), (blank_answer, NAMED)])
def test_a_fork_of_what_was_healed_is_not_stuck_and_not_edited(
    tree: Tree, run: Run, turns: Callable[[SessionBuilder], object], words: str
) -> None:
    session = tree.stuck(turns, words)
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    assert (code, json.loads(out)["stuck"][0]["healed"]) == (0, True)
    new = fork(tree, session)
    before = tree.files()
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    data = json.loads(out)
    assert (code, data["stuck"]) == (0, [])
    assert [(one["session"], one["reason"]) for one in data["elsewhere"]] == [(new, "refused_before_copy")]
    assert data["elsewhere"][0]["action"].startswith("left alone until it is refused here")
    assert tree.files() == before


@pytest.mark.parametrize("words", [NAMED, "prompt is too long: 210000 tokens > 200000 maximum", "a llama objects"])
def test_a_fork_of_what_was_never_repaired_is_refused_as_that_is(tree: Tree, run: Run, words: str) -> None:
    session = tree.stuck(blank_answer, words)
    new = fork(tree, session)
    reasons = {one["session"]: one["reason"] for one in json.loads(run("scan", "--json")[1])["stuck"]}
    assert reasons.keys() == {session, new} and reasons[new] == reasons[session]


def test_both_are_healed_where_the_copy_was_made_before_the_repair(tree: Tree, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    session = tree.stuck(blank_answer, NAMED)
    new = fork(tree, session, later_ms=0)
    for one in (session, new):
        assert bench.attempt(tree, one).outcome is Outcome.HEALED
        gone = [part.type for message in tree.store.load(one).messages for part in message.parts]
        assert gone.count("reasoning") == 1
    again = fork(tree, new)
    found = diagnose(bench.recovery.context, tree.store, again)
    assert found is not None and (found.reason, found.stuck) == ("refused_before_copy", False)


def test_what_the_rules_find_in_a_fork_is_healed_there(tree: Tree, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    new = fork(tree, tree.stuck(blank_answer, EMPTY))
    assert bench.attempt(tree, new).outcome is Outcome.HEALED
    assert refusal(tree.store.load(new), thinking=False) is None


@pytest.mark.parametrize(
    ("later_ms", "reason"), [(0, "thinking_signature_invalid"), (3_600_000, "refused_before_copy")]
)
def test_what_was_healed_before_it_was_imported_is_not_stuck(tmp_path: Path, later_ms: int, reason: str) -> None:
    """`opencode import` gives all rows the time of the import: the second thinking was taken out before."""
    made = SessionBuilder(model=BINDS)
    made.user("go")
    made.assistant(reasoning("sound"), "done")
    made.user("next")
    made.assistant("fine")
    made.failed("continue", api_error(NAMED, 400))
    base = Base(tmp_path / "opencode.db", NEW)
    write_sqlite(made.planted(), base.path)
    base.run("UPDATE message SET time_updated = json_extract(data, '$.time.created') + ?", later_ms)
    found = diagnose(Bench(tmp_path).recovery.context, base.store, made.session["id"])
    assert found is not None and found.reason == reason


def test_what_was_healed_in_files_that_a_database_took_over_can_be_looked_at(tree: Tree, tmp_path: Path) -> None:
    """OpenCode 1.2 takes over the files of 1.1: a repair's keys are no records of a database."""
    bench = Bench(tmp_path)
    session = tree.stuck(blank_answer, EMPTY)
    event = bench.attempt(tree, session)
    assert event.outcome is Outcome.HEALED
    base = Base(tmp_path / "opencode.db", NEW, clock=time.time)
    write_sqlite(tree.made(session).planted(), base.path)
    base.run("UPDATE message SET time_updated = time_updated + 3600000")
    found = finding_of(base.store, session, bench.recovery)
    assert found is not None and found.kind is Kind.EMPTY_CONTENT, "the rules find it in what is stored"
    failure = base.store.look(session).failure
    assert failure is not None and stored_repair(base.store, bench.ledger, failure) is None


def test_a_refusal_in_the_fork_itself_counts(tree: Tree, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    new = fork(tree, tree.stuck(blank_answer, SIGNATURE))
    own = fails_itself(tree, new, SIGNATURE)
    found = diagnose(bench.recovery.context, tree.store, new)
    assert found is not None and (found.reason, found.failure.message) == ("thinking_signature_invalid", own)


@pytest.mark.parametrize("ms", [1_795_000_000_000, 26 * WRAP_MS + 5_000])
def test_only_what_is_older_than_its_session_under_a_newer_id_is_a_copy(ms: int) -> None:
    """Also where ids began anew in between."""

    def message(identifier: int, created: int) -> Message:
        return Message(made_at("msg", identifier), {"role": "assistant", "time": {"created": created}})

    session = made_at("ses", ms)
    assert copied_at(session, message(ms + 10, ms - 60_000)) == ms + 10
    assert not copied_at(session, message(ms + 60_000, ms + 60_000))
    assert not copied_at(session, message(ms - 60_000, ms - 60_000)), "a clock that was set back"
    assert not copied_at("ses_1", message(ms + 10, ms - 60_000))


@pytest.mark.parametrize("refused", [1, 2])
@pytest.mark.parametrize("then", ["account", "taken back", "both"])
def test_nor_does_it_count_again_behind_an_error_of_the_fork_or_once_a_turn_was_taken_back(
    tree: Tree, run: Run, refused: int, then: str
) -> None:
    """What thinking the copy has was not refused: what was is gone from it."""
    session = tree.stuck(blank_answer, NAMED)
    for _ in range(refused - 1):
        tree.refused(session, NAMED)
    assert run("scan", "--repair", "--yes")[0] == 0
    new = fork(tree, session)
    asked = [message.id for message in tree.store.load(new).messages if message.role == "user"][-1]
    if then != "taken back":
        fails_itself(tree, new, "Your credit balance is too low to access the Anthropic API.")
    if then != "account":
        write_over(next((tree.root / "session").rglob(f"{new}.json")), revert={"messageID": asked})
    before = tree.files()
    code, out, _ = run("scan", "--repair", "--yes", "--json")
    assert (code, json.loads(out)["stuck"]) == (0, []) and tree.files() == before
    [told] = [one for one in json.loads(out)["elsewhere"] if one["session"] == new]
    assert told["reason"] in ("refused_elsewhere", "refused_before_copy", "taken_back")
