"""Tell in words what a repair did or would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recoveryd.core import Edit, Kind, Message, Session, capital, deeds, kind_info
from recoveryd.tell.where import tool_name


@dataclass(frozen=True, slots=True)
class Deed:
    """The words for one action of an edit: to do it, having done it, and what it is done to, once and `{n}` times."""

    do: str
    did: str
    one: str
    several: str
    now: str = ""  # how it is then: said behind the noun in the place of the verb; `{is}` is "is" or "are"

    def said(self, n: int, kind: Kind | None, *, done: bool = True) -> str:
        """Write the action, done `n` times, as "took out 2 thinking blocks the provider no longer accepts"."""
        why = " the provider no longer accepts" if kind_info(kind).signature else ""
        what = (self.one if n == 1 else self.several).format(n=n, why=why)
        if done and self.now:
            return f"{what} {self.now.replace('{is}', 'is' if n == 1 else 'are')}"
        return f"{self.did if done else self.do} {what}"


ACTIONS: Mapping[str, Deed] = {
    "cancel_tool": Deed(
        "end", "ended", "1 unfinished tool call as cancelled", "{n} unfinished tool calls as cancelled"
    ),
    "split_step": Deed(
        "put", "put", "1 tool result right behind its call", "{n} tool results right behind their calls"
    ),
    "join_step": Deed("join", "joined", "2 steps of an answer", "{n} steps of answers to those before them"),
    "set_aside_thinking": Deed("take out", "took out", "1 thinking block{why}", "{n} thinking blocks{why}"),
    "drop_signature": Deed("take off", "took off", "1 signature{why}", "{n} signatures{why}"),
    "set_aside_reasoning": Deed(  # all of it goes, for it is not known which of several the provider can't read
        "take out",
        "took out",
        "1 item that the provider may be unable to read",
        "{n} items that the provider may be unable to read",
    ),
    "set_aside_alone": Deed(
        "take out",
        "took out",
        "1 reasoning item without what has to follow it",
        "{n} reasoning items without what has to follow them",
    ),
    "set_aside_summary": Deed(
        "take out",
        "took out",
        "a compaction's summary that the provider can't read (the model knows only the words that were kept beside it)",
        "{n} summaries of compactions that the provider can't read (the model knows only the words kept beside them)",
    ),
    "set_aside_item": Deed(
        "take out", "took out", "1 item that the provider does not know", "{n} items that the provider does not know"
    ),
    "drop_field": Deed(
        "empty", "emptied", "1 field that the provider does not take", "{n} fields that the provider does not take"
    ),
    "forget_tool": Deed(
        "take out",
        "took out",
        "1 mention of a tool that is gone, or of another of its server",
        "{n} mentions of tools that are gone, or of others of their servers",
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
    "set_aside_picture": Deed(
        "take out", "took out", "1 picture that the model made", "{n} pictures that the model made"
    ),
    "rename_document": Deed(
        "rename",
        "renamed",
        "1 document whose name the provider does not take",
        "{n} documents whose names the provider does not take",
    ),
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
    "give_back": Deed(
        "take away", "took away", "the mark of 1 compaction that failed", "the marks of {n} compactions that failed"
    ),
    "clear_output": Deed(
        "leave out",
        "left out",
        "the output of 1 old tool call",
        "the outputs of {n} old tool calls",
        "{is} no longer sent",
    ),
    "cut_output": Deed("cut", "cut", "1 long output (whole in a file)", "{n} long outputs (each whole in a file)"),
    "cut_paste": Deed("cut", "cut", "1 long text of yours, whole in a file", "{n} long texts of yours, whole in files"),
    "cut_input": Deed("cut", "cut", "the long input of 1 old tool call", "the long inputs of {n} old tool calls"),
    "set_aside_old_thinking": Deed("set aside", "set aside", "1 old thinking block", "{n} old thinking blocks"),
    "compact": Deed(
        "put",
        "put",
        "an extract in the place of the oldest messages",
        "{n} extracts in the place of the oldest messages",
    ),
    "unsent_thinking": Deed(
        "leave",
        "left",
        "1 thinking block stored that is no longer sent",
        "{n} thinking blocks stored that are no longer sent",
    ),
    "unsent_call": Deed(
        "leave",
        "left",
        "1 tool call stored that is no longer sent",
        "{n} tool calls stored that are no longer sent",
    ),
    "lower_usage": Deed(
        "set", "set", "the length that 1 answer tells right", "the lengths that {n} answers tell right"
    ),
    "invent_reasoning": Deed("make up", "made up", "the reasoning of 1 tool call", "the reasoning of {n} tool calls"),
    "close_turn": Deed("close", "closed", "the open turn", "{n} open turns"),
}


def deeds_sentence(actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> str:
    """Write actions as one sentence: "Took out 2 thinking blocks the provider no longer accepts, closed the open turn".

    Not `done`: "Would take out ...".
    """
    counts = Counter(actions)
    said = [deed.said(n, kind, done=done) for action, deed in ACTIONS.items() if (n := counts.get(action))]
    return capital(("would " if said and not done else "") + ", ".join(said))


def no_longer_seen(session: Session, edits: Sequence[Edit]) -> str:
    """ "; no longer seen: 38 messages, bash 20; cut: write 17" of what is sent no more, or not whole; "" of nothing."""
    parts = {part.id: part for message in session.messages for part in message.parts}
    messages, unseen, cut = 0, dict[str, str](), dict[str, str]()
    for edit in deeds(edits):
        part = parts.get(edit.part_id or "")
        if edit.action == "compact":
            messages = _replaced(session, Message(edit.message_id, edit.after or {}), edits)
        elif part is not None and edit.action in ("clear_output", "cut_input", "cut_output"):
            (unseen if edit.action == "clear_output" else cut)[part.id] = tool_name(part.data or {}) or "a tool"
    seen, whole = Counter(unseen.values()), Counter(cut.values())
    if messages:
        seen["messages"] = messages
    return "".join(
        f"; {what}: {_listed(counts)}" for what, counts in (("no longer seen", seen), ("cut", whole)) if counts
    )


def _replaced(session: Session, marker: Message, edits: Sequence[Edit]) -> int:
    """Count the messages before a new compaction, back to the one before it, or to the tail that it kept: what that
    left out was not seen before.
    """
    gone = {edit.part_id for edit in edits if edit.after is None}
    before = [message for message in session.messages if message.by_time < marker.by_time]
    parts = [part for message in before for part in message.parts if part.type == "compaction" and part.id not in gone]
    seen_since = {parts[-1].message_id, (parts[-1].data or {}).get("tail_start_id")} if parts else set()
    return len(before) - next((at for at, message in enumerate(before) if message.id in seen_since), 0)


def _listed(counts: Counter[str]) -> str:
    """ "38 messages, bash 20, read 11" """
    messages = "1 message" if counts["messages"] == 1 else f"{counts['messages']} messages"
    seen = [messages if name == "messages" else f"{name} {n}" for name, n in counts.most_common(8)]
    return ", ".join(seen) + (" and others" if len(counts) > 8 else "")


def deeds_by_place(places: Sequence[str], actions: Sequence[str], kind: Kind | None, *, done: bool = True) -> list[str]:
    """Write a line for each place: "turn 14, tool bash: ended 1 unfinished tool call as cancelled"."""
    counts = Counter(zip(places, actions, strict=False))
    return [f"{place}: {ACTIONS[action].said(n, kind, done=done)}" for (place, action), n in counts.items()]
