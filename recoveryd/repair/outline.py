"""A request cut into turns: which of its blocks are old, and which belong to what goes on now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from recoveryd.core import Block, Request

_SHORTEST = 400  # characters: an output that is shorter is not worth a mark
_NEARLY = 0.9  # of what fits: so much is enough where it begins with a prompt


@dataclass(frozen=True, slots=True)
class Placed:
    """A block of an outline, the number of its turn, and whether it is what the user said."""

    turn: int
    block: Block
    of_user: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a request: its blocks in their order, by turns. A turn is a prompt of the user and its answers.

    `turns` counts those that were answered; `newest_answer` is where the last message of the assistant begins. `shown`
    is what tools gave back that is sent beside their outputs, by part.
    """

    placed: Sequence[Placed]
    turns: int
    newest_answer: int
    shown: Mapping[str, Sequence[Block]]

    @classmethod
    def of(cls, request: Request) -> Outline:
        """Number the turns of a request."""
        placed: list[Placed] = []
        number, answered, begins = 0, 0, 0
        for turn in request.turns:
            if turn.role == "assistant":
                answered, begins = number, len(placed)
            prompted = False
            for block in turn.blocks:
                of_user = turn.role == "user" and block.type != "tool_result"
                number += (
                    of_user and not prompted
                )  # results may stand before a prompt in one message: of the turn before
                prompted = prompted or of_user
                placed.append(Placed(number, block, of_user))
        shown: dict[str, list[Block]] = {one.block.part_id: [] for one in placed if one.block.type == "tool_result"}
        for one in placed:
            if one.of_user and one.block.part_id and one.block.part_id in shown:
                shown[one.block.part_id].append(one.block)
        return cls(placed, answered, begins, shown)

    def outputs(self, *, turns: int = 0, last: int = 0) -> Iterator[Block]:
        """List the tools' outputs that may be cleared, oldest first: but for the last `turns`, and the `last` of
        all.
        """
        found = [one for one in self.placed if _output(one.block)]
        for one in found[: max(0, len(found) - last)]:
            long = self.shown[one.block.part_id] or len(str(one.block.body.get("content", ""))) > _SHORTEST
            if one.turn <= self.turns - turns and long:
                yield one.block

    def calls(self, *, last: int) -> Iterator[Block]:
        """List the inputs of tools, oldest first, but for the `last`."""
        found = [one.block for one in self.placed if one.block.type == "tool_use"]
        yield from found[: max(0, len(found) - last)]

    def thinking(self) -> Iterator[Block]:
        """List the thinking, oldest first, but for that of the assistant's last message."""
        return (one.block for one in self.placed[: self.newest_answer] if one.block.is_thinking and one.block.part_id)

    def cuttable(self) -> Iterator[Block]:
        """List what can be cut: texts of the user, and outputs of tools."""
        for one in self.placed:
            text = one.of_user and one.block.type == "text"
            if one.block.part_id and (text or _output(one.block)):
                yield one.block

    def last_that_fit(self, room: float, tokens: Callable[[Block], float]) -> str | None:
        """Find the message from which on all fits into `room` tokens; best one that begins a turn. None: none does."""
        found, best, behind = "", 0.0, 0.0
        prompt, whole = "", 0.0
        for at in range(len(self.placed) - 1, -1, -1):
            one = self.placed[at]
            behind += tokens(one.block)
            if behind > room:
                break
            first = at == 0 or self.placed[at - 1].block.message_id != one.block.message_id
            if not first or not one.block.message_id or at == 0 or one.block.type == "tool_result":
                continue
            found, best = one.block.message_id, behind
            if one.of_user and not self.placed[at - 1].of_user:
                prompt, whole = found, behind
        return (prompt if prompt and whole >= _NEARLY * best else found) or None


def _output(block: Block) -> bool:
    return block.type == "tool_result" and not block.unfinished and not block.body.get("is_error")
