"""Claude Code's own names for what ended a turn, where they say that it was not the stored conversation. Pure.

Names are those of 2.1.330 and 2.1.332. One that is not here says nothing, or wraps a refusal of the history
(`tool_history_mismatch`, `pdf_too_large`, `invalid_request`): its words tell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from recoveryd.core import Cause, Json

# `apiError`, the narrower name.
_NARROW: Mapping[object, Cause] = MappingProxyType(
    {
        "max_output_tokens": Cause.ANSWER_LENGTH,
        "dlp_request_denied": Cause.POLICY,
        "claude_code_version_too_old": Cause.OLD_CLIENT,
        "safety_monitor_blocked": Cause.FILTER,
        "hook_denied": Cause.HOOK,
        "effort_requires_thinking": Cause.SETTING,
        "advisor_incompatible": Cause.SETTING,
        "field_not_granted": Cause.SETTING,
        "autocompact_thrashing": Cause.REFILLED,
        "message_over_context_limit": Cause.LONG_PROMPT,
        "stored_login_refused": Cause.CREDENTIALS,
        "oauth_refresh_store_refused": Cause.CREDENTIALS,
        "named_profile_unusable": Cause.CREDENTIALS,
        "org_disabled_credential": Cause.CREDENTIALS,
        "api_key_auth_disabled": Cause.CREDENTIALS,
        "provider_credentials": Cause.CREDENTIALS,
        "gateway_signin_required": Cause.KEY,
        "gateway_session_expired": Cause.KEY,
        "invalid_credential_header": Cause.HEADER,
        "network_edge_blocked": Cause.NETWORK_PLACE,
        "tls_untrusted_ca": Cause.CERTIFICATE,
        "tls_cert_signature_failure": Cause.CERTIFICATE,
        "gateway_content_type": Cause.UNREADABLE_ANSWER,  # a proxy changed the answer
        "no_response": Cause.NETWORK,
        "connection_failed": Cause.NETWORK,
        "stream_idle_timeout": Cause.NETWORK,
        "computer_slept": Cause.NETWORK,
        "usage_limit_reached": Cause.ACCOUNT,
        "model_requires_usage_credits": Cause.ACCOUNT,
        "long_context_credits_required": Cause.ACCOUNT,
        "consent_unanswered": Cause.ASKS_USER,
        "unattended_start_limit": Cause.ASKS_USER,
        "unattended_start_unconfirmed": Cause.ASKS_USER,
        "no_allowed_fallback": Cause.MODEL_POLICY,
        "model_substitution_disabled": Cause.MODEL_POLICY,
        "empty_completion": Cause.EMPTY_ANSWER,
        "malformed_tool_use_exhausted": Cause.UNREADABLE_ANSWER,
    }
)
# `error`, the wider one. Of a rate limit and a server's error the words tell more; of the others they may tell less.
_WIDE: Mapping[object, Cause] = MappingProxyType(
    {
        "authentication_failed": Cause.KEY,
        "oauth_org_not_allowed": Cause.KEY,
        "account_on_hold": Cause.ACCOUNT_HOLD,
        "verification_required": Cause.ACCOUNT_HOLD,
        "billing_error": Cause.ACCOUNT,
        "cloud_credential_error": Cause.CREDENTIALS,
        "model_not_found": Cause.MODEL_ACCESS,
        "max_output_tokens": Cause.ANSWER_LENGTH,
    }
)
_NOT_THE_HISTORY = frozenset({"rate_limit", "overloaded"})
_SERVER = "server_error"  # also where no server answered
NAMES: Collection[str] = frozenset({*map(str, _WIDE), *_NOT_THE_HISTORY, _SERVER, "invalid_request", "unknown"})
# What it writes of a conversation that is a single exchange, and so can't be compacted.
_MEASURED = re.compile(
    r"request is ~(?P<all>\d{1,9}) tokens \(limit (?P<limit>\d{1,9})\) but this conversation is only "
    r"~(?P<told>\d{1,9}) tokens"
)
# What its runtime says of an answer that is no JSON (2.1.330), where the newest says "empty or malformed response".
# With no place of the history: an error within a stream has no status either.
_UNPARSED = re.compile(
    r"(?:SyntaxError: )?(?:JSON Parse error: |Unexpected (?:token|end of JSON)\b|[^\n.\[]{1,60} in JSON at position \d)"
    r"(?P<page>Unrecognized token '<'|(?<=token) '?<)?"
)
_DECLINED = frozenset({"refusal", "cyber_refusal", "prompt_injection_risk", "prompt_injection"})
_OF_POLICY = frozenset({"policy_blocked", "tool_use_denied"})  # what a gateway calls its refusal


def cause_of(line: Json, status: int | None, words: str) -> Cause | None:
    """Return what the names in an error's line tell, the narrowest first; None: nothing, or of the history.

    `words`: the text of the line. By it versions before `cut` tell a full context from a long answer, and all what is
    too long.
    """
    message, params = line.get("message"), line.get("apiErrorParams")
    cut = params.get("cut") if isinstance(params, Mapping) else None
    remedy = params.get("remedy") if isinstance(params, Mapping) else None
    if line.get("oauthRefreshDiskFull") is True:
        return Cause.DISK
    if isinstance(message, Mapping) and _among(message.get("stop_reason"), _DECLINED):
        return Cause.DECLINED
    if _among(line.get("apiErrorType"), _OF_POLICY) or status == 451:
        return Cause.POLICY
    if status == 407:  # a proxy asks for a login of its own
        return Cause.PROXY
    if cut == "context_window" or (line.get("error") == "max_output_tokens" and "context window" in words):
        return Cause.FULL
    if line.get("apiError") == "provider_credentials" and remedy == "model_access":
        return Cause.MODEL_ACCESS
    if _without_the_conversation(words):
        return Cause.OVERHEAD
    narrow = _known(_NARROW, line.get("apiError"))
    if narrow is not None:
        return narrow
    unparsed = _UNPARSED.match(words) if status is None and line.get("error") in (None, "unknown") else None
    if unparsed is not None:
        return Cause.PROXY if unparsed["page"] else Cause.UNREADABLE_ANSWER
    return Cause.ACCOUNT if line.get("quotaLimits") is not None else _known(_WIDE, line.get("error"))


def _without_the_conversation(words: str) -> bool:
    """Whether by its own figures what it sends beside the conversation is longer than the model takes."""
    found = _MEASURED.search(words)
    return found is not None and int(found["all"]) - int(found["told"]) > int(found["limit"])


def is_elsewhere(line: Json, status: int | None) -> bool:
    """Whether by its name an error has nothing to do with the history, whatever its cause is."""
    name = line.get("error")
    return _among(name, _NOT_THE_HISTORY) or (name == _SERVER and status is None)


def _known(table: Mapping[object, Cause], name: object) -> Cause | None:
    return table.get(name) if isinstance(name, str) else None


def _among(value: object, names: frozenset[str]) -> bool:
    return isinstance(value, str) and value in names
