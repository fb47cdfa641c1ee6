"""What Claude Code sends of a transcript: its own blocks, as far as it does not mend them itself. Pure.

Proven block by block against the requests of 2.1.330 (tests/e2e/claude_code/test_wire.py). What the client adds on its
own (reminders, its environment) is left out: no stored line is to blame for that; places count it (`padded`). What it
mends only once a request was refused (thinking, images of its own) is sent here as it is, and `heals` says which;
behind a refusal that is recorded, images are not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, ClassVar

from recoveryd.clients.claude_code.answer_blocks import THINKING, answered, calls_last, kept_calls, key
from recoveryd.clients.claude_code.attachment import in_sent_order
from recoveryd.clients.claude_code.edited_lines import MARK
from recoveryd.clients.claude_code.refused_media import without_refused
from recoveryd.clients.claude_code.transcript import model_of
from recoveryd.core import HALF, Block, Json, Message, Part, Request, Session, Turn

PROMPT = "continue"  # stands for what the user will type next
_NO_CONTENT = "(no content)"
_SILENT = "No response requested."
_ORPHANED = "[Orphaned tool result removed due to conversation resume]"  # where nothing is sent before it
_CALL_ENDED = "[Tool use interrupted]"  # of an answer that has nothing left to send
_MISSING = "[Tool result missing due to internal error]"
_TOOLS_GONE = "[Tool references removed - tools no longer available]"  # in a result that had nothing else
_EMPTY_TEXT = "[Empty text removed]"
_LONGEST_NAME = 200
_FALLBACK = "fallback"  # tells that another model answered; it is not sent
_CUT_OFF = (
    "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. "
    "Check whether it took effect before relying on it or running it again.]"
)
_CITED = frozenset(
    {
        "char_location",
        "page_location",
        "content_block_location",
        "web_search_result_location",
        "search_result_location",
    }
)


@dataclass(slots=True)
class _Draft:
    """One message of the request in the making. `answer`: the id of the answer whose lines are one message. `command`:
    it only tells what a command of the user's gave. `hollow`: a line of it holds no block. `attached`: it stands behind
    words of the client's. `blank`: it is a line of an answer that holds nothing but white space.
    """

    role: str
    blocks: list[Block] = field(default_factory=list)
    origins: list[tuple[str, str]] = field(default_factory=list)
    answer: str = ""
    command: bool = False
    hollow: bool = False
    attached: bool = False
    blank: bool = False


@dataclass(frozen=True, slots=True)
class ClaudeCodeWire:
    """The `Wire` of Claude Code to the Messages API."""

    protocol: ClassVar[str] = "anthropic.messages"
    form_name: ClassVar[str] = "claude_code"

    def build(self, session: Session) -> Request:
        """A prompt of the user's is answered first, if nobody did."""
        return self._built(session, _Draft("user", [_made(PROMPT, "")], [("", "")]))

    def stored(self, session: Session) -> Request:
        return self._built(session, None)

    def _built(self, session: Session, prompt: _Draft | None) -> Request:
        messages = without_refused(in_sent_order(session.messages, model_of(session)), session)
        drafts = list(_without_blank([draft for message in messages if (draft := _drafted(message)) is not None]))
        last = next((message for message in reversed(session.messages) if not message.data.get("command")), None)
        goes_on = prompt is not None and last is not None and last.error is None
        newest = _cut_off(session, drafts) if goes_on else []
        pending = _unresolved(newest)
        answer = next((draft.answer for draft in newest if draft.role == "assistant"), "")
        cut_off = pending & _unresolved(draft for draft in newest if draft.answer == answer)
        drafts = _grouped(_without_lost(drafts, _unresolved(drafts) - pending))
        if goes_on:
            drafts = _with_silence(drafts, cut_off)
        asked = [prompt] if prompt is not None else []
        if drafts and drafts[-1].command:  # it becomes one message with the prompt
            drafts, asked = [*drafts, *asked], []
        drafts = [*_paired(drafts, cut_off), *asked]
        return Request(tuple(Turn(d.role, tuple(d.blocks), tuple(d.origins)) for d in drafts), padded=True)


def _drafted(message: Message) -> _Draft | None:
    """Make a line as it is sent by itself; None where nothing of it is."""
    if message.error is not None or message.data.get("form") == "none":
        return None
    mine = message.role == "assistant"
    last = message.parts[-1].id if message.parts else ""
    answer = str(message.data.get("api_id") or message.id) if mine else ""
    draft = _Draft(message.role, [], [(message.id, last)], answer, bool(message.data.get("command")))
    draft.attached = bool(message.data.get("attached"))
    if not message.parts:
        draft.hollow = True
        return draft if mine else None
    parts = [part for part in message.parts if _readable(part.data)]
    if not parts:
        return None
    if message.data.get("form") == "list":
        spoken = [part for part in parts if not _blank(part.data or {})]
        draft.blank = not spoken and mine
        parts = parts if mine else spoken
    draft.blocks = [_block(part) for part in parts] or [_made(_NO_CONTENT, message.id)]
    return draft


