"""A subagent that was refused for a reason that nobody knows matters until the session that asked it goes on."""

from __future__ import annotations

import json

from recoveryd.cli.live_sessions import LiveSessions
from recoveryd.clients import Config
from recoveryd.diagnose import NeedsUser
from recoveryd.diagnose.context import Context
from tests.conftest import Run
from tests.support.trees import EMPTY, Bench, Tree, blank_answer

LLAMA = "Your llama is not amused by this"


def delegated(tree: Tree, words: str) -> tuple[str, str]:
    """A session that was answered a minute ago, and its subagent's, refused just now."""
    parent = tree.ended(blank_answer)
    child = tree.stuck(blank_answer, words)
    tree.began(parent, child)
    return parent, child


def needing(context: Context, tree: Tree, known: NeedsUser) -> list[str]:
    return [one.session for one in known.find(context, [tree.store])]


def test_it_is_stuck_only_until_the_session_that_asked_it_goes_on(tree: Tree, bench: Bench, run: Run) -> None:
    parent, child = delegated(tree, LLAMA)
    code, out, _ = run("scan", "--json")
    assert (code, [one["reason"] for one in json.loads(out)["stuck"]]) == (1, ["refused_unknown"])
    known = NeedsUser()
    assert needing(bench.recovery.context, tree, known) == [child]
    tree.answered(parent)
    code, out, _ = run("scan", "--json")
    data = json.loads(out)
    assert (code, data["stuck"]) == (0, [])
    assert [(one["session"], one["reason"]) for one in data["elsewhere"]] == [(child, "refused_subagent")]
    assert needing(bench.recovery.context, tree, known) == []
    code, out, _ = run("explain", "--session", child)
    assert "go on in the session that asked" in " ".join(out.split())


def test_nobody_is_told_to_prompt_a_subagent_that_stays_refused(tree: Tree, run: Run) -> None:
    """The TUI takes no prompt there (1.18.34), and a copy of the session that asked it is a copy of a sound one."""
    parent, child = delegated(tree, "Could not process image")
    tree.answered(parent)
    said = " ".join(run("explain", "--session", child)[1].split())
    assert "explains this error: have the session that asked this subagent go on with the task, and please send" in said
    assert "/fork" not in said and "prompt it again" not in said


def test_what_can_be_healed_of_it_is_healed_all_the_same(tree: Tree, run: Run) -> None:
    parent, child = delegated(tree, EMPTY)
    tree.answered(parent)
    out = run("scan", "--repair", "--yes", "--json")[1]
    assert [(one["session"], one["healed"]) for one in json.loads(out)["stuck"]] == [(child, True)]


def test_it_is_told_also_where_the_session_that_asked_it_cannot_be_read(tree: Tree, run: Run) -> None:
    parent, child = delegated(tree, LLAMA)
    for path in (tree.root / "message" / parent).glob("*.json"):
        path.write_text("{")
    code, out, _ = run("scan", "--json")
    reasons = {one["session"]: one["reason"] for one in json.loads(out)["stuck"]}
    assert (code, reasons[child]) == (1, "refused_unknown")


def test_it_has_one_title_wherever_it_is_told(tree: Tree, run: Run) -> None:
    """The one that its user knows: no session that was refused, healed, or went on has another one elsewhere."""
    parent = tree.ended(blank_answer, title="What the user began")
    child = tree.stuck(blank_answer, EMPTY, title="A detail")
    tree.began(parent, child)

    def listed(*argv: str) -> list[str]:
        data = json.loads(run(*argv, "--json")[1])
        found = (data["stuck"] or data["healed"]) if argv[0] == "scan" else data["need_user"]
        return [one["title"] for one in found]

    def watched() -> list[str]:
        rows = LiveSessions(Config(), lambda: [tree.store]).refresh()
        return [row.title for row in rows if row.session == child]

    wanted = ["What the user began"]
    assert listed("scan") == listed("status") == watched() == wanted
    assert listed("scan", "--repair", "--yes") == listed("scan") == watched() == wanted
    assert [one["title"] for one in json.loads(run("history", "--json")[1])] == wanted
    tree.answered(child)
    assert watched() == wanted
    assert json.loads(run("explain", "--session", child, "--json")[1])["title"] == wanted[0]
    assert json.loads(run("compact", child, "--dry-run", "--json")[1])["title"] == wanted[0]
