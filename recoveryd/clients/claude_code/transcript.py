"""A transcript as Claude Code reads it: lines of JSON, of which the chain of parents is the conversation. Pure.

Measured on 2.1.330 (tests/e2e/claude_code/test_wire.py). A line is `user`, `assistant`, `system` or `attachment`, and
names the line before it; all others say something about the session. What no leaf leads to was given up by its user.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from recoveryd.clients import javascript
from recoveryd.clients.claude_code.transcript_line import CHAINED, COMPACTED, SENT, Line, model_asked, text_of
from recoveryd.core import Json, Message, Part, Session, StoreError, clean

MAX_SESSION = 256 * 1024 * 1024  # bytes that the lines of a conversation may take in memory, about
_TITLE = 60  # characters
_LARGE = 1 << 20
_NAMED = 24  # characters of its id by which a line is taken back: the client's ids of its blocks begin so
_NEAR_MS = 5_000  # a line whose parent is not there belongs to the one before it, if that is no older
_SENT_OUT = b'{"type":"api-request'  # what was sent, for the client's own eyes: most of a large file
REQUEST = _SENT_OUT + b'",'  # of it, the lines that name the model
_FORKED = b'{"type":"fork-context-ref"'
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Transcript:
    """The lines of a file: those of conversations by their ids, and the leaf that the client noted last. `ends_there`:
    its user went back to that leaf (None: to before the first line), and has not gone on since. `asked`: the model of
    the newest request, where none answered behind it.
    """

    lines: Mapping[str, Line]
    leaf: str | None
    title: str = ""
    directory: str = ""
    ends_there: bool = False
    asked: str = ""

    @property
    def sidechain(self) -> bool:
        """Whether it is a subagent's own."""
        return bool(self.lines) and all(line.side for line in self.lines.values())


def read(raw: Iterable[bytes], path: str = "", most: int = MAX_SESSION) -> Transcript:
    """Read a transcript from its file's lines, without their newlines. A line that is no JSON object is passed over, as
    the client does.

    Of several lines with one id the last one counts, in the place of the first. StoreError: a line is nested so deeply
    that only the client can read it, or the lines would take more than `most` bytes of memory.
    """
    lines: dict[str, Line] = {}
    leaf: str | None = None
    ends_there = False
    titles: dict[str, str] = {}
    directory, weight, request = "", 0, b""
    for number, text in enumerate(raw):
        request = text if text.startswith(REQUEST) else request
        data = _object(text, number, path)
        if data is None:
            continue
        kind, uuid = text_of(data, "type"), data.get("uuid")
        if kind in CHAINED and isinstance(uuid, str) and uuid:
            weight += javascript.weight_in_memory(text) if len(text) > _LARGE else len(text)
            if weight > most:
                raise StoreError(f"{path} is too large: its conversation may take {most:,} bytes of memory.")
            place = lines[uuid].number if uuid in lines else number
            lines[uuid] = Line(uuid, data, text, place, text_of(data, "parentUuid"))
            directory = directory or text_of(data, "cwd")
            ends_there = ends_there and data.get("isSidechain") is True
            request = b"" if lines[uuid].model else text if model_asked(data) else request
        elif kind == "last-prompt":
            chosen, before = data.get("explicit") is True, leaf
            leaf = text_of(data, "leafUuid") or (None if chosen else leaf)
            ends_there = chosen or (ends_there and leaf == before)
        else:
            titles.update(_title(data))
    title = next((titles[key] for key in ("custom-title", "ai-title", "summary") if key in titles), "")
    asked = model_asked(parse(request) or {})
    return Transcript(lines, leaf, title or _asked(lines.values()), directory, ends_there, asked)


def _asked(lines: Iterable[Line]) -> str:
    """Return what the user asked first: most sessions have no title."""
    asked = (line.said for line in lines if line.type == "user" and line.own_words)
    return next((clean(said, _TITLE) for said in asked if said.strip()), "")


def _object(text: bytes, number: int, path: str) -> dict[str, Any] | None:
    """Read a line that may be of a conversation; a byte order mark may stand before the first one of a file alone."""
    if text.startswith(_SENT_OUT) or (number and text.startswith(_MARK)):
        return None
    try:
        data = javascript.parse_json(text)
    except ValueError:
        return None
    except RecursionError:
        if not text.lstrip().startswith(b"{"):
            return None
        raise StoreError(f"Line {number + 1} of {path} is nested too deeply to be read; it is left alone.") from None
    return data if isinstance(data, dict) else None


