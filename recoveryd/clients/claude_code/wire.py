"""What Claude Code sends of a transcript: its own blocks, as far as it does not mend them itself. Pure.

Proven block by block against the requests of 2.1.330 (tests/e2e/claude_code/test_wire.py). What the client adds on its
own (reminders, its environment) is left out: no stored line is to blame for that. What it mends only once a request was
refused (thinking, images of its own) is sent here as it is, and `heals` says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from recoveryd.clients.claude_code.edited_lines import MARK
from recoveryd.core import HALF, Block, Json, Kind, Message, Part, Request, Session, Turn, explained_by, kind_info

PROMPT = "continue"  # stands for what the user will type next
_NO_CONTENT = "(no content)"
_SILENT = "No response requested."
_THINKING = ("thinking", "redacted_thinking")
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
_REMOTE = frozenset({"url", "file"})


@dataclass(slots=True)
class _Draft:
    """One message of the request in the making. `answer`: the id of the answer whose lines are one message."""

    role: str
    blocks: list[Block] = field(default_factory=list)
    origins: list[tuple[str, str]] = field(default_factory=list)
    answer: str = ""


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
        drafts = [draft for message in session.messages if (draft := _drafted(message)) is not None]
        drafts = _paired(_grouped(drafts), ended=prompt is not None)
        if prompt is not None:
            silent = bool(drafts) and drafts[-1].role == "user" and session.messages[-1].error is None
            drafts += [_Draft("assistant", [_made(_SILENT, "")], [("", "")])] if silent else []
            drafts.append(prompt)
        return Request(tuple(Turn(d.role, tuple(d.blocks), tuple(d.origins)) for d in drafts))


def mends_itself(kind: Kind, block: Block | None = None) -> bool:
    """Whether Claude Code sends its next request without such a fault, which it mends by itself; `block` None: whatever
    block has it.

    51 broken shapes were tried. Images that are stored, it takes away once they are refused; of what is elsewhere, it
    knows nothing.
    """
    if kind is Kind.MEDIA_REJECTED:
        return block is not None and not any(map(_remote, _sources(block.body)))
    about = kind_info(kind)
    order = kind in explained_by(Kind.THINKING_BLOCK_ORDER)  # pairs of calls and results, thinking, what follows what
    return order or about.signature or about.cleared_by_prompt or kind is Kind.INVALID_UNICODE


def _drafted(message: Message) -> _Draft | None:
    """Make a line as it is sent by itself; None where nothing of it is."""
    if message.error is not None or message.data.get("form") == "none":
        return None
    mine = message.role == "assistant"
    last = message.parts[-1].id if message.parts else ""
    draft = _Draft(
        message.role, [], [(message.id, last)], str(message.data.get("api_id") or message.id) if mine else ""
    )
    if not message.parts:
        if mine:
            draft.blocks = [Block({"type": "text", "text": _NO_CONTENT, "citations": []}, message.id, "")]
            return draft
        return None
    parts = [part for part in message.parts if _readable(part.data)]
    if not parts:
        return None
    if message.data.get("form") == "list":
        spoken = [part for part in parts if not _blank(part.data or {})]
        if not spoken and mine:
            return None
        parts = parts if mine else spoken
    draft.blocks = [_block(part) for part in parts] or [_made(_NO_CONTENT, message.id)]
    return draft


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
        kept = [item for item in content if not (isinstance(item, Mapping) and item.get("type") in dropped)]
        return {**data, "content": kept}
    if content is None or isinstance(content, str):
        return data
    return {**data, "content": json.dumps(content, ensure_ascii=False, separators=(",", ":"))}


def _whole(value: Any) -> Any:
    """Make the request as the client sends it: half a character is replaced."""
    if isinstance(value, str):
        return value if value.isascii() else HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _grouped(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Join the lines of one answer to one message, where its first line stands, if only results stand between them."""
    found: list[_Draft] = []
    for draft in drafts:
        before = _same_answer(found, draft)
        if before is not None:
            before.blocks += draft.blocks
            before.origins += draft.origins
        else:
            found.append(draft)
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
    """Whether an answer never got behind its thinking: then it is not sent."""
    return draft.role == "assistant" and all(block.type in _THINKING for block in draft.blocks)


