"""Codex's own names and sentences for what ended a turn, where they say that it was not the stored conversation. Pure.

Names are those of 0.169.0 and 0.171.0. One that is not here says nothing (`other`, `bad_request`, `invalid_prompt`,
`http_connection_failed`), or stands around a provider's words, which may refuse the history: those tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from recoveryd.core import Cause, words

_NAMES: Mapping[str, Cause] = MappingProxyType(
    {
        "usage_limit_exceeded": Cause.ACCOUNT,
        "session_budget_exceeded": Cause.BUDGET,
        "rate_limit_exceeded": Cause.RATE_LIMIT,
        "flex_unavailable": Cause.SERVER,
        "server_overloaded": Cause.SERVER,
        "policy_capacity_unavailable": Cause.SERVER,
        "internal_server_error": Cause.SERVER_UNTOLD,  # any status 500, whatever was said with it
        "model_not_found": Cause.MODEL_ACCESS,
        "inference_hook_denied": Cause.POLICY,
        "cyber_policy": Cause.FILTER,
        "bio_policy": Cause.FILTER,
        "misalignment_policy_violation": Cause.FILTER,
        "too_many_denials": Cause.DENIALS,
        "unauthorized": Cause.KEY,
        "sandbox_error": Cause.SANDBOX,
        "active_turn_not_steerable": Cause.BUSY,
        "thread_rollback_failed": Cause.BUSY,
    }
)
_WIDE = words(
    "other bad_request invalid_prompt context_window_exceeded http_connection_failed response_stream_connection_failed "
    "response_stream_disconnected response_too_many_failed_attempts"
)
NAMES: Collection[str] = frozenset({*_NAMES, *_WIDE})
# How what it says itself, in a provider's place, begins. A copied text has no name, and some names are wider.
_SAID = (
    ("We're currently experiencing high demand", Cause.SERVER_UNTOLD),
    ("exceeded retry limit, last status: 429", Cause.LIMIT),
    ("rate limit exceeded: Request too large for ", Cause.OVER_RATE),  # with OpenAI's words
    ("Policy-restricted capacity is unavailable", Cause.SERVER),
    ("Your workspace inference hook blocked this request", Cause.POLICY),
    ("The requested access program ", Cause.KEY),
    ("Access blocked by Cloudflare", Cause.NETWORK_PLACE),
    ("Missing environment variable: ", Cause.CREDENTIALS),
    ("Fatal error: failed to resolve Amazon Bedrock auth: ", Cause.CREDENTIALS),
    ("Failed to refresh token: 5", Cause.SERVER),  # a status
    ("Failed to refresh token: ", Cause.KEY),
    ("Incomplete response returned, reason: max_output_tokens", Cause.ANSWER_LENGTH),
    ("Incomplete response returned, reason: content_filter", Cause.FILTER),
    ("Incomplete response returned, reason: ", Cause.BROKEN_OFF),
    ("Automatic approval review rejected too many approval requests", Cause.DENIALS),
    ("internal error; agent loop died unexpectedly", Cause.CLIENT),
    ("session configured event was not the first event", Cause.CLIENT),
    ("sandbox error: ", Cause.SANDBOX),
    ("codex-linux-sandbox was required but not provided", Cause.SANDBOX),
    ("No space left on device", Cause.DISK),
    ("Connection failed: ", Cause.NETWORK),
    ("Error while reading the server response: ", Cause.NETWORK),
)
# The same of a stream that did not come to its end, where no provider said anything.
_SAID_OF_STREAM = (
    ("stream closed before response.completed", Cause.BROKEN_OFF),  # also behind an error in a form of others
    ("websocket closed by server before response.completed", Cause.BROKEN_OFF),
    ("response.failed event received", Cause.BROKEN_OFF),
    ("failed to parse ResponseCompleted: ", Cause.UNREADABLE_ANSWER),
    ("UTF8 error: ", Cause.UNREADABLE_ANSWER),
    ("unexpected binary websocket event", Cause.UNREADABLE_ANSWER),
    ("idle timeout ", Cause.NETWORK),
    ("tls handshake eof", Cause.NETWORK),
    ("Transport error: ", Cause.NETWORK),
    ("network error: ", Cause.NETWORK),
    ("error sending request", Cause.NETWORK),
    ("builder error", Cause.ADDRESS),
)
_LOOKED_AT = 1_000  # characters
_WHOLE = MappingProxyType({"budget reached": Cause.BUDGET, "Flex capacity unavailable.": Cause.SERVER})


def cause_of(name: str, text: str, *, of_stream: bool) -> Cause | None:
    """Return what Codex's own name or sentence for an error tells; None: nothing, or maybe of the history.

    `of_stream`: it put `text` behind its own for a stream that did not come to its end.
    """
    said = " ".join(text[:_LOOKED_AT].split()).replace("\u2019", "'")
    if of_stream and not said:
        return Cause.BROKEN_OFF
    known = (*_SAID_OF_STREAM, *_SAID) if of_stream else _SAID
    own = next((cause for begin, cause in known if said.startswith(begin)), _WHOLE.get(said))
    return own or _NAMES.get(name)