def _without_blank(drafts: Sequence[_Draft]) -> Iterator[_Draft]:
    """Leave out each line of an answer that is blank, but right between two of its thinking: there it is sent, or words
    in the place of a text of nothing.
    """
    for at, draft in enumerate(drafts):
        if draft.blank:
            around = [
                block for one in drafts[max(at - 1, 0) : at + 2] if one.answer == draft.answer for block in one.blocks
            ]
            if [block.type in THINKING for block in around] != [True, False, True]:
                continue
            if not draft.blocks[0].body["text"]:
                draft.blocks = [answered(_EMPTY_TEXT, draft.origins[0][0])]
        yield draft


def _made(words: str, message: str) -> Block:
    """Make a text that the client makes up."""
    return Block({"type": "text", "text": words}, message, "")


def _readable(data: Json | None) -> bool:
    """Whether the client takes it for a block that it sends at all."""
    if data is None or not isinstance(data.get("type"), str) or data["type"] == _FALLBACK:
        return False
    return data["type"] != "text" or isinstance(data.get("text"), str)


def _blank(data: Json) -> bool:
    return data["type"] == "text" and not data["text"].strip()


def _block(part: Part) -> Block:
    data = {name: value for name, value in _whole(part.data).items() if name != MARK}
    if isinstance(data.get("citations"), list) and data["type"] == "text":
        cited = [
            one
            for one in data["citations"]
            if isinstance(one, Mapping) and str(one.get("type")) in _CITED and "cited_text" in one
        ]
        data = {**data, "citations": cited}
    if data["type"] == "tool_result":
        data = _result(data)
    if data["type"] == "tool_use" and isinstance(data.get("name"), str):
        data = {**data, "name": data["name"][:_LONGEST_NAME]}
    return Block(data, part.message_id, part.id)


def _result(data: dict[str, Any]) -> dict[str, Any]:
    content = data.get("content")
    if isinstance(content, list):
        dropped = {"tool_reference", "image"} if data.get("is_error") else {"tool_reference"}
        kept = [item for item in content if _type(item) not in dropped]
        gone = [{"type": "text", "text": _TOOLS_GONE}] if "tool_reference" in map(_type, content) else []
        return {**data, "content": kept or gone}
    if content is None or isinstance(content, str):
        return data
    return {**data, "content": json.dumps(content, ensure_ascii=False, separators=(",", ":"))}


def _type(item: object) -> str:
    return str(item.get("type")) if isinstance(item, Mapping) else ""