def _paired(drafts: Sequence[_Draft], *, ended: bool) -> list[_Draft]:
    """Calls with their results, as the client sorts them out: what has no other side is not sent.

    `ended`: a prompt comes behind all of it, so calls at the end were cut off, and the client says so.
    """
    merged = _merged_users(drafts)
    answered = {_key(b.body.get("tool_use_id")) for d in merged for b in d.blocks if b.type == "tool_result"}
    cut_off = [b for b in merged[-1].blocks if b.type == "tool_use"] if ended and merged else []
    if cut_off and merged[-1].role == "assistant":
        merged.append(_Draft("user", [_interrupted(block) for block in cut_off], [(cut_off[-1].message_id, "")]))
        answered |= {_key(block.body.get("id")) for block in cut_off}
    seen: set[str] = set()
    open_calls: set[str] = set()
    for draft in merged:
        if draft.role == "assistant":
            draft.blocks = list(_calls(draft.blocks, answered, seen))
            open_calls = {_key(b.body.get("id")) for b in draft.blocks if b.type == "tool_use"}
            continue
        draft.blocks = list(_results(draft.blocks, open_calls)) or [_made(_NO_CONTENT, draft.origins[0][0])]
    return [draft for draft in merged if draft.blocks]


def _interrupted(call: Block) -> Block:
    """Return what the client says of a call that was cut off."""
    said = {"type": "tool_result", "content": _CUT_OFF, "is_error": True, "tool_use_id": call.body.get("id")}
    return Block(said, call.message_id, "", unfinished=True)


def _calls(blocks: Sequence[Block], answered: set[str], seen: set[str]) -> Iterator[Block]:
    """Put words first, then calls: each id once, and only those that something came back from."""
    ended = {_key(b.body.get("tool_use_id")) for b in blocks if b.type.endswith("_tool_result")}
    calls: list[Block] = []
    for block in blocks:
        name = _key(block.body.get("id"))
        if block.type == "tool_use":
            if name in answered and name not in seen:
                seen.add(name)
                calls.append(block)
        elif not (block.type in ("server_tool_use", "mcp_tool_use") and name not in ended):
            yield block
    yield from calls


def _results(blocks: Sequence[Block], calls: set[str]) -> Iterator[Block]:
    """Put results first, each once, then all else."""
    given: set[str] = set()
    for block in blocks:
        name = _key(block.body.get("tool_use_id"))
        if block.type == "tool_result" and name in calls and name not in given:
            given.add(name)
            yield block
    yield from (block for block in blocks if block.type != "tool_result")


def _key(value: object) -> str:
    """Return an id as the client compares it, whatever it is."""
    return json.dumps(value, sort_keys=True)


def _merged_users(drafts: Sequence[_Draft]) -> list[_Draft]:
    found: list[_Draft] = []
    for draft in drafts:
        if found and found[-1].role == draft.role == "user":
            found[-1].blocks = _seamed(found[-1].blocks, draft.blocks)
            found[-1].origins += draft.origins
        else:
            found.append(draft)
    return found


def _seamed(first: list[Block], then: list[Block]) -> list[Block]:
    """Put a line's end between two texts of different lines."""
    last = first[-1] if first else None
    if last is not None and last.type == "text" and then and then[0].type == "text":
        body = {**last.body, "text": f"{last.body['text']}\n"}
        first = [*first[:-1], Block(body, last.message_id, last.part_id)]
    return [*first, *then]


def _sources(body: Json) -> Iterator[Json]:
    if body.get("type") == "container_upload":
        yield {"type": "file"}
    if body.get("type") in ("image", "document") and isinstance(body.get("source"), Mapping):
        yield body["source"]
    content = body.get("content")
    for item in content if isinstance(content, list) else ():
        if isinstance(item, Mapping):
            yield from _sources(item)


def _remote(source: Json) -> bool:
    return str(source.get("type")) in _REMOTE
