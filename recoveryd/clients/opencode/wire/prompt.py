"""What OpenCode hands to a provider's SDK: model messages, each piece with the stored part that it comes from.

The same for every SDK, but for where a tool's images go; what an SDK makes of them is the matter of its own module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from recoveryd.clients.javascript import javascript_json
from recoveryd.clients.opencode.wire.form import Form
from recoveryd.clients.opencode.wire.history import left_out
from recoveryd.clients.opencode.wire.media import CannotSend, attachment, file, is_picture_or_pdf
from recoveryd.core import HALF, Json, Message, Part

# What JavaScript's trim() takes away, which is not what str.strip() does.
JS_SPACE = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_ILLEGAL_ID = re.compile(r"[^a-zA-Z0-9_-]")
_NO_LETTER = re.compile(r"[^a-zA-Z0-9]")
_CLEARED = "[Old tool result content cleared]"
_INTERRUPTED = "[Tool execution was interrupted]"
ENVIRONMENT = "<environment_details>"  # how the text begins that Kilo puts behind each prompt; the rest changes

Origin = tuple[str, str]


@dataclass(slots=True)  # not frozen, as the next: of a long session there are 100,000, and that takes thrice as long
class Piece:
    """One piece of a model message of OpenCode's prompt.

    `body` by `kind`: text and reasoning `{"text"}`; call `{"id", "name", "input"?}`; result `{"id", "name", "content"}`
    with a text or a list of texts and files, and `is_error`; file as in `media.file`. `marks` is what the provider had
    stored beside it, by the name of its SDK; None where it had nothing, or another model wrote it.
    """

    kind: str
    body: Json
    part: Part
    marks: Json | None = None
    unfinished: bool = False  # a result that the client makes up, for a call that never ended
    executed: bool = False  # by the provider: call and result stay in the answer

    def marks_of(self, sdk: str) -> Json:
        """Return what the SDK of this name finds beside the piece."""
        found = self.marks.get(sdk) if self.marks else None
        return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Said:
    """One model message of OpenCode's prompt: its role is user, assistant or tool; `origin` names the message and the
    end of its step.
    """

    role: str
    pieces: tuple[Piece, ...]
    origin: Origin


@dataclass(frozen=True)
class AskedModel:
    """Which model OpenCode's prompt is written for: provider and model, how that `called` it, and in which form of the
    client. `in_results` tells whether a tool's result may hold a type.
    """

    provider: str
    model: str
    called: str
    form: Form
    in_results: Callable[[str], bool]
    reads: frozenset[str] = frozenset({"image", "pdf"})

    @cached_property
    def mends_for_mistral(self) -> bool:
        """As `Form` has it."""
        return self.form.mends_for_mistral(self.provider, self.called)


Fail = Callable[[Part, CannotSend], object]


def model_messages(message: Message, asked: AskedModel, fail: Fail) -> Iterator[Said]:
    """Make the model messages that OpenCode prompts with of one stored message; `fail` is called for each part that the
    client can't send.
    """
    if left_out(message):
        return
    yield from (_user if message.role == "user" else _assistant)(message, asked, fail)


def _user(message: Message, asked: AskedModel, fail: Fail) -> Iterator[Said]:
    pieces = []
    for part in message.parts:
        try:
            piece = _of_user(part, asked)
        except CannotSend as error:
            fail(part, error)
            continue
        if piece is not None:
            pieces.append(piece)
    if not (asked.form.bare_prompts or any(_tells_environment(part.data or {}) for part in message.parts)):
        pieces.append(Piece("text", {"text": ENVIRONMENT}, Part("", "", None)))
    if pieces:
        shown = tuple(piece for piece in pieces if piece.kind != "text" or piece.body["text"] != "")
        if shown or not asked.form.drops_empty_prompts:
            yield Said("user", shown, (message.id, message.parts[-1].id if message.parts else ""))


def _tells_environment(data: Json) -> bool:
    """Whether Kilo takes a stored text for its own, and puts none behind the prompt."""
    said = data.get("text") if data.get("type") == "text" and data.get("synthetic") else None
    return isinstance(said, str) and said.lstrip(JS_SPACE).startswith(ENVIRONMENT)


def _of_user(part: Part, asked: AskedModel) -> Piece | None:
    data = part.data or {}
    match part.type:
        case "text" if not data.get("ignored"):
            return Piece("text", _text(data, asked.form), part)
        case "file" if data.get("mime") not in ("text/plain", "application/x-directory"):
            body = file(data, asked.reads)
            return Piece(body["type"], body, part)
        case "compaction":
            return Piece("text", {"text": "What did we do so far?"}, part)
        case "subtask":
            return Piece("text", {"text": "The following tool was executed by the user"}, part)
    return None


@dataclass(slots=True)
class _Step:
    """What a step of an answer becomes: the answer itself, and the results of its calls."""

    answer: list[Piece] = field(default_factory=list)
    results: list[Piece] = field(default_factory=list)
    files: list[Piece] = field(default_factory=list)  # of tools, for an SDK whose results can't hold them
    spoken: bool = False  # the client makes a message of it, also where all pieces of it vanish


def _assistant(message: Message, asked: AskedModel, fail: Fail) -> Iterator[Said]:
    data, form = message.data, asked.form
    foreign = (data.get("providerID"), data.get("modelID")) != (asked.provider, asked.model)
    files: list[Piece] = []
    for parts in steps(message.parts):
        step, origin = _Step(), (message.id, parts[-1].id)
        for part in parts:
            try:
                _of_assistant(part, step, asked, foreign, message)
            except CannotSend as error:
                fail(part, error)
        if step.spoken:
            yield Said("assistant", tuple(step.answer), origin)
        if step.results:
            yield Said("tool", tuple(step.results), origin)
        files += step.files
    if files:
        words = Piece("text", {"text": form.attached}, Part("", "", None))
        yield Said("user", (words, *files), ("", ""))


def _for_empty(message: Message, form: Form) -> str:
    """Return what is sent for an empty text: a blank where there is thinking that Anthropic signed."""
    return " " if form.spaces_empty_text and any(map(_signed, message.parts)) else ""


def _signed(part: Part) -> bool:
    if part.type != "reasoning":
        return False
    metadata = (part.data or {}).get("metadata")
    anthropic = metadata.get("anthropic") if isinstance(metadata, dict) else None
    return isinstance(anthropic, dict) and anthropic.get("signature") is not None


def _of_assistant(part: Part, step: _Step, asked: AskedModel, foreign: bool, message: Message) -> None:
    data, kind = part.data or {}, part.type
    if kind not in ("text", "reasoning", "tool") or (kind == "text" and _tells_progress(data)):
        return
    if kind == "text" and data.get("ignored") and not asked.form.sends_ignored:
        return
    marks = None if foreign else data.get("metadata")
    if asked.form.drops_provider_calls and isinstance(marks, dict) and "providerExecuted" in marks:
        marks = {key: value for key, value in marks.items() if key != "providerExecuted"}
    if not _sound(marks):
        raise CannotSend("metadata", "its metadata is not an object of objects")
    if kind == "text":
        body = _text(data, asked.form)
        body = {"text": body["text"] or _for_empty(message, asked.form)}
        step.spoken = True
        if body["text"] or marks is not None:
            step.answer.append(Piece("text", body, part, marks))
    elif kind == "reasoning":
        _reasoning(part, step, asked.form, marks, foreign)
    else:
        _tool(part, step, asked, marks)


def _tells_progress(data: Json) -> bool:
    """Whether a text is what Kilo shows while it prepares a turn, and sends to nobody (7.7.9). It stays where Kilo is
    ended meanwhile.
    """
    metadata = data.get("metadata")
    return isinstance(metadata, dict) and metadata.get("kilocode.lifecycle") == "transient"


def _sound(metadata: object) -> bool:
    """Whether the SDK takes a value: only objects of objects; it refuses the whole conversation for anything else."""
    if not isinstance(metadata, dict):
        return metadata is None
    return all(isinstance(value, dict) for value in metadata.values())


def _well_formed(text: str, form: Form) -> str:
    mended = form.mends_unicode and not text.isascii()  # which is told at once, of most texts
    return HALF.sub("\ufffd", text) if mended else text


def _text(data: Json, form: Form) -> Json:
    if not isinstance(data.get("text"), str):
        raise CannotSend("text", "its text is missing")
    return {"text": _well_formed(data["text"], form)}


def _reasoning(part: Part, step: _Step, form: Form, marks: Json | None, foreign: bool) -> None:
    body = _text(part.data or {}, form)
    if foreign and form.sends_foreign_thinking:
        if body["text"].strip(JS_SPACE):
            step.spoken = True
            step.answer.append(Piece("text", body, part))
        return
    step.spoken = True
    step.answer.append(Piece("reasoning", body, part, marks))


def _tool(part: Part, step: _Step, asked: AskedModel, marks: Json | None) -> None:
    """Make a call and its result. A call whose status the client does not know is not sent."""
    data, form = part.data or {}, asked.form
    state = data.get("state")
    if state is None:
        raise CannotSend("state", "the tool call has no state")
    status = state.get("status") if isinstance(state, dict) else None
    if not isinstance(state, dict) or status not in ("completed", "error", "pending", "running"):
        return
    call_id, name = data.get("callID"), _spelled(data)
    if not isinstance(call_id, str):
        raise CannotSend("name", "the tool call has no id")
    metadata = data.get("metadata")
    executed = form.drops_provider_calls and isinstance(metadata, dict) and bool(metadata.get("providerExecuted"))
    call_id = _sent_id(call_id, asked)
    call: dict[str, Any] = {"id": call_id, "name": name}
    if "input" in state and (state["input"] is not None or status == "completed"):
        call["input"] = state["input"]
    content, files, is_error = _result(part, state, status, asked)
    result = {"id": call_id, "name": name, "content": content, "is_error": is_error}
    step.spoken = True
    step.answer.append(Piece("call", call, part, marks, executed=executed))
    made = Piece("result", result, part, marks, unfinished=status in ("pending", "running"), executed=executed)
    (step.answer if executed else step.results).append(made)
    step.files += files


def _sent_id(call_id: str, asked: AskedModel) -> str:
    """Return the id of a call, which the client mends for models of some names only."""
    if "claude" in asked.called:
        call_id = _ILLEGAL_ID.sub("_", call_id)
    if asked.mends_for_mistral:
        call_id = _NO_LETTER.sub("", call_id)[:9].ljust(9, "0")
    return call_id


def _spelled(data: Json) -> str:
    """Spell a tool's name as JavaScript does, whatever stands there."""
    name = data.get("tool", "undefined")
    if isinstance(name, (dict, list)):
        return "[object Object]" if isinstance(name, dict) else ",".join(map(str, name))
    return name if isinstance(name, str) else json.dumps(name)


