"""Make OpenCode's parts legal: from the stored data to the fields that change. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from recoveryd.clients.opencode.wire.media import sources_of
from recoveryd.core import HALF, CallLimits, Json, Part, json_of

NO_OUTPUT = "[no output]"


def cancelled(data: Json, words: str, now: int) -> Json:
    """Make the state of a tool part whose call was given up, as OpenCode writes it; `now` in ms since the epoch."""
    state = data.get("state")
    old: Mapping[str, Any] = state if isinstance(state, Mapping) else {}
    given = old.get("input")
    time = old.get("time")
    start = time.get("start") if isinstance(time, Mapping) else None
    return {
        **old,
        "status": "error",
        "input": given if isinstance(given, Mapping) else {},
        "error": words,
        "time": {"start": start if isinstance(start, (int, float)) else now, "end": now},
    }


def finished(part: Part) -> bool:
    """Whether a tool part needs no end made for its call: it has its result."""
    state = (part.data or {}).get("state")
    return isinstance(state, Mapping) and state.get("status") in ("completed", "error")


def legal_call(part: Part, earlier: Iterable[Part], limits: CallLimits) -> Json:
    """Make the fields of a tool part that have to change for its call to be legal. `earlier`: the parts before it."""
    data = part.data or {}
    changes: dict[str, Any] = {}
    beside = (other for other in earlier if limits.counted is None or other.message_id == part.message_id)
    theirs = ((other.data or {}).get("callID") for other in beside if other.type == "tool")
    taken = {_counted(call_id, limits) for call_id in theirs if isinstance(call_id, str)}
    call_id, name = data.get("callID"), data.get("tool")
    mended = limits.illegal_in_id.sub("_", call_id) if isinstance(call_id, str) else ""
    long = limits.longest_id is not None and len(mended) > limits.longest_id
    new = _new_id(part, limits) if not mended or long or _counted(mended, limits) in taken else mended
    if new != call_id:
        changes["callID"] = new
    if not isinstance(name, str) or not name:
        changes["tool"] = "unknown"
    elif (legal := limits.legal_name(name)) != name:
        changes["tool"] = legal
    state = data.get("state")
    if isinstance(state, Mapping) and not isinstance(state.get("input"), Mapping):
        changes["state"] = {**state, "input": as_object(state.get("input"))}
    return changes


def _counted(call_id: str, limits: CallLimits) -> str:
    """Return what of an id tells two calls apart."""
    if limits.counted is None:
        return limits.illegal_in_id.sub("_", call_id)
    return re.sub(r"[^a-zA-Z0-9]", "", call_id)[: limits.counted]


def _new_id(part: Part, limits: CallLimits) -> str:
    """Make an id for a call; a short one, where only a few letters of it count."""
    return unique_id(part) if limits.counted is None else hashlib.sha256(part.id.encode()).hexdigest()[: limits.counted]


_ANY_SDK = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# Where SDKs keep what only the provider that wrote it can read, beside a part of the answer.
_SEALED = frozenset({"signature", "redactedData", "redactedContent", "reasoning_details", "reasoningOpaque"})
_SEALED |= {"itemId", "reasoningEncryptedContent", "thoughtSignature"}


_OF_A_PART = re.compile(r" \(prt_\w+\)$")


def unsealed(data: Json) -> Json:
    """Return a part's metadata without what only its provider can read."""
    return {
        sdk: {key: value for key, value in marks.items() if key not in _SEALED} if isinstance(marks, Mapping) else marks
        for sdk, marks in _metadata(data).items()
    }


def with_reasoning(data: Json, words: str) -> Json:
    """Return a part's metadata with what OpenRouter's SDK sends as reasoning that nobody signed."""
    detail = {"type": "reasoning.text", "text": words, "format": "unknown", "index": 0}
    kept = _objects(data.get("metadata")).get("openrouter", {})
    return {**_metadata(data), "openrouter": {**kept, "reasoning_details": [detail]}}


