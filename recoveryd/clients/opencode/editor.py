"""Writes what a repair wants into OpenCode's records: the `Editor` of its sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from recoveryd.clients.opencode import part_fixes
from recoveryd.clients.opencode.ids import between, unique_between
from recoveryd.clients.opencode.prompting import fields_of_answer, fields_of_prompt
from recoveryd.clients.opencode.wire.prompt import steps
from recoveryd.core import Block, CallLimits, Edit, Edits, Json, Marks, Message, Part, Session, Turn, repeated

_OF_ITEMS = ("set_aside_reasoning", "set_aside_alone")  # actions that set reasoning items aside


@dataclass(frozen=True, slots=True)
class OpencodeEditor:
    """Edits of one session, marked with the recovery that they belong to. Raises as `Editor` says."""

    session: Session
    marks: Marks

    def cancel_call(self, block: Block, words: str) -> Edits:
        part = self._part(block.part_id)
        if part.type != "tool":
            return ()
        if part_fixes.finished(part):
            own = part_fixes.executed_by_client(part.data or {})
            return (self._replace(part, own, "mend_call"),) if own else ()
        return (self._cancelled(part, words),)

    def mend_call(self, block: Block, limits: CallLimits) -> Edits:
        part = self._part(block.part_id)
        return (self._replace(part, part_fixes.legal_call(part, self._before(part), limits), "mend_call"),)

    def own_step(self, block: Block) -> Edits:
        """Put a `step-start` in front of the part: the client cuts a message into steps there.

        The thinking right before it goes with it, which led to it. What is cut off and calls nothing becomes one with
        the step behind it: two answers in a row are refused by some.
        """
        parts = self._message(block.message_id).parts
        index = next(i for i, other in enumerate(parts) if other.id == block.part_id)
        start = next((i for i in range(index, 0, -1) if parts[i - 1].type != "reasoning"), index)
        if start and parts[start - 1].type != "step-start":
            index = start
        behind = parts[index - 1].id if index else None
        cut = self._insert(block.message_id, behind, [{"type": "step-start"}], "split_step")
        first = max((i for i in range(index) if parts[i].type == "step-start"), default=0)
        last = next((i for i in range(index, len(parts)) if parts[i].type == "step-start"), len(parts))
        resealed = part_fixes.metadata_of_halves(parts[first:index], parts[index:last])
        changed = (self._replace(part, {"metadata": metadata}, "split_step") for part, metadata in resealed)
        return (*cut, *(replace(edit, companion=True) for edit in changed), *_joined(parts, index))

    def reasoning_before(self, block: Block, words: str) -> Edits:
        """Put reasoning in front of the step of a call, as OpenRouter's SDK keeps it; its message is then one of the
        model that is asked, since of another's the client sends none.
        """
        message = self._message(block.message_id)
        step = self._step_of(message, block.part_id)
        said = part_fixes.reasoning_as_own(words, block.part_id)
        if any((part.data or {}).get("text") == said for part in step):
            return ()  # it stands there, and is not sent
        time = {"start": self.marks.now, "end": self.marks.now}
        body = {"type": "reasoning", "text": said, "time": time, "metadata": part_fixes.with_reasoning({}, said)}
        at = message.parts.index(step[0])
        made = self._insert(message.id, message.parts[at - 1].id if at else None, [body], "invent_reasoning")
        return (*made, *self._without_details(step), *self._under_the_model_asked(message))

    @staticmethod
    def _step_of(message: Message, part_id: str) -> Sequence[Part]:
        return next(step for step in steps(message.parts) if any(part.id == part_id for part in step))

    def _without_details(self, step: Sequence[Part]) -> Iterator[Edit]:
        """Take off the parts of a step the reasoning that is not sent: that of a call would be sent first."""
        for part in step:
            metadata = part_fixes.unsealed(part.data or {})
            if part.type == "tool" and metadata != (part.data or {}).get("metadata", {}):
                yield replace(self._replace(part, {"metadata": metadata}, "invent_reasoning"), companion=True)

    def _under_the_model_asked(self, message: Message) -> Iterator[Edit]:
        """Let an answer be one of the model that the last prompt asks."""
        prompts = (m.data["model"] for m in reversed(self.session.messages) if isinstance(m.data.get("model"), Mapping))
        asked: Json = next(prompts, {})
        ids = {key: asked[key] for key in ("providerID", "modelID") if key in asked}
        if not ids.items() <= message.data.items():
            yield Edit(message.id, None, {**message.data, **ids}, "invent_reasoning", companion=True)

    def words_behind(self, message_id: str, part_id: str | None, words: str) -> Edits:
        return self._insert(message_id, part_id, [part_fixes.added_text(words, assistant=True)], "placeholder")

    def join_step(self, turn: Turn) -> Edits:
        """Take out the `step-start` between two steps."""
        message_id, last = turn.origins[0]
        parts = self._message(message_id).parts if message_id else ()
        end = next((i for i, part in enumerate(parts) if part.id == last), 0)
        start = next((i for i in range(end, 0, -1) if parts[i].type == "step-start"), 0)
        return (Edit(message_id, parts[start].id, None, "join_step"),) if start else ()

    def user_words_before(self, turns: Sequence[Turn], at: int, words: str) -> Sequence[Edits]:
        """Put words into the user messages in between, of which nothing is sent, the nearest first; else into a new
        one.
        """
        first = turns[at].origins[0][0]
        if not first:
            return ()  # it is no stored message
        body = [part_fixes.added_text(words, assistant=False)]
        later = {message for turn in turns[at:] for message, _ in turn.origins}
        ways = [
            self._insert(message.id, message.parts[-1].id if message.parts else None, body, "placeholder")
            for message in reversed(self._silent_between(turns[at - 1] if at else None, first))
            if message.id not in later
        ]
        return ways or [self._user_message(first, words, later)]

    def _silent_between(self, behind: Turn | None, first: str) -> list[Message]:
        """List the user messages between a turn and a message. A compaction, or two messages of one millisecond, may
        have what is stored before it sent behind it.
        """
        spoken = {message for message, _ in behind.origins} if behind is not None else set()
        found: list[Message] = []
        for message in self.session.messages:
            if message.id == first:
                return [] if spoken else found
            if message.id in spoken:
                found.clear()
                spoken.discard(message.id)
            elif message.role == "user":
                found.append(message)
        return []

    def answer_behind(self, turns: Sequence[Turn], at: int, words: str) -> Edits:
        turn = turns[at]
        named = (*(message for message, _ in turn.origins), *(block.message_id for block in turn.blocks))
        behind = next((message for message in reversed(named) if message), None)
        later = {message for turn in turns[at + 1 :] for message, _ in turn.origins}
        return self._answer(behind, words, later) if behind is not None else ()

    def close_turn(self, turn: Turn, words: str) -> Edits:
        last = next((b for b in reversed(turn.blocks) if b.part_id), None)
        if last is None:
            return ()
        message = self._message(last.message_id)
        bodies = [{"type": "step-start"}, part_fixes.added_text(words, assistant=True)]
        return self._insert(message.id, message.parts[-1].id, bodies, "close_turn")

    def replace_text(self, block: Block, words: str) -> Edits:
        part = self._part(block.part_id)
        if part.type == "text":
            return (self._replace(part, {"text": words}, "placeholder"),)
        state = (part.data or {}).get("state")
        if block.type != "tool_result" or not isinstance(state, Mapping):
            return ()
        return (self._replace(part, {"state": {**state, "output": words}}, "placeholder"),)

    def mend_unicode(self, block: Block) -> Edits:
        mended = ((part, part_fixes.without_half_characters(part.data)) for part in self._parts_of(block))
        return tuple(self._replace(part, data, "mend_unicode") for part, data in mended if data != part.data)

    def take_out_media(self, block: Block, fault: Callable[[Json], str | None], reason: str) -> Edits:
        part = self._part(block.part_id)
        if part.type != "tool":
            return (self._as_note(part, reason),)
        state, gone = part_fixes.without_media((part.data or {})["state"], fault)
        return (repeated(self._replace(part, {"state": state}, "take_out_media"), gone),) if gone else ()

    def rename_document(self, block: Block, name: str) -> Edits:
        part = self._part(block.part_id)
        return (self._replace(part, part_fixes.renamed(part.data or {}, block.body, name), "rename_document"),)

    def set_aside(self, blocks: Iterable[Block], action: str) -> Edits:
        """Set parts aside; what other parts carry too is taken off them; of reasoning items the words stay."""
        return tuple(edit for block in blocks for edit in self._aside(block, action))

    def _aside(self, block: Block, action: str) -> Iterator[Edit]:
        for number, part in enumerate(self._parts_of(block)):
            if action in _OF_ITEMS or (block.is_thinking and block.carriers and part.type != "reasoning"):
                edit = self._replace(part, {"metadata": part_fixes.unsealed(part.data or {})}, action)
            else:
                edit = Edit(part.message_id, part.id, None, action)
            yield replace(edit, companion=number > 0)

    def _parts_of(self, block: Block) -> Iterator[Part]:
        """Go through all parts that hold a block, its own first."""
        return map(self._part, dict.fromkeys((block.part_id, *(part_id for _, part_id in block.carriers))))

    def without_field(self, block: Block, field: str, action: str) -> Edits:
        """Edit nothing: the fields of an item are no fields of a part here; what the client keeps of them, it keeps
        sealed.
        """
        if field not in ("id", "encrypted_content", "signature"):
            return ()
        part = self._part(block.part_id)
        unsealed = part_fixes.unsealed(part.data or {})
        return (
            (self._replace(part, {"metadata": unsealed}, action),)
            if unsealed != (part.data or {}).get("metadata")
            else ()
        )

    def as_message(self, block: Block, action: str) -> Edits:
        """Edit nothing: items of other protocols are no records here."""
        del block, action
        return ()

    def mend_unsendable(self, part_id: str, fault: str, reason: str, cancelled: str) -> Edits:
        part = self._part(part_id)
        match fault:
            case "not_json":
                return (Edit(part.message_id, part.id, None, "set_aside_unreadable"),)
            case "text":
                words = (part.data or {}).get("text")
                if words is None:
                    return (Edit(part.message_id, part.id, None, "set_aside_blank"),)
                return (self._replace(part, {"text": part_fixes.value_as_text(words)}, "mend_part"),)
            case "executed":
                return (self._replace(part, part_fixes.executed_by_client(part.data or {}), "mend_call"),)
            case "state":
                return (self._cancelled(part, cancelled),)
            case "name":
                return (self._replace(part, {"callID": part_fixes.unique_id(part)}, "mend_call"),)
            case "file" | "attachment" if part.type == "tool":
                state = part_fixes.without_unsendable((part.data or {})["state"], reason)
                return (self._replace(part, {"state": state}, "take_out_media"),)
            case "file":
                return (self._as_note(part, reason),)
        return (self._replace(part, part_fixes.sendable(part.data or {}, fault, self.marks.now), "mend_part"),)

    def _cancelled(self, part: Part, words: str) -> Edit:
        state = part_fixes.cancelled(part.data or {}, words, self.marks.now)
        return self._replace(part, {"state": state}, "cancel_tool")

    def _as_note(self, part: Part, reason: str) -> Edit:
        """Replace a file of the user by a text."""
        data = part.data or {}
        kept = {key: data[key] for key in ("id", "sessionID", "messageID") if key in data}
        body = {**kept, "type": "text", "text": part_fixes.taken_out_note(data, reason)}
        return Edit(part.message_id, part.id, self._marked(body), "take_out_media")

    def _message(self, message_id: str) -> Message:
        return next(m for m in self.session.messages if m.id == message_id)

    def _part(self, part_id: str) -> Part:
        part = self.session.part(part_id)
        assert part is not None, part_id
        return part

    def _before(self, part: Part) -> Iterator[Part]:
        for message in self.session.messages:
            for other in message.parts:
                if other.id == part.id:
                    return
                yield other

    def _replace(self, part: Part, changes: Json, action: str) -> Edit:
        """Change some fields of `part`, and mark it."""
        return Edit(part.message_id, part.id, self._marked({**(part.data or {}), **changes}), action)

    def _insert(self, message_id: str, behind: str | None, bodies: Sequence[Json], action: str) -> Edits:
        """Insert new parts behind the part `behind` (None: in front of all) of a message, in the given order: one
        deed.
        """
        message = self._message(message_id)
        ids = [part.id for part in message.parts]
        at = ids.index(behind) + 1 if behind is not None else 0
        high = ids[at] if at < len(ids) else None
        # Ids are unique in the whole store: one behind a part inherits that from it, others need a mark.
        low = behind or unique_between("prt_", high, message_id.removeprefix("msg_"))
        edits: list[Edit] = []
        for number, body in enumerate(bodies, 1):
            low = between(low, high)
            stored = {"id": low, "sessionID": self.session.id, "messageID": message_id, **body}
            edits.append(Edit(message_id, low, self._marked(stored), action, companion=number < len(bodies)))
        return tuple(edits)

    def _user_message(self, before: str, words: str, later: set[str]) -> Edits:
        """Insert a user message right in front of `before`. `later`: what is sent behind it."""
        answer = self._message(before)
        like = next((m for m in self.session.messages if m.role == "user"), None)
        ids = [message.id for message in self.session.messages]
        at = min(map(ids.index, later & self._tied(answer)))
        new = unique_between(ids[at - 1] if at else "msg_", ids[at], self.marks.recovery)
        # 1.2 sends a new row before all of its millisecond: it is not to be that of the message in front, if it may.
        front = self.session.messages[at - 1] if at and ids[at - 1] not in later else None
        room = _time(answer) - _time(front) > 1 if front is not None else True
        created = _time(answer) - int(room)
        message, part = self._message_of(new, {"role": "user", **fields_of_prompt(like, answer, created)}, words)
        return message, *self._tail_from(before, new), part

    def _tail_from(self, before: str, new: str) -> Iterator[Edit]:
        """Have a compaction keep what begins with the message `new`, where it kept what began right behind that."""
        for message in self.session.messages:
            for part in message.parts:
                if part.type == "compaction" and (part.data or {}).get("tail_start_id") == before:
                    yield replace(self._replace(part, {"tail_start_id": new}, "placeholder"), companion=True)

    def _answer(self, behind: str, words: str, later: set[str]) -> Edits:
        """Insert an answer right behind a message, before what is sent `later`, as the answers before it are stored,
        that cost nothing.
        """
        messages = self.session.messages
        at = next(i for i, m in enumerate(messages) if m.id == behind)
        asked = messages[at]
        tied = self._tied(asked)
        sent = takewhile(lambda m: m.id in tied - later, messages[at + 1 :])
        *_, front = asked, *sent
        then = next(iter(messages[messages.index(front) + 1 :]), None)
        answers = [m for m in messages[: at + 1] if m.role == "assistant" and m.completed and m.error is None]
        new = unique_between(front.id, then.id if then is not None else None, self.marks.recovery)
        prompt = asked.id if asked.role == "user" else asked.data.get("parentID")
        room = _time(then) - _time(asked) if then is not None else 3
        created = _time(asked) + (2 if room > 2 else int(room > 0))  # a prompt may have to go between the two
        fields = fields_of_answer(asked, answers[-1] if answers else None, self.session.directory, created)
        return self._message_of(new, {"role": "assistant", "parentID": prompt, **fields}, words)

    def _tied(self, message: Message) -> set[str]:
        """Name what is of one millisecond with a message: 1.2 sends it the wrong way round."""
        return {message.id, *(other.id for other in self.session.messages if message.at and other.at == message.at)}

    def _message_of(self, new: str, fields: Json, words: str) -> tuple[Edit, Edit]:
        """Make a new message, and the one text that it holds."""
        body = {"id": new, "sessionID": self.session.id, **fields}
        first = "prt_" + new.removeprefix("msg_")
        said = part_fixes.added_text(words, assistant=fields["role"] == "assistant")
        part = self._marked({"id": first, "sessionID": self.session.id, "messageID": new, **said})
        return Edit(new, None, body, "placeholder", companion=True), Edit(new, first, part, "placeholder")

    def _marked(self, data: Json) -> Json:
        """Add the recovery's id to the metadata; it has to be an object, or the client breaks."""
        metadata = data.get("metadata")
        kept = metadata if isinstance(metadata, Mapping) else {}
        return {**data, "metadata": {**kept, "recoveryd": {"recovery": self.marks.recovery}}}


def _time(message: Message) -> int:
    return message.at or message.created


def _joined(parts: Sequence[Part], index: int) -> Iterator[Edit]:
    """Take out the `step-start` behind what begins at `index`, if there is more of the answer, and no call before."""
    for part in parts[index:]:
        if part.type == "tool":
            return
        if part.type == "step-start":
            yield Edit(part.message_id, part.id, None, "join_step")
            return
