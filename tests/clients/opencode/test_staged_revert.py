"""A renaming is not undone under a revert that was staged since: OpenCode 1.2 would delete the whole session (seen)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from recoveryd.cli import main
from recoveryd.core.errors import RefusedError
from recoveryd.heal.undo import undo
from recoveryd.ledger.ledger import Ledger
from recoveryd.settings import paths
from tests.clients.opencode.test_silence import old
from tests.support.trees import Tree


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