def parse(raw: bytes) -> dict[str, Any] | None:
    """Read a transcript's line as Claude Code does; None for what is no JSON object, or nested too deeply."""
    try:
        data = javascript.parse_json(raw)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def chain(found: Transcript) -> list[Line]:
    """List the lines of the conversation that Claude Code goes on with, the first one first.

    From the newest leaf back. A parent that is not there, or was passed already, is the nearest line before in the file
    that is at most five seconds older. Beside the chain belong the other lines of an answer that is in it, and what
    came back from their calls.
    """
    found = replace(found, lines=_as_compacted(found.lines))
    order = [line for line in found.lines.values() if found.sidechain or not line.side]
    place = {line.uuid: index for index, line in enumerate(order)}
    way: list[Line] = []
    seen: set[str] = set()
    at = _leaf(found, order)
    while at is not None and at.uuid not in seen:
        seen.add(at.uuid)
        way.append(at)
        at = _parent(at, found, order, place, seen)
    return _without_retracted(_with_siblings(way[::-1], order))


def _without_retracted(lines: Sequence[Line]) -> list[Line]:
    """Leave out what the client took back: an answer that a safeguard stopped, or whose call could not be parsed."""
    gone = {uuid[:_NAMED] for line in lines for uuid in line.retracted}
    return [line for line in lines if line.type == "system" or line.uuid[:_NAMED] not in gone]


def _as_compacted(lines: Mapping[str, Line]) -> Mapping[str, Line]:
    """Put the lines that the last compaction kept behind the line that it names for that, and leave out all else that
    stands before it. Nothing is moved where a line that it kept is not there, or no compaction kept any.
    """
    ends = [line for line in lines.values() if line.data.get("subtype") == COMPACTED]
    told = [meta for line in ends if isinstance(meta := line.data.get("compactMetadata"), Mapping)]
    if not any(meta.get("preservedMessages") or meta.get("preservedSegment") for meta in told):
        return lines
    anchor, kept = _kept(ends[-1], lines)
    if kept is None or any(uuid not in lines for uuid in kept):
        return lines
    order = list(lines)
    gone = set(order[: order.index(ends[-1].uuid)]) - set(kept)
    parents = dict(zip(kept, (anchor, *kept), strict=False))
    order = [uuid for uuid in order if uuid not in gone and uuid not in parents]
    at = order.index(anchor) + 1 if anchor in order else 0
    order[at:at] = kept
    found: dict[str, Line] = {}
    for number, uuid in enumerate(order):
        line = lines[uuid]
        behind = bool(kept) and (line.parent == anchor or (line.type in SENT and line.parent in gone))
        found[uuid] = replace(line, number=number, parent=parents.get(uuid, kept[-1] if behind else line.parent))
    return found


def _kept(end: Line, lines: Mapping[str, Line]) -> tuple[str, list[str] | None]:
    """Return behind which line those stand that a compaction kept, and their ids; None where they can't be told."""
    told = end.data.get("compactMetadata")
    listed = told.get("preservedMessages") if isinstance(told, Mapping) else None
    if isinstance(listed, Mapping) and isinstance(listed.get("uuids"), list):
        return text_of(listed, "anchorUuid"), [uuid for uuid in listed["uuids"] if isinstance(uuid, str)]
    piece = told.get("preservedSegment") if isinstance(told, Mapping) else None
    if not isinstance(piece, Mapping):
        return "", []
    found: list[str] = []
    at = lines.get(text_of(piece, "tailUuid"))
    while at is not None and at.uuid not in found:
        found.append(at.uuid)
        if at.uuid == piece.get("headUuid"):
            return text_of(piece, "anchorUuid"), found[::-1]
        at = lines.get(at.parent)
    return "", None


def _leaf(found: Transcript, order: Sequence[Line]) -> Line | None:
    """Find the leaf that its user chose, or that was noted since the last compaction; the newest line where that comes
    behind it, or none was.
    """
    last = order[-1] if order else None
    noted = found.lines.get(found.leaf or "")
    if found.ends_there and (noted is not None or found.leaf is None):
        return noted
    compacted = max((line.number for line in order if line.data.get("subtype") == COMPACTED), default=-1)
    noted = noted if noted is not None and noted.number > compacted else None
    at, seen = last, set[str]()
    while noted is not None and at is not None and at.uuid not in seen:
        if at is noted:
            return last
        seen.add(at.uuid)
        at = found.lines.get(at.parent)
    return noted or last


def _parent(
    line: Line, found: Transcript, order: Sequence[Line], place: Mapping[str, int], seen: Collection[str]
) -> Line | None:
    if not line.parent or line.data.get("subtype") == COMPACTED:
        return None
    known = found.lines.get(line.parent)
    if known is not None and line.parent not in seen:
        return known
    at = place.get(line.uuid, 0)
    before = (order[index] for index in range(at - 1, -1, -1))
    return next((one for one in before if 0 <= line.ms - one.ms <= _NEAR_MS), None)