def _result(part: Part, state: Json, status: str, asked: AskedModel) -> tuple[str | list[Json], list[Piece], bool]:
    """Make a result's content, the files that go beside it, and whether it tells of an error."""
    form = asked.form
    if status == "completed":
        return *_output(part, state, asked), False
    metadata = state.get("metadata")
    if form.plain_interrupted and status == "error" and isinstance(metadata, dict):
        output = metadata.get("output")
        if metadata.get("interrupted") is True and isinstance(output, str):
            return _well_formed(output, form), [], False
    error = state.get("error") if status == "error" else _INTERRUPTED
    words = "unknown error" if error is None else error if isinstance(error, str) else javascript_json(error)
    return _well_formed(words, form), [], True


def _output(part: Part, state: Json, asked: AskedModel) -> tuple[str | list[Json], list[Piece]]:
    time, form = state.get("time"), asked.form
    if not isinstance(time, dict):
        raise CannotSend("time", "the finished tool call has no time")
    if time.get("compacted"):
        return _CLEARED, []
    given = not form.sends_given_files and (part.data or {}).get("tool") == "send_file"
    output, attachments = state.get("output"), [] if given else state.get("attachments") or []
    if isinstance(output, (bool, int, float)) and not attachments:
        return javascript_json(output), []
    if form.omits_empty_output and isinstance(output, list) and not attachments:
        return [], []
    if not isinstance(output, str) or not isinstance(attachments, list):
        raise CannotSend("output", "the finished tool call has no output")
    words = _well_formed(output, form)
    within, beside = [], []
    for item in attachments:
        shown = attachment(item)
        if is_picture_or_pdf(item["mime"]) and not asked.in_results(item["mime"]):
            named = item if form.spreads_files else {**item, "filename": None}  # before, it had no name there
            beside.append(Piece("file", file(named, frozenset({"image", "pdf"})), part))
        else:
            within.append(shown)
    if not within:
        return words, beside
    text = [] if form.omits_empty_output and not output else [{"type": "text", "text": words}]
    return [*text, *(shown for shown in within if shown is not None)], beside


def steps(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Cut the parts of a stored answer at each `step-start`, as OpenCode prompts with them."""
    step: list[Part] = []
    for part in parts:
        if part.type == "step-start":
            if step:
                yield step
            step = []
        else:
            step.append(part)
    if step:
        yield step
