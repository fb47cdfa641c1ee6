"""One line of a transcript: what it says, and whose it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recoveryd.clients import json_lines
from recoveryd.clients.claude_code.attachment import QUEUED, media
from recoveryd.core import Json

CHAINED = frozenset({"user", "assistant", "system", "attachment", "progress"})
SENT = frozenset({"user", "assistant"})
_BY_CLIENT = "<synthetic>"  # the model of what the client says itself
# The client's own commands begin with their name, those that are a prompt with `<command-message>`.
_TOLD = ("[Request interrupted by user", "<local-command-", "<bash-", "<command-name>/")
_COMMAND = "<command-"  # begins what stands for a command that the user gave
COMPACTED = "compact_boundary"  # a system line: what stands before it is not sent any more
_FELL_BACK = "model_refusal_fallback"  # a system line: another model answers what this one declined
_GIVEN = "local_command"  # a system line that is sent as the user's


@dataclass(frozen=True, slots=True)
class Line:
    """A whole line of a transcript that is part of a conversation. `raw` is without its newline."""

    uuid: str
    data: Json
    raw: bytes
    number: int  # its place in the file
    parent: str = ""  # the line before it; "" where none is

    @property
    def type(self) -> str:
        return str(self.data.get("type"))

    @property
    def message(self) -> Json:
        found = self.data.get("message")
        return found if isinstance(found, Mapping) else {}

    @property
    def model(self) -> str:
        """The model that gave this answer; "" where none did."""
        found = self.message.get("model")
        return found if isinstance(found, str) and found != _BY_CLIENT else ""

    @property
    def by_own_name(self) -> bool:
        """Whether the model that gave this answer was asked for by its own name (or an older or a shorter form of it);
        not where that is not told. Others serve models of their own under Claude's names.
        """
        family = re.match("[a-z]+", self.model.rpartition("/")[2].lower())
        return family is not None and family[0] in text_of(self.data, "requestedModel").lower()

    @property
    def made_up(self) -> bool:
        """Whether the client says it in the place of an answer ("No response requested."): no model did."""
        return self.message.get("model") == _BY_CLIENT

    @property
    def side(self) -> bool:
        """Whether it is of a subagent's conversation."""
        return self.data.get("isSidechain") is True

    @property
    def command(self) -> bool:
        """Whether it tells what a command of the user's gave, and is sent as the user's."""
        return self.data.get("subtype") == _GIVEN and self.data.get("isDisplayOnly") is not True

    @property
    def refused(self) -> bool:
        """Whether it is the client's own word about an error."""
        return self.data.get("isApiErrorMessage") is True

    @property
    def retracted(self) -> list[str]:
        """The lines that the client took back with this one, by their ids."""
        tells = self.type in SENT or (self.type == "system" and self.data.get("subtype") == _FELL_BACK)
        named = self.data.get("retractedMessageUuids") if tells else None
        return [uuid for uuid in named if isinstance(uuid, str)] if isinstance(named, list) else []

    @property
    def copied(self) -> bool:
        """Whether another session asked for it, of which this one is a branch (`/branch`, `--fork-session`)."""
        asked = text_of(self.data, "requestSessionId")
        return bool(asked and asked != self.data.get("sessionId")) or isinstance(self.data.get("forkedFrom"), Mapping)

    @property
    def answers(self) -> bool:
        """Whether it holds what tools gave back: nobody asked anything."""
        return self.type == "user" and any(_type(block) == "tool_result" for block in self._blocks)

    @property
    def call_line(self) -> str:
        """The line whose call gave this result; "" where it is not told, or there are several results."""
        several = sum(_type(block) == "tool_result" for block in self._blocks) != 1
        return "" if several else text_of(self.data, "sourceToolAssistantUUID")

    @property
    def _blocks(self) -> list[Any]:
        content = self.message.get("content")
        return content if isinstance(content, list) else []

    def ids(self, kind: str, name: str) -> set[str]:
        """List what blocks of this kind have for an id under this name."""
        return {text_of(block, name) for block in self._blocks if _type(block) == kind} - {""}

    @property
    def said(self) -> str:
        """The text, or the first block's; "" where that is none."""
        content = self.message.get("content")
        first = content[0] if isinstance(content, list) and content else None
        said = content if isinstance(content, str) else first.get("text") if isinstance(first, Mapping) else None
        return said if isinstance(said, str) else ""

    @property
    def by_client(self) -> bool:
        """Whether a line of the user's only tells what the client did: nobody is asked."""
        return self.said.startswith(_TOLD)

    @property
    def own_words(self) -> bool:
        """Whether a line of the user's has their own words: it is no command, and the client did not add it."""
        return self.data.get("isMeta") is not True and not self.said.startswith((*_TOLD, _COMMAND))

    @property
    def added(self) -> bool:
        """Whether the client added a line of the user's by itself: a hint, or the summary of a compaction."""
        return self.data.get("isMeta") is True or self.data.get("isCompactSummary") is True

    @property
    def queued(self) -> bool:
        """Whether it is a prompt of the user's that came while a turn was under way."""
        told = self._attachment
        if not isinstance(told, Mapping) or told.get("type") != QUEUED or told.get("isMeta") is True:
            return False
        origin = told.get("origin") or {"kind": "human"}  # older ones did not record it; agents prompt, too
        return told.get("commandMode") == "prompt" and isinstance(origin, Mapping) and origin.get("kind") == "human"

    @property
    def waited(self) -> bool:
        """Whether it is such a prompt, and recorded as a turn of its user's: its place among files hangs on that."""
        told = self._attachment
        return self.queued and isinstance(told, Mapping) and told.get("humanTurn") is True

    @property
    def attached(self) -> bool:
        """Whether the client attached images, documents or a queued prompt: of all else that it attaches, none is the
        user's.
        """
        return self.queued or bool(media(self._attachment))

    @property
    def content(self) -> object:
        """What it says: a text, a list of blocks, or of what is attached the images and documents by their places."""
        if self.type == "attachment":
            return media(self._attachment)
        return self.data.get("content") if self.type == "system" else self.message.get("content")

    @property
    def _attachment(self) -> object:
        return self.data.get("attachment") if self.type == "attachment" else None

    @property
    def prompts(self) -> bool:
        """Whether it is a prompt of the user's, as their screen shows it."""
        return self.queued or (self.type == "user" and not (self.answers or self.added or self.by_client))

    @property
    def ms(self) -> int:
        return json_lines.line_time(self.data.get("timestamp"))


def _type(block: object) -> object:
    return block.get("type") if isinstance(block, Mapping) else None


def model_asked(data: Json) -> str:
    """Return the model that a request went to, by the line that tells of the request, or of a model that others are
    asked with from here on: of a summary that it asks for by itself, the client writes no other (2.1.332). "" where a
    line does not tell.
    """
    if data.get("type") == "attachment":
        attached = data.get("attachment")
        told = attached if isinstance(attached, Mapping) and attached.get("type") == "model" else {}
        params, key = told.get("identity"), "modelId"
    else:
        params, key = data.get("params"), "model"
    return text_of(params, key) if isinstance(params, Mapping) else ""


def text_of(data: Json, key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""
