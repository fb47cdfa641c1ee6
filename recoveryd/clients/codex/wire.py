"""What Codex sends of a thread: the Responses input of its next prompt, item by item (measured on 0.169.0). Pure.

An item that lacks what its type must have is passed over there, so it is here; an output without its call goes, and a
call without its output gets one.
An image that it can't use is sent as words; told are those whose first bytes are no image's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from recoveryd.clients.codex.item_forms import AGENT_SAYS, CONFIGURATION, OF_THE_CLIENT, TOOLS, sent_item
from recoveryd.clients.codex.newest_turn import PROTOCOL
from recoveryd.clients.codex.thread import COMPACTED, LAST, META, ROLLED_BACK, about_thread, in_history
from recoveryd.clients.codex.thread_head import is_prompt
from recoveryd.core import Block, Json, Part, Request, Session, Turn, Unsendable

_OUTPUT_OF: Mapping[str, str] = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
}
_CALLS_OF: Mapping[str, frozenset[str]] = {
    output: frozenset(call for call, made in _OUTPUT_OF.items() if made == output) for output in _OUTPUT_OF.values()
}
_MADE: Mapping[str, Json] = {"tool_search_output": {"status": "completed", "execution": "client", "tools": []}}
_TAKES_TOOLS_AS_ITEM = "3000"  # what a turn says of its model, of each such model that 0.169.0 knows, and of no other
_PROMPT = Block({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "continue"}]}, "", "")


@dataclass(frozen=True, slots=True)
class CodexWire:
    """The one way in which Codex sends a thread."""

    protocol = PROTOCOL
    form_name = "responses"

    def build(self, session: Session) -> Request:
        return self._request(session, [_PROMPT])

    def stored(self, session: Session) -> Request:
        return self._request(session, [])

    def _request(self, session: Session, behind: list[Block]) -> Request:
        blocks = [*_instructions(session), *_paired(_replayed(session)), *behind]
        turns = tuple(Turn(_role(block.body), (block,), ((block.message_id, block.part_id),)) for block in blocks)
        return Request(turns, tuple(_unreadable(session)), flat=True)


def _instructions(session: Session) -> Iterable[Block]:
    """Make what the model is told first: kept in the first line, and sent as an item where it is not stored as one."""
    if _told_by_items(session):
        return
    about = about_thread(session)
    if takes_tools_as_item(session):
        yield Block({"type": TOOLS, "role": "developer", "tools": []}, "", "")
    told = about.get("base_instructions")
    text = told.get("text") if isinstance(told, Mapping) else None
    if isinstance(text, str):
        content = [{"type": "input_text", "text": text}]
        yield Block({"type": "message", "role": "developer", "content": content}, "", "")


def takes_tools_as_item(session: Session) -> bool:
    """Whether the model that is asked is given its tools by an item at the begin of each request."""
    return about_thread(session).get("comp_hash") == _TAKES_TOOLS_AS_ITEM


def _told_by_items(session: Session) -> bool:
    """Whether the model that is asked has its tools and, behind them, first words as stored items (0.169.0: GPT-5.6 and
    later), with no switch to another one behind them. Tools alone are an update of those.
    """
    items = [(part.type, _told_to_model(part.data or {})) for part in _in_order(session)]
    newest = False
    for (kind, told), (_, following) in pairwise([*items, ("", "")]):
        newest = newest or bool(following) if kind == TOOLS else newest and not told.startswith("<model_switch>")
    return newest


def _configures(session: Session) -> bool:
    """Whether the model that is asked is the one that was last told its configuration by an item: with a model that is
    not (0.169.0: all before GPT-6.1, and most providers), no such item is sent.
    """
    about = about_thread(session)
    return bool(about.get("configured") == about.get("model"))


def _told_to_model(body: Json) -> str:
    content = body.get("content") if body.get("role") == "developer" else None
    first = content[0] if isinstance(content, list) and content else None
    return str(first.get("text")) if isinstance(first, Mapping) else ""


def _in_order(session: Session) -> list[Part]:
    return sorted((part for message in session.messages for part in message.parts), key=lambda part: part.id)


def _replayed(session: Session) -> list[Block]:
    """List the items in the order of the file, as the last compaction and what was rolled back leave them."""
    found: list[Block] = []
    unsent = (LAST,) if _configures(session) else (LAST, CONFIGURATION)
    for part in _in_order(session):
        if part.type == COMPACTED:
            found = [] if (part.data or {}).get("replaces") else _summed_up(found, part)
        elif part.type == ROLLED_BACK:
            found = _rolled_back(found, (part.data or {}).get("num_turns"))
        elif part.type not in unsent and (body := sent_item(part.data, in_history=in_history(part.id))) is not None:
            found.append(Block(body, part.message_id, part.id))
    return found


def _paired(blocks: list[Block]) -> list[Block]:
    """Pair each output with a call before it, and each call with an output."""
    called: dict[str, set[object]] = {}
    answered: dict[str, set[object]] = {}
    for block in blocks:
        (answered if block.type in _CALLS_OF else called).setdefault(block.type, set()).add(block.body.get("call_id"))
    found: list[Block] = []
    for block in blocks:
        own = block.body.get("call_id")
        calls = _CALLS_OF.get(block.type, ())
        if calls and own is not None and not any(own in called.get(call, ()) for call in calls):
            continue
        found.append(block)
        output = _OUTPUT_OF.get(block.type)
        if output is not None and isinstance(own, str) and own not in answered.get(output, ()):
            made = {"type": output, "call_id": own, **_MADE.get(output, {"output": "aborted"})}
            found.append(Block(made, block.message_id, "", unfinished=True))
    return found


def _summed_up(blocks: list[Block], part: Part) -> list[Block]:
    """Return what the client makes of a compaction of an older one: the words of the user, and a summary."""
    kept = [replace(block, body=_words_alone(block.body)) for block in blocks if is_prompt(block.body)]
    said = (part.data or {}).get("message")
    content = [{"type": "input_text", "text": said if said and isinstance(said, str) else "(no summary available)"}]
    body = {"type": "message", "role": "user", "content": content}
    return [*kept, Block(body, part.message_id, "", carriers=((part.message_id, part.id),))]


def _words_alone(body: Json) -> Json:
    return {**body, "content": [one for one in body["content"] if one["type"] != "input_image"]}


def _rolled_back(blocks: list[Block], turns: object) -> list[Block]:
    left = turns if isinstance(turns, int) and turns > 0 else 0
    kept = list(blocks)
    while left and kept:
        left -= is_prompt(kept.pop().body)
    return kept


def _role(body: Json) -> str:
    if body["type"] == "message":
        return str(body.get("role"))
    if body["type"] in OF_THE_CLIENT:
        return "developer"
    given = str(body["type"]).endswith("_output") or body["type"] == AGENT_SAYS  # to the model, and not by it
    return "tool" if given else "assistant"


def _unreadable(session: Session) -> Iterable[Unsendable]:
    """List the lines because of which the client does not open the thread."""
    for message in session.messages:
        for part in message.parts:
            fault = (part.data or {}).get("fault") if part.type in (META, LAST) else None
            if fault:
                yield Unsendable(message.id, part.id, str(fault), "not_json")
