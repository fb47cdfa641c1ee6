"""Find what a client sends no more of a session once it is edited, though no edit takes it out. Pure.

Clients leave stored parts out while they build a request: an answer of nothing but thinking, a call that nothing came
back from, an output without its call. So an edit of one part can make another vanish, and no provider's rule says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recoveryd.core import Block, Edit, Refusal, Request, Session, Turn

# What the client or its SDK writes beside what was said: it may differ, and nobody reads it.
_BESIDE = frozenset({"type", "role", "id", "call_id", "tool_use_id", "signature", "is_error", "citations"})
_IN_OTHER_FORM = frozenset({"as_message", "take_out_media"})
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})  # types of stored parts


@dataclass(frozen=True, slots=True)
class Unsent:
    """What was sent of a stored part, its `message_id` and `part_id`, and is sent no more.

    `turn` is the index in the request before, `role` who says it there; `sort` as `_sort` tells it, and "thinking" of
    what is stored as thinking, in whatever form it was sent.
    """

    record: tuple[str, str]
    sort: str
    turn: int
    role: str

    @property
    def action(self) -> str:
        """The name of `ACTIONS` that tells it; "" of what may not vanish: what was said, what a tool gave back."""
        return {"thinking": "unsent_thinking", "call": "unsent_call"}.get(self.sort, "")

    @property
    def words(self) -> str:
        """What it is, for the user."""
        who = "model" if self.role == "assistant" else "user"
        return {"output": "the output of a tool", "media": "an image or file"}.get(self.sort, f"words of the {who}")


def unsent(
    session: Session,
    before: Sequence[Request],
    after: Sequence[Request],
    edits: Sequence[Edit],
    hidden: Collection[str] = (),
) -> tuple[Unsent, ...]:
    """List what of `session` is sent no more after `edits`, in any of the client's ways, though no edit takes it out.

    The requests are those of the same wires, in the same order. Messages that are `hidden` on purpose are left out.
    """
    pairs = zip(before, after, strict=True)
    found = [one for old, new in pairs for one in _of_one(old, new, edits, frozenset(hidden))]
    if not found:
        return ()
    thinking = {part.id for message in session.messages for part in message.parts if part.type in _THINKING}
    marked = (replace(one, sort="thinking") if one.record[1] in thinking else one for one in found)
    return tuple({(one.record, one.sort): one for one in marked}.values())


def name_unsent(edits: Sequence[Edit], gone: Sequence[Unsent], session: Session) -> tuple[Edit, ...] | Refusal:
    """Let `edits` tell of what vanishes: of a record that none of them changes, by one that leaves it as it is.

    A refusal where it is something that somebody said, or that a tool gave back.
    """
    if not gone:
        return tuple(edits)
    said = next((one for one in gone if not one.action), None)
    if said is not None:
        what = f"{said.words} (messages.{said.turn})"
        return Refusal(f"what would heal it would keep {what} from being sent, and nothing is wrong with that")
    known = {edit.record: edit for edit in edits}
    stored = {(part.message_id, part.id): part.data for message in session.messages for part in message.parts}
    for one in gone:
        edit = known.get(one.record)
        if edit is None:
            known[one.record] = Edit(*one.record, stored[one.record], one.action)
        elif edit.companion:
            known[one.record] = replace(edit, action=one.action, companion=False)
        else:
            known[one.record] = replace(edit, also=(*edit.also, one.action))
    return tuple(known.values())


def _of_one(before: Request, after: Request, edits: Sequence[Edit], hidden: Collection[str]) -> Iterator[Unsent]:
    first, last = _apart(before.turns, after.turns)
    old = before.turns[first : len(before.turns) - last]
    known = {id(block) for turn in old for block in turn.blocks}
    sent = [block for turn in after.turns[first : len(after.turns) - last] for block in turn.blocks]
    same, fresh = {id(block) for block in sent}, [block for block in sent if id(block) not in known]
    now, changed = {(block.part_id, block.type): block for block in fresh}, {edit.part_id for edit in edits}

    def stays(block: Block) -> bool:  # of many thousand blocks nearly all do, and are told so at once
        other = now.get((block.part_id, block.type)) if not block.carriers else None
        return other is not None and (block.part_id in changed or other.body == block.body)

    gone = [
        (block, number, turn.role)
        for number, turn in enumerate(old, first)
        for block in turn.blocks
        if id(block) not in same and block.message_id not in hidden and not stays(block)
    ]
    if gone:
        edited = _Edited.by(edits, fresh)
        for block, number, role in gone:
            for record in edited.lacks(block):
                if _says_something(block):
                    yield Unsent(record, "thinking" if block.is_thinking else _sort(block), number, role)


def _apart(old: Sequence[Turn], new: Sequence[Turn]) -> tuple[int, int]:
    """Count the turns at the head and at the end that are the same in two requests."""
    most = min(len(old), len(new))
    first = next((n for n in range(most) if old[n].blocks != new[n].blocks), most)
    return first, next((n for n in range(most - first) if old[-1 - n].blocks != new[-1 - n].blocks), most - first)


@dataclass(frozen=True, slots=True)
class _Edited:
    """What edits do to parts, by their ids: which they take out, which they change, and whose whole message goes; and
    what is sent of parts then, by what it is.
    """

    taken: frozenset[str]
    changed: Mapping[str, Edit]
    messages: frozenset[str]
    sent: Mapping[tuple[str, str], Sequence[Block]]

    @classmethod
    def by(cls, edits: Sequence[Edit], now: Iterable[Block]) -> _Edited:
        changed = {edit.part_id: edit for edit in edits if edit.part_id is not None}
        taken = (part_id for part_id, edit in changed.items() if _takes_out(edit))
        messages = (edit.message_id for edit in edits if edit.part_id is None and edit.after is None)
        sent: dict[tuple[str, str], list[Block]] = {}
        for block in now:
            for _, part_id in _records(block):
                sent.setdefault((part_id, _sort(block)), []).append(block)
        return cls(frozenset(taken), changed, frozenset(messages), sent)

    def lacks(self, block: Block) -> Sequence[tuple[str, str]]:
        """List the parts of a block of which it is not sent any more, though no edit took it out and tells so.

        Thinking that several hold is sent as long as it is that of one.
        """
        records = [record for record in _records(block) if record[0] not in self.messages]
        sent = [record for record in records if self._sends(block, record[1])]
        lost = [record for record in records if record not in sent and record[1] not in self.taken]
        return lost if not block.is_thinking else () if sent else lost[:1]

    def _sends(self, block: Block, part_id: str) -> bool:
        edit = self.changed.get(part_id)
        alike = self.sent.get((part_id, _sort(block)), ())
        if edit is None:
            return any(_still_says(block, other) for other in alike)
        if edit.action == "clear_output" and _sort(block) == "media":
            return True  # what a tool gave back beside its words goes with them, and is told so
        if _IN_OTHER_FORM.intersection((edit.action, *edit.also)):
            return any((part_id, sort) in self.sent for sort in ("said", "output", "call", "media"))
        return bool(alike)


def _takes_out(edit: Edit) -> bool:
    """Whether an edit itself takes out what a part says, and tells so: also where the part stays."""
    actions = (edit.action, *edit.also)
    return edit.after is None or any(one.startswith("set_aside") or one == "cut_paste" for one in actions)


def _records(block: Block) -> Sequence[tuple[str, str]]:
    """List message and part ids of all that a block comes from; none of what the client makes up."""
    return [record for record in block.carriers or ((block.message_id, block.part_id),) if record[1]]


def _says_something(block: Block) -> bool:
    return block.is_thinking or bool("".join(_said(block.body)).strip())


def _sort(block: Block) -> str:
    """Tell what a block is, whatever its protocol calls it."""
    if block.type.endswith(("_result", "_output")):
        return "output"
    if block.type.endswith(("tool_use", "_call")) and "result" not in block.body:
        return "call"
    return "media" if block.type in ("image", "document") else "said"


def _still_says(block: Block, now: Block) -> bool:
    """Whether a part of which nothing was edited still says in `now` what it said in `block`.

    What several parts say together may become less; of thinking that went with their words it is looked up there.
    """
    if now.body == block.body or _within(block, now):
        return True
    return bool(block.carriers) and (now.is_thinking == block.is_thinking or _within(now, block))


def _within(block: Block, other: Block) -> bool:
    """Whether all that a block says is said by another, in that order, perhaps among more: SDKs join texts and cut
    blanks off.
    """
    rest = iter("".join(_said(other.body)))
    return all(letter in rest for letter in "".join(_said(block.body)) if not letter.isspace())


def _said(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in _BESIDE:
                yield from _said(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _said(item)
    elif value is not None:
        yield str(value)
