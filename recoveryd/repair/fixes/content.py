"""Fix messages and texts with nothing in them, and turns in an order that the provider does not take."""

from __future__ import annotations

from collections.abc import Sequence

from recoveryd.core import Edits, Violation
from recoveryd.repair.inputs import RepairInput

NO_OUTPUT = "[no output]"


def fill_or_set_aside_empty(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Set a blank text aside where there is content beside it; replace it by the placeholder where it is all there
    is.
    """
    block = violation.block
    if block is None:
        return _empty_turn(given, violation)
    if not block.part_id:
        return ()
    if block.type == "tool_result":
        return (given.editor.replace_text(block, NO_OUTPUT),)
    words = given.editor.replace_text(block, given.settings.placeholder)
    if not words:
        return ()
    aside = given.editor.set_aside([block], "set_aside_blank")
    others = [b for b in given.request.blocks() if b.message_id == block.message_id and b.part_id != block.part_id]
    return (aside, words) if others or _amid_thinking(given, violation) else (words, aside)


def _amid_thinking(given: RepairInput, violation: Violation) -> bool:
    """Whether a text stands right between two of the thinking of its turn, which may be of other records."""
    blocks = given.request.turns[violation.turn].blocks
    at = next((n for n, b in enumerate(blocks) if b is violation.block), 0)
    return at > 0 and [b.is_thinking for b in blocks[at - 1 : at + 2]] == [True, False, True]


def _empty_turn(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Append one placeholder behind any of the stored steps that the empty message is made of; the last of them is
    best.
    """
    origins = given.request.turns[violation.turn].origins
    words = given.settings.placeholder
    return tuple(given.editor.words_behind(message, part, words) for message, part in reversed(origins) if message)


def let_user_begin(given: RepairInput, violation: Violation) -> Sequence[Edits]:
    """Let the user speak before an answer: give words to the user message that vanished, or add one.

    Two steps of one answer, which are sent one behind the other, become one. Between two messages of the user goes an
    answer, and of two calls in one step the second gets a step of its own. An answer of nothing gets words too: once
    the user speaks before it, others refuse it as empty.
    """
    turns, words = given.request.turns, given.settings.placeholder
    turn = turns[violation.turn]
    if violation.block is not None:
        return (given.editor.own_step(violation.block),)
    if violation.turn == 0:
        return given.editor.user_words_before(turns, 0, words)
    before = turns[violation.turn - 1]
    if turn.role == "assistant":
        filled = () if turn.blocks else next(iter(_empty_turn(given, violation)), ())
        asked = given.editor.user_words_before(turns, violation.turn, words)
        return (given.editor.join_step(turn), *((*edits, *filled) for edits in asked))
    if any(block.type == "tool_result" for block in before.blocks):
        return (given.editor.close_turn(turns[violation.turn - 2], words),)
    return (given.editor.answer_behind(turns, violation.turn - 1, words),)
