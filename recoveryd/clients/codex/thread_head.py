"""What the first lines of a thread tell: its title, its folder, whose agent it is, what it goes on from; and what its
user can do in its place where it can't be repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from recoveryd.clients.codex import rollout_lines
from recoveryd.clients.codex.rollout_paths import is_thread
from recoveryd.clients.json_lines import Line
from recoveryd.clients.store import About
from recoveryd.core import Json, clean

# What a user message begins with that nobody typed.
_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<skill", "<user_shell_")
_INSTEAD = "start a new session"
_REVIEWER = "guardian_review"  # of a thread whose model judges what another one's asks leave for (0.169.0)

Resume: TypeAlias = Callable[[str], str]  # makes the command that opens a thread


def meta_of(line: bytes | None) -> Json:
    """Return what the first line of a rollout tells; nothing where it can't be read."""
    return rollout_lines.payload(rollout_lines.parse(rollout_lines.tidied(line or b"")) or {})


def parent(meta: Json) -> str | None:
    """Return the thread whose agent this one is, or who reviews its approvals; None where a person began it."""
    found = text_of(meta, "parent_thread_id")
    return found if meta.get("thread_source") in ("subagent", _REVIEWER) and is_thread(found) else None


def opens(meta: Json) -> bool:
    """Whether Codex opens a thread by its own id: one that a person began, or an agent of its first kind (0.169.0)."""
    agent = parent(meta) is not None
    return not agent or (meta.get("multi_agent_version") != "v2" and meta.get("thread_source") != _REVIEWER)


def another(command: str) -> str:
    """Tell to have the thread that `command` opens begin another agent, or reviewer: opened anew, it does."""
    return f"have the thread whose agent this is (`{command}`) begin another one"


def instead(meta: Json, resume: Resume) -> str:
    """Tell what to do in the place of a thread that can't be repaired. No person can begin an agent (0.169.0)."""
    asker = parent(meta)
    if asker is None:
        return _INSTEAD
    return another(resume(text_of(meta, "session_id") or asker))  # a person's, also for an agent's agent


def instead_of_fork(meta: Json, resume: Resume) -> str:
    """Tell what to do in the place of a thread that goes on from another file: what is repaired in the thread that it
    was made from, it is sent with, too (seen on 0.169.0).
    """
    base = meta.get("history_base")
    source = text_of(base, "thread_id") if isinstance(base, Mapping) else ""
    if source == meta.get("id") or not is_thread(source):
        return instead(meta, resume)
    prompt = f"prompt the one that it was made from (`{resume(source)}`), and load this one anew"
    return f"{prompt}: what is repaired there holds here, too; else {_INSTEAD}"


def about(lines: Iterable[Line], longest: int) -> About:
    """Read title, folder and parent of a thread from its first lines. The title is what its user asked first, in so
    many characters.
    """
    meta: Json | None = None
    for line in lines:
        data = rollout_lines.parse(rollout_lines.tidied(line.raw)) or {}
        payload = rollout_lines.payload(data)
        if meta is None and data.get("type") == "session_meta":
            meta = payload
        elif data.get("type") == "response_item" and is_prompt(payload):
            return About(clean(_title(payload), longest), text_of(meta or {}, "cwd"), parent(meta or {}))
    return About("", text_of(meta or {}, "cwd"), parent(meta or {}))


def _title(prompt: Json) -> str:
    """Return the first words of a prompt, without the marks around a picture, and what stands between them."""
    inside = False
    for text in (text for text in _texts(prompt) if isinstance(text, str)):
        if not inside and not text.startswith("<image name="):
            return text
        inside = text != "</image>"
    return ""


def is_prompt(item: Json) -> bool:
    """Whether an item of a thread is what a person asked, and not what the client tells the model of itself."""
    if item.get("type") != "message" or item.get("role") != "user":
        return False
    first = next((text for text in _texts(item) if isinstance(text, str)), "")
    return not first.startswith(_CONTEXT)


def _texts(item: Json) -> list[object]:
    content = item.get("content")
    return [one.get("text") for one in content if isinstance(one, Mapping)] if isinstance(content, list) else []


def text_of(data: Json, key: str) -> str:
    """Return the text of a key; "" where it has none."""
    value = data.get(key)
    return value if isinstance(value, str) else ""