def _with_siblings(way: Sequence[Line], order: Sequence[Line]) -> list[Line]:
    """Return the chain, and what was answered in parallel to it: lines of the same answer, and the results of their
    calls.
    """
    chosen = {line.uuid for line in way}
    answers = {text_of(line.message, "id") for line in way if line.type == "assistant"} - {""}
    first = min((line.number for line in way), default=0)
    beside = [
        line
        for line in order
        if line.uuid not in chosen and line.number > first and text_of(line.message, "id") in answers
    ]
    called = {line.uuid for line in (*way, *beside) if line.type == "assistant"}
    calls = {name for line in (*way, *beside) for name in line.ids("tool_use", "id")}
    beside += [
        line
        for line in order
        if line.uuid not in chosen
        and line.answers
        and (line.parent in called or not calls.isdisjoint(line.ids("tool_result", "tool_use_id")))
    ]
    return sorted({line.uuid: line for line in (*way, *beside)}.values(), key=lambda line: line.number)


def session(store: str, name: str, found: Transcript, parent: str | None) -> Session:
    """Make a session of a transcript's conversation: a message for each line, a part for each block. Times never stand
    still.
    """
    messages: list[Message] = []
    at, prompt = 0, ""
    unsent: list[str] = []
    for line in chain(found):
        if not (line.type in SENT or line.command or line.attached):
            unsent += [line.type] if line.type != "progress" else []
            continue
        at = max(line.ms, at + 1)
        if line.type not in ("assistant", "attachment") and not line.answers:
            prompt = line.uuid
        message = _message(line, at, prompt, len(messages))
        messages.append(replace(message, data={**message.data, "behind": unsent}) if unsent else message)
        unsent = []
    if messages and found.asked:
        messages[-1] = replace(messages[-1], data={**messages[-1].data, "asked": found.asked})
    return Session(store, name, tuple(messages), found.title, found.directory, parent)


def _message(line: Line, at: int, prompt: str, number: int) -> Message:
    """Make the message of a line; `data` says what all clients' messages say, and whose line it is; the line itself is
    `raw`.
    """
    mine = line.type == "assistant"
    said: dict[str, Any] = {"role": "assistant" if mine else "user", "time": {"created": at}}
    if mine:
        said |= {"parentID": prompt, "api_id": text_of(line.message, "id"), "time": {"created": at, "completed": at}}
        said |= {"modelID": line.model, "renamed": not line.by_own_name} if line.model else {}
        said |= {"made_up": True} if line.made_up else {}
        if line.refused:
            said["error"] = dict(line.data)
    content = line.content
    said |= {"command": True} if line.command else {}
    said |= {"attached": True} if line.attached else {}
    said |= {"waited": True} if line.waited else {}
    said |= {"added": True} if not mine and not line.prompts else {}
    said |= {"meta": True} if line.data.get("isMeta") is True else {}
    said |= {"call_line": line.call_line} if line.call_line else {}
    said["form"] = "text" if isinstance(content, str) else "list" if isinstance(content, (list, dict)) else "none"
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    placed = blocks.items() if isinstance(blocks, dict) else enumerate(blocks if isinstance(blocks, list) else ())
    parts = tuple(
        Part(part_id(line.uuid, place), line.uuid, block if isinstance(block, dict) else None)
        for place, block in placed
    )
    return Message(line.uuid, said, parts, line.raw, number + 1)


def model_of(session: Session) -> str:
    """Return the model that the next prompt asks; "" where that is not known."""
    answer = next((m.data for m in reversed(session.messages) if "modelID" in m.data), {})
    newest = session.newest
    asked = "" if newest is None or answer.get("renamed") else newest.data.get("asked")  # as `session_status` has it
    return str(asked or answer.get("modelID", ""))


def part_id(uuid: str, index: int) -> str:
    """Make the id of a block of a transcript: its line, and its place in that."""
    return f"{uuid}.{index:05d}"


def place_of(part: str) -> int:
    """Return the place of a block in its line, by its id."""
    return int(part.rpartition(".")[2])


def is_title(raw: bytes) -> bool:
    """Whether a line tells the title of its session."""
    data = parse(raw)
    return data is not None and any(_title(data))


def is_forked(head: bytes) -> bool:
    """Whether a subagent's transcript that begins so is sent behind its parent's lines (2.1.330: `/subtask`), which
    stand in the parent's transcript alone.
    """
    return head.startswith(_FORKED)


def _title(data: Json) -> Iterable[tuple[str, str]]:
    kind = data.get("type")
    for name, key in (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary")):
        if kind == name and text_of(data, key):
            yield name, text_of(data, key)
