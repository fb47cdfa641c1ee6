"""What a repair did or would do, in words for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recoveryd.core import Edit, Kind, capital, deeds, kind_info


@dataclass(frozen=True, slots=True)
class Deed:
    """An action of an edit in words: to do it, having done it, and what it is done to, once and `{n}` times."""

    do: str
    did: str
    one: str
    several: str

    def said(self, n: int, kind: Kind | None, *, done: bool = True) -> str:
        """ "took out 2 thinking blocks the provider no longer accepts" """
        why = " the provider no longer accepts" if kind_info(kind).signature else ""
        what = (self.one if n == 1 else self.several).format(n=n, why=why)
        return f"{self.did if done else self.do} {what}"


ACTIONS: Mapping[str, Deed] = {
    "cancel_tool": Deed(
        "end", "ended", "1 unfinished tool call as cancelled", "{n} unfinished tool calls as cancelled"
    ),
    "split_step": Deed(
        "put", "put", "1 tool result right behind its call", "{n} tool results right behind their calls"
    ),
    "set_aside_thinking": Deed("take out", "took out", "1 thinking block{why}", "{n} thinking blocks{why}"),
    "set_aside_reasoning": Deed(
        "take out", "took out", "1 item that the provider can't read", "{n} items that the provider can't read"
    ),
    "set_aside_item": Deed(
        "take out", "took out", "1 item that the provider does not know", "{n} items that the provider does not know"
    ),
    "drop_field": Deed(
        "empty", "emptied", "1 field that the provider does not take", "{n} fields that the provider does not take"
    ),
    "as_message": Deed(
        "put",
        "put",
        "1 item that the provider does not know in words",
        "{n} items that the provider does not know in words",
    ),
    "set_aside_blank": Deed("take out", "took out", "1 blank text", "{n} blank texts"),
    "mend_call": Deed(
        "give", "gave", "1 tool call a legal id, name or input", "{n} tool calls legal ids, names or inputs"
    ),
    "mend_unicode": Deed("replace", "replaced", "half a character in 1 part", "half characters in {n} parts"),
    "take_out_media": Deed("replace", "replaced", "1 image or file by a note", "{n} images or files by notes"),
    "set_aside_unreadable": Deed("set aside", "set aside", "1 part that can't be read", "{n} parts that can't be read"),
    "mend_part": Deed("complete", "completed", "1 part that can't be sent", "{n} parts that can't be sent"),
    "placeholder": Deed("fill", "filled", "1 gap with a placeholder", "{n} gaps with placeholders"),
    "renumber": Deed(
        "give",
        "gave",
        "1 old message and its parts ids that sort before the new ones",
        "{n} old messages and their parts ids that sort before the new ones",
    ),
    "end_tool": Deed("end", "ended", "1 tool call that was cut off", "{n} tool calls that were cut off"),
    "end_turn": Deed("close", "closed", "the turn that was cut off", "{n} turns that were cut off"),
    "close_turn": Deed("close", "closed", "the open turn", "{n} open turns"),
}


def actions_of(edits: Sequence[Edit]) -> tuple[str, ...]:
    """What was done, one name a deed."""
    return tuple(edit.action for edit in deeds(edits))


def sentence(actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> str:
    """ "Took out 2 thinking blocks the provider no longer accepts, closed the open turn", or "Would take out ..." """
    counts = Counter(actions)
    said = [deed.said(n, kind, done=done) for action, deed in ACTIONS.items() if (n := counts.get(action))]
    return capital(("would " if said and not done else "") + ", ".join(said))


def by_place(places: Sequence[str], actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> list[str]:
    """ "turn 14, tool bash: ended 1 unfinished tool call as cancelled", a line for each; to do, if not `done`."""
    counts = Counter(zip(places, actions, strict=False))
    return [f"{place}: {ACTIONS[action].said(n, kind, done=done)}" for (place, action), n in counts.items()]
