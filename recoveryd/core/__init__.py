"""Values that all rooms speak in: sessions, requests, violations, edits, kinds, errors, texts.

No I/O, and no import of any other room.
"""

from __future__ import annotations

from recoveryd.core import failpoint, model
from recoveryd.core.bounded_dict import keep_newest
from recoveryd.core.collector import without_collector
from recoveryd.core.diagnosis import ELSEWHERE, REFUSED, UNANSWERED, UNREADABLE, Diagnosis, waiting_prompts
from recoveryd.core.editor import CallLimits, Editor, Edits, Marks, Shortener
from recoveryd.core.edits import deeds, edited, merged, stored
from recoveryd.core.error_text import json_of, parsed, texts_of
from recoveryd.core.errors import (
    ActiveError,
    BusyError,
    BusyStoreError,
    ConfigError,
    ConflictError,
    DiskError,
    LeftAloneError,
    NotFoundError,
    RecoverydError,
    RefusedError,
    StoreError,
    UnreadError,
    UsageError,
)
from recoveryd.core.failure_kinds import KINDS, explained_by, kind_info
from recoveryd.core.health_check import FAIL, WARN, Check, ConfigProblem, fail, ok, warn
from recoveryd.core.image_header import from_base64, media_type, pixels
from recoveryd.core.length import Size, Usage
from recoveryd.core.model import (
    CUT_OFF,
    PAGE,
    Change,
    Edit,
    Entry,
    Event,
    Failure,
    Json,
    Kind,
    Message,
    Outcome,
    Part,
    RecordedError,
    Refusal,
    Refused,
    Resumed,
    Session,
    Try,
    is_session_id,
)
from recoveryd.core.request import Block, Request, Turn, Unsendable, Wire
from recoveryd.core.shapes import OTHER, item_shape, known_word, text_shape, text_shapes, type_name, words
from recoveryd.core.text import HALF, UNKNOWN, any_of, capital, clean, half_character, moment, shown
from recoveryd.core.version import __version__
from recoveryd.core.violation import Claims, Violation

__all__ = [
    "CUT_OFF",
    "ELSEWHERE",
    "FAIL",
    "HALF",
    "KINDS",
    "OTHER",
    "PAGE",
    "REFUSED",
    "UNANSWERED",
    "UNKNOWN",
    "UNREADABLE",
    "WARN",
    "ActiveError",
    "Block",
    "BusyError",
    "BusyStoreError",
    "CallLimits",
    "Change",
    "Check",
    "Claims",
    "ConfigError",
    "ConfigProblem",
    "ConflictError",
    "Diagnosis",
    "DiskError",
    "Edit",
    "Editor",
    "Edits",
    "Entry",
    "Event",
    "Failure",
    "Json",
    "Kind",
    "LeftAloneError",
    "Marks",
    "Message",
    "NotFoundError",
    "Outcome",
    "Part",
    "RecordedError",
    "RecoverydError",
    "Refusal",
    "Refused",
    "RefusedError",
    "Request",
    "Resumed",
    "Session",
    "Shortener",
    "Size",
    "StoreError",
    "Try",
    "Turn",
    "UnreadError",
    "Unsendable",
    "Usage",
    "UsageError",
    "Violation",
    "Wire",
    "__version__",
    "any_of",
    "capital",
    "clean",
    "deeds",
    "edited",
    "explained_by",
    "fail",
    "failpoint",
    "from_base64",
    "half_character",
    "is_session_id",
    "item_shape",
    "json_of",
    "keep_newest",
    "kind_info",
    "known_word",
    "media_type",
    "merged",
    "model",
    "moment",
    "ok",
    "parsed",
    "pixels",
    "shown",
    "stored",
    "text_shape",
    "text_shapes",
    "texts_of",
    "type_name",
    "waiting_prompts",
    "warn",
    "without_collector",
    "words",
]