def _whole(value: Any) -> Any:
    """Make the request as the client sends it: half a character is replaced."""
    if isinstance(value, str):
        return value if value.isascii() else HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _grouped(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Join the lines of one answer to one message, where its first line stands, if only results stand between them.

    One that never got behind its thinking is not sent; where a line of it is hollow, words of the client's are.
    """
    found: list[_Draft] = []
    for draft in drafts:
        before = _same_answer(found, draft)
        if before is not None:
            before.blocks = calls_last([*before.blocks, *draft.blocks])
            before.origins += draft.origins
            before.hollow |= draft.hollow
        else:
            draft.blocks = calls_last(draft.blocks)
            found.append(draft)
    for draft in found:
        if draft.hollow and _thought_only(draft):
            draft.blocks = [answered(_NO_CONTENT, draft.origins[0][0])]
    return [draft for draft in found if not _thought_only(draft)]


def _same_answer(found: Sequence[_Draft], draft: _Draft) -> _Draft | None:
    if draft.role != "assistant":
        return None
    for before in reversed(found):
        if before.answer == draft.answer:
            return before
        if before.role == "assistant" or not all(block.type == "tool_result" for block in before.blocks):
            return None
    return None


def _thought_only(draft: _Draft) -> bool:
    """Whether an answer never got behind its thinking, and blank lines."""
    said = [block for block in draft.blocks if block.type not in THINKING]
    if len(said) < len(draft.blocks):
        lines = Counter(block.message_id for block in draft.blocks)
        said = [block for block in said if lines[block.message_id] > 1 or not _blank(block.body)]
    return draft.role == "assistant" and not said


def _unresolved(drafts: Iterable[_Draft]) -> set[str]:
    """List the calls that nothing came back from, by their ids."""
    drafts = list(drafts)
    given = {key(block.body.get("tool_use_id")) for draft in drafts for block in _of("tool_result", draft)}
    return {key(block.body.get("id")) for draft in drafts for block in _of("tool_use", draft)} - given


def _cut_off(session: Session, drafts: Sequence[_Draft]) -> list[_Draft]:
    """List the lines that a session ends with, the newest first, as far as they are answers with calls, and results."""
    behind = {message.id for message in takewhile(lambda one: one.error is None, reversed(session.messages))}
    calling = {draft.answer for draft in drafts if _of("tool_use", draft)}
    lines = (draft for draft in reversed(drafts) if not draft.command)
    return [
        draft
        for draft in takewhile(lambda one: one.answer in calling or bool(_of("tool_result", one)), lines)
        if draft.origins[0][0] in behind
    ]


def _with_silence(drafts: list[_Draft], cut_off: set[str]) -> list[_Draft]:
    """Put what the client says in the place of an answer behind a prompt, or calls, that nothing came of."""
    commands = list(takewhile(lambda draft: draft.command, reversed(drafts)))[::-1]
    before = drafts[: len(drafts) - len(commands)]
    silence = _Draft("assistant", [_made(_SILENT, "")], [("", "")])
    if cut_off:
        return [*drafts, silence]
    return [*before, silence, *commands] if before and before[-1].role == "user" else drafts


def _without_lost(drafts: Iterable[_Draft], lost: set[str]) -> Iterator[_Draft]:
    """Leave out each line that called tools, and got nothing back from any of them."""
    for draft in drafts:
        calls = [key(block.body.get("id")) for block in _of("tool_use", draft)]
        if not calls or not lost.issuperset(calls):
            yield draft


def _paired(drafts: Iterable[_Draft], cut_off: set[str]) -> list[_Draft]:
    """Sort out calls and results as the client does: a result without a call is not sent, and of a call that has no
    result behind it the client says so. `cut_off`: the calls that the session ended with.
    """
    seen: set[str] = set()
    calls: list[Block] = []
    found: list[_Draft] = []
    for draft in [*_merged_users(drafts), _Draft("", [])]:
        if calls and draft.role != "user":
            found.append(_Draft("user", _results((), calls, cut_off), [(calls[-1].message_id, "")]))
            calls = []
        if draft.role == "assistant":
            draft.blocks = list(kept_calls(draft.blocks, seen)) or [answered(_CALL_ENDED, draft.origins[0][0])]
            calls = _of("tool_use", draft)
        elif draft.role == "user":
            draft.blocks = _results(draft.blocks, calls, cut_off)
            draft.blocks = draft.blocks or [_made(_NO_CONTENT if found else _ORPHANED, draft.origins[0][0])]
            calls = []
        found.append(draft)
    return found[:-1]


def _of(kind: str, draft: _Draft) -> list[Block]:
    return [block for block in draft.blocks if block.type == kind]


def _results(blocks: Sequence[Block], calls: Sequence[Block], cut_off: set[str]) -> list[Block]:
    """Put the results of `calls` first, each once, then all else; what has none gets one that says so."""
    given: dict[str, Block] = {}
    for block in blocks:
        if block.type == "tool_result":
            given.setdefault(key(block.body.get("tool_use_id")), block)
    names = {key(call.body.get("id")): call for call in calls}
    none = [call for name, call in names.items() if name not in given]
    missing = [_made_up(call, _MISSING) for call in none if key(call.body.get("id")) not in cut_off]
    ended = [_made_up(call, _CUT_OFF) for call in none if key(call.body.get("id")) in cut_off]
    own = [block for name, block in given.items() if name in names]
    return [*missing, *own, *ended, *(block for block in blocks if block.type != "tool_result")]


def _made_up(call: Block, words: str) -> Block:
    """Return what the client says of a call that nothing came back from."""
    said = {"type": "tool_result", "content": words, "is_error": True, "tool_use_id": call.body.get("id")}
    return Block(said, call.message_id, "", unfinished=True)


def _merged_users(drafts: Iterable[_Draft]) -> list[_Draft]:
    found: list[_Draft] = []
    for draft in drafts:
        if found and found[-1].role == draft.role == "user":
            found[-1].blocks = _seamed(found[-1].blocks, draft.blocks, worded=draft.attached)
            found[-1].origins += draft.origins
        else:
            found.append(draft)
    return found


def _seamed(first: list[Block], then: list[Block], *, worded: bool) -> list[Block]:
    """Put a line's end between two texts of different lines."""
    last = first[-1] if first else None
    if last is not None and last.type == "text" and then and (worded or then[0].type == "text"):
        body = {**last.body, "text": f"{last.body['text']}\n"}
        first = [*first[:-1], Block(body, last.message_id, last.part_id)]
    return [*first, *then]
