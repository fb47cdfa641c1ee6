"""Makes OpenCode's sessions shorter to their model, in its own forms: the `Shortener` of its sessions. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recoveryd.clients.javascript import truthy
from recoveryd.clients.opencode import compactions, token_usage
from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.ids import between
from recoveryd.clients.opencode.pruning import cleared, marked_by
from recoveryd.clients.opencode.wire.history import left_out
from recoveryd.core import Block, Edit, Edits, Json, Message, Part, deeds

CUT = "cut_output", "cut_paste"  # of these the whole is put into a file
_READ = "Use Grep to search the full content or Read with offset/limit to view specific sections."
_NONE = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


# As the client (1.1.53 to 1.18.34) puts it into an output that it cut, and its shell (1.18); as do we.
_NOTE = r"(?:^|\n\n)\.\.\.(?:\d+ (?:bytes|lines)|output) truncated\.\.\.\n\n[^\n]* saved to: (%s/tool_\w{26})"


class _Whole(NamedTuple):
    text: str  # all that is known of it
    file: str  # where that is, or is to be put
    is_there: bool = False
    is_all: bool = True


@dataclass(frozen=True, slots=True)
class OpencodeShortener(OpencodeEditor):
    """`folder`: where the client itself puts outputs that it cuts, and where the model may read them. `saved`: reads
    such a file, or gives None.
    """

    folder: str = ""
    saved: Callable[[str], str | None] = field(default=lambda _: None, repr=False, compare=False)
    _messages: dict[str, Message] = field(default_factory=dict, init=False, repr=False, compare=False)
    _parts: dict[str, Part] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _message(self, message_id: str) -> Message:
        if not self._messages:
            self._messages.update((message.id, message) for message in self.session.messages)
        return self._messages[message_id]

    def _part(self, part_id: str) -> Part:
        return self._all_parts()[part_id]

    def _all_parts(self) -> dict[str, Part]:
        if not self._parts:
            self._parts.update((part.id, part) for message in self.session.messages for part in message.parts)
        return self._parts

    def give_back(self) -> Sequence[Edits]:
        failed = (
            (Edit(part.message_id, part.id, None, "give_back"),)
            for part in compactions.failed_compactions(self.session)
        )
        return [*failed, *self._excerpts_of_what_is_whole()]

    def _excerpts_of_what_is_whole(self) -> Iterator[Edits]:
        """Take away what this recovery put in the place of a text that the client wrote again since."""
        for message in self.session.messages:
            shown = [part for part in message.parts if part.type == "text" and text_that_may_be_cut(part) is not None]
            for part in shown if message.role == "user" else ():
                ours = marked_by(part) == self.marks.recovery
                if ours and any(part.id != whole.id and part.id.startswith(whole.id) for whole in shown):
                    yield (Edit(part.message_id, part.id, None, "cut_paste", companion=True),)

    def clear_output(self, block: Block) -> Edits:
        part = self._part(block.part_id)
        state = (part.data or {}).get("state")
        if part.type != "tool" or not isinstance(state, Mapping) or state.get("status") != "completed":
            return ()
        marked = self._marked(cleared(part, self.marks.now))
        return (Edit(part.message_id, part.id, marked, "clear_output"),)

    def cut(self, block: Block, kept: int) -> Edits:
        part = self._part(block.part_id)
        data = part.data or {}
        shown, whole = text_that_may_be_cut(part), self._whole(part)
        if shown is None or whole is None or len(shown) <= kept:
            return ()
        if part.type == "tool":
            full = "The tool call succeeded but the output was truncated. Full output saved to:"
            said = full if whole.is_all else "The output was truncated once more. As it was before that it is saved to:"
            state = {**data["state"], "output": _cut(whole.text, kept, f"{said} {whole.file}\n{_READ}")}
            return (self._replace(part, {"state": state}, "cut_output"),)
        full = "The text was truncated. The full text is saved to:"
        said = full if whole.is_all else "The text was truncated once more. As it was before that it is saved to:"
        words = _cut(whole.text, kept, f"{said} {whole.file}\n{_READ}")
        hidden = self._replace(part, {"ignored": True}, "cut_paste")
        [new] = self._insert(part.message_id, part.id, [{"type": "text", "text": words}], "cut_paste")
        return (hidden, Edit(new.message_id, new.part_id, new.after, new.action, companion=True))

    def cut_input(self, block: Block, longest: int) -> Edits:
        part = self._part(block.part_id)
        state = (part.data or {}).get("state")
        if part.type != "tool" or not isinstance(state, Mapping):
            return ()
        return (self._replace(part, {"state": {**state, "input": _shorter(state["input"], longest)}}, "cut_input"),)

    def set_aside(self, blocks: Iterable[Block], action: str) -> Edits:
        """Set each record aside once: thinking of one part may be sent as several blocks."""
        found: dict[tuple[str, str | None], Edit] = {}
        for edit in OpencodeEditor.set_aside(self, blocks, action):
            known = found.get((edit.message_id, edit.part_id))
            if known is None or known.companion:
                found[edit.message_id, edit.part_id] = edit
        return tuple(found.values())

    def summaries(self) -> Collection[str]:
        told = (m for m in self.session.messages if truthy(m.data.get("summary")) and m.error is None)
        asked = (m for m in self.session.messages if any(part.type == "compaction" for part in m.parts))
        return {m.id for m in told if m.role == "assistant"} | {m.id for m in asked}

    def compact(self, before: str, words: str) -> Edits:
        """Add a marker, its summary, and in front of an answer a message of the user, right before the message
        `before`.
        """
        ids = [message.id for message in self.session.messages]
        at = ids.index(before)
        following = self._message(before)
        previous = self.session.messages[at - 1] if at else None
        if previous is None:
            return ()
        made = 2 + (following.role == "assistant")
        if following.created - previous.created <= made:  # 1.2 orders messages by their times alone
            raise ValueError("no time between two messages")
        new: list[str] = []
        for _ in range(made):
            new.append(between(new[-1] if new else previous.id, before))
        user = self._user(following.role == "assistant")
        first = previous.created + 1
        edits = [
            *self._new(new[0], {"role": "user", **user}, first, {"type": "compaction", "auto": False}),
            *self._new(new[1], self._summary(new[0], first + 1), first + 1, {"type": "text", "text": words}),
        ]
        if made > 2:
            going_on = {"type": "text", "text": "Go on where you were.", "synthetic": True}
            edits += self._new(new[2], {"role": "user", **user}, first + 2, going_on)
        return (edits[0], *(Edit(e.message_id, e.part_id, e.after, e.action, companion=True) for e in edits[1:]))

    def lower_usage(self, whole: float, since: Callable[[str], float]) -> Edits:
        for message in reversed(self.session.messages):
            if message.role != "assistant" or left_out(message) or not message.data.get("finish"):
                continue
            given, answered = token_usage.spent(message)
            tokens = max(0, round(whole - max(since(message.id), answered)))  # its own may be cut: no more than `whole`
            if given <= tokens or truthy(message.data.get("summary")):  # the client goes by the usage of no summary
                return ()
            told = {**message.data["tokens"], "input": tokens, "cache": {"read": 0, "write": 0}}
            told |= {"total": tokens + answered} if "total" in message.data["tokens"] else {}
            return (Edit(message.id, None, {**message.data, "tokens": told}, "lower_usage", companion=True),)
        return ()

    def _file(self, part: Part) -> str:
        """Choose where the whole of what is cut is put: the name tells the client when it may throw it away."""
        stamp = self.marks.now * 4096 % 2**48
        return f"{self.folder}/tool_{stamp:012x}{part.id[-14:]}"

    def _whole(self, part: Part) -> _Whole | None:
        """Find the whole of a text that may be cut: of one that was cut before, in the file that it names, if what it
        shows is of that. None: it is no such text.
        """
        said = text_that_may_be_cut(part)
        if said is None:
            return None
        notes = list(re.finditer(_NOTE % re.escape(self.folder), said))
        for note in notes:
            head, tail = said[: note.start()], said[note.end() :].partition("\n\n")[2]
            whole = self.saved(note[1]) if head or tail else None
            if whole is not None and whole.startswith(head) and whole.endswith(tail):
                return _Whole(whole, note[1], is_there=True)
        return _Whole(said, self._file(part), is_all=not notes)

    def wholes(self, edits: Edits) -> Mapping[str, str]:
        """Return the texts that edits of this session's editor cut, by the file that each is to be put into."""
        cut = (edit.part_id for edit in deeds(edits) if edit.action in CUT)
        found = [self._whole(self._part(part_id)) for part_id in cut if part_id in self._all_parts()]
        return {whole.file: whole.text for whole in found if whole is not None and not whole.is_there}

    def _user(self, _: bool) -> Json:
        like = next((m for m in reversed(self.session.messages) if m.role == "user"), None)
        data = like.data if like is not None else {}
        return {key: data[key] for key in ("agent", "model") if key in data}

    def _summary(self, parent: str, ms: int) -> Json:
        like = next((m for m in reversed(self.session.messages) if m.role == "assistant"), None)
        data = like.data if like is not None else {}
        kept = {key: data[key] for key in ("modelID", "providerID", "path") if key in data}
        fixed = {"role": "assistant", "parentID": parent, "mode": "compaction", "agent": "compaction", "summary": True}
        return {**fixed, **kept, "cost": 0, "tokens": _NONE, "finish": "stop", "time": {"created": ms, "completed": ms}}

    def _new(self, message_id: str, data: Json, ms: int, body: Json) -> Edits:
        """Make a message with one part."""
        message = {"id": message_id, "sessionID": self.session.id, "time": {"created": ms}, **data}
        part_id = "prt_" + message_id.removeprefix("msg_")
        part = {"id": part_id, "sessionID": self.session.id, "messageID": message_id, **body}
        marked = part if body["type"] == "compaction" else self._marked(part)
        return (Edit(message_id, None, message, "compact"), Edit(message_id, part_id, marked, "compact"))


