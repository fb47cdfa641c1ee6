"""What the Responses API says of single items: which belong together, which fields they take, which are encrypted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from recoveryd.core import Block, Json, Request, words

# A call, and the type of its output.
OUTPUT_OF: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}
OUTPUTS = frozenset(OUTPUT_OF.values())
ENCRYPTED = frozenset({"reasoning", "compaction", "context_compaction"})
TAKEN_BY_ALL = frozenset({"message", "function_call", "function_call_output"})  # whoever speaks this API at all
NEED_AN_ID = frozenset({"reasoning", "web_search_call", "image_generation_call", "file_search_call", "mcp_call"})
# What an id begins with. A wrong one is the id that another provider gave.
_PREFIX: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "local_shell_call": "lsh",
}
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_OF_ASSISTANT = frozenset({"output_text", "refusal"})
_OF_OTHERS = frozenset({"input_text", "input_image", "input_file", "input_audio"})
# What an item says, and what makes it one: emptied, it would be gone.
_OF_SUBSTANCE = words(
    "type role content call_id name arguments input output action result tools summary encrypted_content author"
)
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
# A name had at most 64 characters until the autumn of 2026, and has behind some gateways: then their error says so.
LONGEST_ID, LONGEST_NAME, LONGEST_ARGUMENTS = 64, 128, 1_048_576
_SEARCHES = frozenset({"search", "open_page", "find_in_page"})


def request_items(request: Request) -> list[Block]:
    """List the items of a request to the Responses API."""
    return list(request.blocks())


def text_field(body: Json, field: str) -> str:
    """Return a field of an item of the Responses API that is a text; "" where it is none."""
    value = body.get(field)
    return value if isinstance(value, str) else ""


def item_call_fault(body: Json, longest_name: int = LONGEST_NAME) -> str | None:
    """Tell what the Responses API refuses of the id or the name of a call, as half a sentence; None if nothing."""
    if body.get("type") not in OUTPUT_OF:
        return None
    call = body.get("call_id")
    if isinstance(call, str) and not 0 < len(call) <= LONGEST_ID:
        return f"a tool call has an empty id or one longer than {LONGEST_ID} characters"
    for field in ("name", "namespace"):
        name = body.get(field)
        if isinstance(name, str) and not (len(name) <= longest_name and _NAME.fullmatch(name)):
            return f"a tool call has an empty or too long {field}, or one with illegal characters"
    return None


def id_fault(body: Json) -> str | None:
    """Tell why the Responses API refuses the id of an item; None where it isn't."""
    own = text_field(body, "id")
    if len(own) > LONGEST_ID:
        return f"the id of an item is longer than {LONGEST_ID} characters"
    prefix = _PREFIX.get(str(body.get("type")))
    if own and prefix is not None and not own.startswith(prefix):
        return f'the id of an item is another provider\'s: it does not begin with "{prefix}"'
    return None


def message_fault(body: Json) -> str | None:
    """Tell what an item of the Responses API says in the wrong form: its role, or a type of content that its role can't
    have.
    """
    if body.get("type") != "message":
        return None
    role, content = body.get("role"), body.get("content")
    if str(role) not in _ROLES:
        return "a message has a role that the provider does not know"
    allowed = _OF_ASSISTANT if role == "assistant" else _OF_OTHERS
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    if any(part.get("type") not in allowed for part in parts):
        return "a message has content of a type that its role can't have"
    return None


def is_lonely(blocks: Sequence[Block], index: int) -> bool:
    """Whether an item of reasoning, at `index`, is not followed by what the model did then."""
    if blocks[index].type != "reasoning":
        return False
    following = blocks[index + 1].body if index + 1 < len(blocks) else None
    if following is None or following.get("type") in OUTPUTS:
        return True
    return following.get("type") == "message" and following.get("role") != "assistant"


def is_odd_search(body: Json) -> bool:
    """Whether an item is a search of the web that has the provider do what not each knows."""
    action = body.get("action")
    kind = action.get("type") if isinstance(action, Mapping) else None
    return body.get("type") == "web_search_call" and kind not in _SEARCHES


def is_spare(body: Json, field: str) -> bool:
    """Whether an item of the Responses API says the same without this field; reasoning keeps what is encrypted of its
    content.
    """
    return field not in _OF_SUBSTANCE or (field == "content" and body.get("type") == "reasoning")
