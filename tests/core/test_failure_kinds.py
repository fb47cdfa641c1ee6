"""The table of kinds: whole, at one with the repairs, and the only place that says what differs between kinds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from recoveryd.clients import Config
from recoveryd.core.failure_kinds import KINDS, KindGroup, explained_by, kind_info
from recoveryd.core.model import Kind, RecordedError
from recoveryd.providers import classify
from recoveryd.repair.fixes import REPAIRS

ROOT = Path(__file__).parents[2] / "recoveryd"
# They say which function, rule, sentence or example belongs to a kind, not how kinds differ.
MAY_LIST_KINDS = ("core/failure_kinds.py", "repair/fixes/__init__.py", "providers/", "demo/")


def with_flag(flag: str) -> set[Kind]:
    return {kind for kind, row in KINDS.items() if getattr(row, flag)}


def test_every_kind_has_one_row_in_the_order_in_which_people_read_them() -> None:
    assert list(KINDS) == list(Kind)
    assert all(row.cause for row in KINDS.values())
    assert kind_info(None) not in KINDS.values()
    assert [kind_info(kind) for kind in Kind] == list(KINDS.values())


def test_a_kind_has_a_remedy_if_and_only_if_something_repairs_it() -> None:
    by_edits = with_flag("remedy") | with_flag("offer")  # what is only offered has its words in the offer
    flags = with_flag("signature") | with_flag("cured_by_client") | with_flag("shortened")
    assert by_edits == REPAIRS.keys() | flags
    assert with_flag("offer") == {Kind.REASONING_MISSING} <= with_flag("unrepaired")
    assert not with_flag("cured_by_client") & REPAIRS.keys()


def test_a_kind_is_repaired_or_says_why_not_but_one_that_waits_for_its_repair() -> None:
    assert not with_flag("remedy") & with_flag("unrepaired")
    assert set(Kind) - with_flag("remedy") - with_flag("unrepaired") == {Kind.TOOL_RESULT_ORPHAN}


def test_what_a_prompt_clears_is_not_edited() -> None:
    assert with_flag("cleared_by_prompt") <= with_flag("unrepaired")


def test_what_is_only_stopped_is_not_edited() -> None:
    assert with_flag("stopped") == {Kind.ENDLESS_COMPACTION} <= with_flag("unrepaired")


def test_only_what_is_repaired_says_how() -> None:
    for flag in ("local", "open_turn", "waits", "new_ids", "cured_by_client", "opt_in", "not_resumed", "thinking"):
        assert with_flag(flag) <= with_flag("remedy") | with_flag("offer")


def test_words_that_stand_in_a_sentence_end_without_a_full_stop_and_remedies_with_one() -> None:
    for row in KINDS.values():
        for words in (row.cause, row.unrepaired, row.undone, row.not_resumed):
            assert not words.endswith(".")
        assert not row.remedy or row.remedy.endswith(".")


@pytest.mark.parametrize(
    "words", ["each thinking block must contain non-whitespace thinking", "thinking: Field required"]
)
def test_thinking_without_words_is_not_told_as_a_signature_that_is_not_valid(words: str) -> None:
    found = classify(RecordedError((f"messages.1.content.0.thinking.{words}",), status=400))
    assert found is not None
    told = kind_info(found.kind)
    assert "thinking without words" in told.cause and "thinking without words" in told.remedy


def test_by_default_is_repaired_what_need_not_be_named() -> None:
    assert set(Kind) - set(Config().kinds) == with_flag("opt_in") == {Kind.INTERRUPTED_TURN}


@pytest.mark.parametrize(
    ("said", "met", "explains"),
    [
        (Kind.THINKING_BLOCK_ORDER, Kind.THINKING_DISABLED_VIOLATION, True),
        (Kind.THINKING_BLOCK_ORDER, Kind.TOOL_RESULT_MISSING, True),
        (Kind.TOOL_RESULT_MISSING, Kind.THINKING_BLOCK_ORDER, False),
        (Kind.TOOL_RESULT_ORPHAN, Kind.THINKING_FINAL_BLOCK, True),
        (Kind.THINKING_BLOCK_MODIFIED, Kind.THINKING_SIGNATURE_INVALID, True),
        (Kind.THINKING_BLOCK_MODIFIED, Kind.THINKING_BLOCK_ORDER, False),
        (Kind.EMPTY_CONTENT, Kind.ROLE_ORDER, False),
    ],
)
def test_a_provider_names_one_of_the_faults_that_go_together(said: Kind, met: Kind, explains: bool) -> None:
    assert (met in explained_by(said)) is explains


def test_every_kind_explains_itself_and_only_groups_explain_more() -> None:
    for kind, row in KINDS.items():
        assert kind in explained_by(kind)
        assert (explained_by(kind) == {kind}) is (row.group is None)
    assert {row.group for row in KINDS.values()} == {None, *KindGroup}


def listed_kinds(node: ast.AST) -> int:
    """How many kinds a set, a list, a tuple or the keys of a mapping name."""
    names = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
    return sum(isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "Kind" for n in names)


def test_no_other_module_keeps_a_list_of_kinds() -> None:
    lists = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted(ROOT.rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(MAY_LIST_KINDS)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Set, ast.List, ast.Tuple, ast.Dict)) and listed_kinds(node) > 1
    ]
    assert lists == []