def put_beside(folder: str, records: Iterable[tuple[str, Json | None, Json | None]]) -> Mapping[str, str]:
    """Name the files for the texts that were cut in OpenCode's parts, with these texts, given the parts' ids and what
    they said before and say now: that names the file.
    """
    known = list(records)
    now = [said for part_id, _, after in known if (said := text_that_may_be_cut(Part(part_id, "", after)))]
    found: dict[str, str] = {}
    for part_id, before, _ in known:
        named = re.compile(f"{re.escape(folder)}/tool_[0-9a-f]{{12}}{re.escape(part_id[-14:])}")
        whole = text_that_may_be_cut(Part(part_id, "", before))
        file = next((match[0] for said in now if (match := named.search(said))), None) if whole else None
        if whole and file:
            found[file] = whole
    return found


def text_that_may_be_cut(part: Part) -> str | None:
    """Return the text of a part that a shorter session may have cut: of a text, or a tool's output."""
    data = part.data or {}
    state = data.get("state")
    said = state.get("output") if part.type == "tool" and isinstance(state, Mapping) else data.get("text")
    return said if isinstance(said, str) and not truthy(data.get("ignored")) else None


def _cut(text: str, kept: int, note: str) -> str:
    """Cut a text in the client's own words for an output that it cut."""
    head, tail = kept - kept // 3, kept // 3
    left = len(text[head : len(text) - tail].encode("utf-8", "replace"))
    return f"{text[:head]}\n\n...{left} bytes truncated...\n\n{note}\n\n{text[len(text) - tail :]}"


def _shorter(value: Any, longest: int) -> Any:
    """Return `value` with each long text in it cut; what it is made of stays."""
    if isinstance(value, str):
        if len(value) <= longest:
            return value
        half = longest // 2
        return f"{value[:half]}\n\n...{len(value) - 2 * half} characters truncated...\n\n{value[len(value) - half :]}"
    if isinstance(value, Mapping):
        return {key: _shorter(item, longest) for key, item in value.items()}
    return [_shorter(item, longest) for item in value] if isinstance(value, list) else value