def reasoning_as_own(words: str, part_id: str) -> str:
    """Make a part's reasoning that of it alone: what is said twice in a conversation, OpenRouter's SDK sends once."""
    return f"{_OF_A_PART.sub('', words)} ({part_id})"


def metadata_of_halves(head: Sequence[Part], rest: Sequence[Part]) -> Iterator[tuple[Part, Json]]:
    """Make the metadata that has to change in the parts of a step that is cut in two: yield each part with what it
    becomes.

    What GitHub Copilot sealed for the whole step fits neither half. OpenRouter's SDK keeps the reasoning of a step
    beside its first call alone, and some models refuse a call without any: that of the second half gets it, too.
    """
    for part in (*head, *rest):
        if "reasoningOpaque" in _objects((part.data or {}).get("metadata")).get("copilot", {}):
            yield part, unsealed(part.data or {})
    sent = [words for part in head for words in _unsigned_reasoning(part)]
    own = [words for part in rest for words in _unsigned_reasoning(part)]
    call = next((part for part in rest if part.type == "tool"), None)
    if call is not None and sent and set(own) <= set(sent):
        yield call, with_reasoning(call.data or {}, reasoning_as_own([*sent, *own][-1], call.id))


def _unsigned_reasoning(part: Part) -> list[str]:
    """List the words that OpenRouter's SDK sends of a part as reasoning that nobody signed."""
    details = _objects((part.data or {}).get("metadata")).get("openrouter", {}).get("reasoning_details")
    found = [one for one in details if isinstance(one, Mapping)] if isinstance(details, list) else []
    unsigned = (one for one in found if one.get("type") == "reasoning.text" and not one.get("signature"))
    return [words for one in unsigned if isinstance(words := one.get("text"), str) and words]


def executed_by_client(data: Json) -> Json:
    """Make the fields of a tool part that change for its call not to count as the provider's own; none where it does
    not.
    """
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("providerExecuted"):
        return {}
    return {"metadata": {key: value for key, value in metadata.items() if key != "providerExecuted"}}


def unique_id(part: Part) -> str:
    """Make a legal id for the call in a tool part, as unique as that of its part."""
    return "toolu_" + part.id.removeprefix("prt_")


def as_object(value: object) -> Json:
    """Make an object of the input of a tool part that is none: the object that a text spells, else the value under a
    key of its own.
    """
    if value is None:
        return {}
    spelled = json_of(value) if isinstance(value, str) else None
    if isinstance(spelled, dict):
        return spelled
    return {"input": value}


def without_media(state: Json, fault: Callable[[Json], str | None]) -> tuple[Json, int]:
    """Take attachments out of a tool part's state: each for which `fault` gives a reason becomes a note in the output.

    Returns the state, and how many went.
    """
    attachments = [item for item in state.get("attachments") or [] if isinstance(item, Mapping)]
    faults = [next(filter(None, map(fault, sources_of(item))), None) for item in attachments]
    notes = [taken_out_note(item, why) for item, why in zip(attachments, faults, strict=True) if why]
    kept = [item for item, why in zip(attachments, faults, strict=True) if not why]
    return {**state, "attachments": kept, "output": _with_notes(state, "\n".join(notes))}, len(notes)


def renamed(data: Json, sent: Json, name: str) -> Json:
    """Make the fields that change for a document to be sent under another name: that of a prompt, or the last such of a
    tool's. What the SDK cuts off its name stays.
    """
    if not isinstance(data.get("state"), Mapping):
        return {"filename": name + str(data.get("filename")).removeprefix(sent["title"])}
    attachments = list(data["state"]["attachments"])
    named = (n for n, item in enumerate(attachments) if (item.get("filename") or "").startswith(sent["title"]))
    last = [n for n in named if sent["source"] in sources_of(attachments[n])][-1]
    item = attachments[last]
    attachments[last] = {**item, "filename": name + (item.get("filename") or "").removeprefix(sent["title"])}
    return {"state": {**data["state"], "attachments": attachments}}


