"""No message that a revert names is taken away by an undo: OpenCode 1.2 would delete the whole session (seen)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from recoveryd.cli import main
from recoveryd.core.errors import RefusedError
from recoveryd.core.model import Outcome
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import paths
from tests.clients.opencode.test_client_faults import old
from tests.support.trees import Bench, Tree, write_over


@pytest.mark.parametrize("force", [False, True])
def test_an_undo_waits_until_the_revert_is_taken_back(
    tree: Tree, run: Callable[..., tuple[int, str, str]], force: bool
) -> None:
    session = old(tree, 1)
    before = tree.files()
    assert main(["scan", "--repair", "--kind", "wrapped_ids"]) in (0, 1)
    [about] = (tree.root / "session").rglob(f"{session}.json")
    kept = about.read_bytes()
    first = tree.store.load(session).messages[0].id
    about.write_text(json.dumps({**json.loads(kept), "revert": {"messageID": first}}))
    with Ledger(paths.ledger_file(paths.state_dir())) as ledger:
        [entry] = ledger.history(1)
        with pytest.raises(RefusedError, match="revert was staged"):
            undo(tree.store, ledger, entry, force=force)
        about.write_bytes(kept)
        undo(tree.store, ledger, entry)
    assert {name: data for name, (data, _) in tree.files().items()} == {n: d for n, (d, _) in before.items()}


def test_a_message_that_a_repair_added_is_not_taken_away_under_a_revert_to_it(tree: Tree, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    words = 'messages: first message must use the "user" role'
    event = bench.attempt(tree, session := tree.stuck(lambda made: made.assistant("I begin"), words))
    assert event.outcome is Outcome.HEALED
    first = tree.store.load(session).messages[0]
    assert first.role == "user"
    [about] = (tree.root / "session").rglob(f"{session}.json")
    write_over(about, revert={"messageID": first.id})
    with pytest.raises(RefusedError, match="would be taken away"):
        undo(tree.store, bench.ledger, bench.ledger.get(event.id), force=True)
    write_over(about, revert=None)
    assert undo(tree.store, bench.ledger, bench.ledger.get(event.id))
