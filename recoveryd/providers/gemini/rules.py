"""Judge a conversation by what Gemini refuses: the order of turns, calls and responses, empty parts, names, signatures.

Source of the rules: the API's reference, and its own error texts. Without an error only that is a violation which
Gemini can never take; which thought signature it can't read, its error tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from recoveryd.core import (
    Block,
    CallLimits,
    Claims,
    Json,
    Kind,
    Limit,
    Refused,
    Request,
    Turn,
    Violation,
    from_base64,
    half_character,
    media_of,
)
from recoveryd.providers.gemini import media
from recoveryd.providers.media_limits import claimed_fault, only_new, too_many, unreadable

# A name begins with a letter or an underscore, and has at most 128 characters by the API's reference. Ids of calls are
# not looked at.
LIMITS = CallLimits(re.compile(r"[^a-zA-Z0-9_.:-]|^[^a-zA-Z_]"), longest_name=128, cut=64)
SIGNATURE = "signature"
# In the place of a signature, by the API's documentation: taken, and not looked at.
_NONE = "skip_thought_signature_validator"


def check(request: Request, claims: Claims) -> list[Violation]:
    """List what breaks Gemini's rules in a request, in its order; what the client can't send at all comes first."""
    found = [Violation(Kind.UNSENDABLE_PART, -1, None, part.reason, part.part_id) for part in request.unsendable]
    turns = request.turns
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            found += _order(index, turn, turns[index - 1] if index else None)
            found += _unanswered(index, turn, turns[index + 1] if index + 1 < len(turns) else None)
        found += _empty(index, turn)
        for block in turn.blocks:
            found += _block(index, block, claims)
    return found


def _order(index: int, turn: Turn, before: Turn | None) -> Iterator[Violation]:
    """Check that a turn with a call stands behind the user's words or the results of tools, as the API's error says.

    So it was met where a history began with a call (google-gemini/gemini-cli#11814), and where one stood behind another
    turn of the model, which ended once the two were sent as one (continuedev/continue#11805). A first turn of the model
    with words alone is taken, and so are two turns of the user in a row.
    """
    called = any(block.type == "tool_use" for block in turn.blocks)
    if called and (before is None or before.role == "assistant"):
        reason = "a turn with a tool call does not follow the user or the results of tools"
        yield Violation(Kind.ROLE_ORDER, index, None, reason)


def _unanswered(index: int, turn: Turn, following: Turn | None) -> Iterator[Violation]:
    results = following.blocks if following is not None and following.role == "user" else ()
    answered = {str(block.body.get("tool_use_id")) for block in results if block.type == "tool_result"}
    for block in turn.blocks:
        if block.type == "tool_use" and str(block.body.get("id")) not in answered:
            yield Violation(Kind.TOOL_RESULT_MISSING, index, block, "a tool call has no result in the next turn")


def _empty(index: int, turn: Turn) -> Iterator[Violation]:
    if not turn.blocks:
        yield Violation(Kind.EMPTY_CONTENT, index, None, "a turn has no parts")
    for block in turn.blocks:
        if block.type == "text" and block.body["text"] == "":  # white space is taken
            yield Violation(Kind.EMPTY_CONTENT, index, block, "a text is empty")


def _block(index: int, block: Block, claims: Claims) -> Iterator[Violation]:
    reason = _call_fault(block, LIMITS.as_told(claims))
    if reason is not None:
        yield Violation(Kind.TOOL_CALL_INVALID, index, block, reason)
    if half_character(block.body):
        yield Violation(Kind.INVALID_UNICODE, index, block, "it holds half a character (a lone surrogate)")
    if block.part_id in claims.accused and block.body.get(SIGNATURE, _NONE) != _NONE:
        reason = "the provider rejects this thought signature, or one that it does not name"
        yield Violation(Kind.THINKING_SIGNATURE_INVALID, index, block, reason, field=SIGNATURE)
    faults = ((source, _media_fault(block, source, claims)) for source in media.sources(block.body))
    refused = tuple((source, why) for source, why in faults if why)
    if refused:
        yield Violation(Kind.MEDIA_REJECTED, index, block, refused[0][1], media=refused)


def _media_fault(block: Block, source: Json, claims: Claims) -> str | None:
    claimed = claimed_fault(claims) if claims.over is not None else "the provider can't read it"
    return media.media_fault(source) or (claimed if claims.means(block, source) else None)


def _call_fault(block: Block, limits: CallLimits) -> str | None:
    if block.type != "tool_use":
        return None
    name, given = block.body.get("name"), block.body.get("input")
    if not isinstance(name, str) or not name or len(name) > limits.longest_name or limits.illegal.search(name):
        return "a tool call has an empty or too long name, or one with illegal characters"
    return "the input of a tool call is no object" if given is not None and not isinstance(given, Mapping) else None


def claims(refused: Refused, request: Request) -> Claims:
    """Tell the parts that an error of Gemini's means: those with a signature that can't be read; all files of the type
    that it names; or the one image or document, whichever it speaks of, that there is, or that no answer stands behind.
    And how long a name may be.

    A signature that is missing is wanted of the calls behind the newest prompt alone: the next one begins anew.
    """
    if "missing" in refused.said:
        return Claims()
    if refused.kind is Kind.TOOL_CALL_INVALID:
        return Claims(longest_name=refused.longest_name)
    if refused.kind is Kind.MEDIA_REJECTED:
        if refused.over is Limit.REQUEST:
            return Claims()  # how much less of it to send is a question of its length
        held = [(block, source) for block in request.blocks() for source in media.sources(block.body, refused.sort)]
        if refused.media_types:
            of_type = [one for one in held if one[1].get("media_type") in refused.media_types]
            inner = "function_response" in refused.said  # which takes fewer types than a prompt
            return Claims(media=frozenset(media_of(*m) for m in of_type if not inner or m[0].type == "tool_result"))
        if any(media.media_fault(source) for _, source in held):
            return Claims(over=refused.over)
        if refused.most_media:
            meant = too_many(refused, held)
        elif refused.over is not None:
            meant = only_new(request, held)
        else:
            meant = unreadable(refused, request, held)
        return Claims(media=frozenset(media_of(*one) for one in meant), over=refused.over)
    signed = [block for block in request.blocks() if block.body.get(SIGNATURE, _NONE) != _NONE]
    torn = [block for block in signed if not _is_base64(str(block.body[SIGNATURE]))]
    return Claims(accused=frozenset(block.part_id for block in torn or signed))


def _is_base64(text: str) -> bool:
    """Whether a signature can be decoded, also in the alphabet for URLs and without its end."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    return bool(plain) and from_base64(plain + "=" * (-len(plain) % 4)) is not None