def taken_out_note(item: Json, reason: str) -> str:
    """Write the note that stands in a part for what was taken out: "[The image a.png was taken out: it has 6.1 MB, and
    the provider takes 5]".
    """
    noun = "image" if str(item.get("mime", "")).startswith("image/") else "file"
    name = item.get("filename")
    named = f" {name}" if isinstance(name, str) and name else ""
    return f"[The {noun}{named} was taken out: {reason}]"


def without_half_characters(value: Any) -> Any:
    """Replace every half character in the `value` of a part by U+FFFD, in keys too."""
    if isinstance(value, str):
        return HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, Mapping):
        mended: dict[Any, Any] = {}
        for key, item in value.items():
            name = without_half_characters(key)
            while name in mended or (name != key and name in value):
                name += "_"  # two keys that differed in their half character alone stay two
            mended[name] = without_half_characters(item)
        return mended
    return [without_half_characters(item) for item in value] if isinstance(value, list) else value


def sendable(data: Json, fault: str, now: int) -> Json:
    """Make the fields that change for a part to be sent, by the wire's name for what is wrong; `now` in ms."""
    state: Json = data["state"] if isinstance(data.get("state"), Mapping) else {}
    match fault:
        case "metadata":
            return {"metadata": _objects(data.get("metadata"))}
        case "signature":
            metadata = {key: value for key, value in _objects(data.get("metadata")).items() if key != "anthropic"}
            return {"metadata": metadata}
        case "time":
            return {"state": {**state, "time": {"start": now, "end": now}}}
        case "output":
            attachments = state.get("attachments")
            kept: Json = {"attachments": []} if attachments and not isinstance(attachments, list) else {}
            output = state.get("output")
            return {"state": {**state, **kept, "output": NO_OUTPUT if output is None else value_as_text(output)}}
    return {}


def value_as_text(value: Any) -> str:
    """Write what a part is to say as text, also a value that is none: nothing that a tool or a person said is
    dropped.
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _with_notes(state: Json, notes: str) -> str:
    """Append the notes to the tool's own output, which stays whole."""
    output = state.get("output")
    return f"{output}\n{notes}" if isinstance(output, str) and output.strip() else notes


def _metadata(data: Json) -> Mapping[str, Any]:
    """Return a part's metadata as it is stored; empty where it is no object."""
    metadata = data.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


def _objects(metadata: object) -> dict[str, Any]:
    """Keep what the SDK takes of the metadata: an object of objects."""
    pairs = metadata.items() if isinstance(metadata, Mapping) else ()
    return {key: value for key, value in pairs if isinstance(value, Mapping)}


def without_unsendable(state: Json, reason: str) -> Json:
    """Make a part's tool state sendable: a note for each attachment that can't be sent to anybody; else, that this SDK
    can't send.
    """
    attachments = state.get("attachments") or []
    bad = [item for item in attachments if not _can_be_sent(item)]
    why = "the client can't send it" if bad else reason
    bad = bad or [item for item in attachments if item["mime"] not in _ANY_SDK] or list(attachments)
    notes = "\n".join(taken_out_note(item if isinstance(item, Mapping) else {}, why) for item in bad)
    kept = [item for item in attachments if item not in bad]
    return {**state, "attachments": kept, "output": _with_notes(state, notes)}


def _can_be_sent(item: object) -> bool:
    if not isinstance(item, Mapping) or not isinstance(item.get("url"), str):
        return False
    mime = item.get("mime")
    return isinstance(mime, str) and (mime.startswith("image/") or mime == "application/pdf")


def added_text(text: str, *, assistant: bool) -> dict[str, Any]:
    """Make an added text. A user's must not be synthetic: the client does not draw those."""
    body: dict[str, Any] = {"type": "text", "text": text}
    if assistant:
        body["synthetic"] = True
    return body
