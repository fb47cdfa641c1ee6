"""What an error without a kind is about, where that can be told: not the history, so nobody need look there. Pure.

Asked only when there is no kind: for the words of `explain`, and for whether a refusal of the history before it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from recoveryd.core import RecordedError

# What says no more than that nothing is there: of no item, no message, no id.
_NOTHING = (
    r"\"(?:error|detail|message|title|status|code|type|path|timestamp)\" ?:|\b404\b|\b\d{4}-\d\d-[\dt:.+z-]*"
    r"|\b(?:api_?|ai_\w{1,20}|not_?found_?|unknown_?|invalid_request_)?error\b"
    r"|/[\w/.-]*\b(?:responses|completions|messages)\b"
    r"|\b(?:not|found|file|page|resource|route|endpoint|the|requested|unknown|was|on|this|server)\b|[^\w:]"
)
_TOOLS = "the tools or the answer's form that the client asks for. Look at its MCP servers and plugins."
_FILTER = "the provider's filter. Put what you asked in other words."
_RATE = "a rate limit of the provider. Wait a little, then send the prompt again."
# Of what a limit is that no plan sets: of what is asked at a time, or in one request.
_OF_REQUESTS = r"\b(?:rate|requests?|concurren\w*|tokens?|context|conversation|chat|input|output|length|images?)\b"
_SERVER = "the provider's server. Send the prompt again in a while."
_NETWORK = "the network. Look at the connection, then send the prompt again."
# The first that fits is taken: an empty account is often told as a limit, and a limit as an overload.
_FAMILIES = (
    (
        r"tool_use_failed|failed to call a function\. please|tool call validation failed",  # first: it quotes any words
        "a call that the model just made, and the provider does not take. Send the prompt again.",
    ),
    (
        r"requires a newer version of (codex|claude code|opencode|kilo)\b|upgrade to the latest app or cli"
        r"|this version of [^|]{0,40}is no longer supported",
        "a client that is too old for this model or service. Update it, or choose another model.",
    ),
    (r"<title>(just a moment\.\.\.|attention required! \| cloudflare)", _NETWORK),
    (r"temporarily limiting requests", _RATE),  # Claude Code's, which says "not your usage limit" behind it
    (r"function_declarations\[", _TOOLS),  # Gemini's path of one, with the names of its fields: `properties[api_key]`
    (
        r"credit.{0,40}(low|balance|required|exhausted)|available credits|balance is too low|insufficient.?balance"
        r"|quota|billing|insufficient.?(credit|fund)|payment|extra usage|usage limit|free tier"
        r"|upgrade to (?!the latest|a newer)"
        r"|more credits|usage credits|not (yet )?available for (this|your) (subscription|plan)"
        r"|budget has been exceeded|organization has been disabled|organization must be verified|余额|额度|欠费"
        r"|out of credits|hit your spend cap"  # Codex', of a workspace
        # Claude Code's
        r"|out of usage\b|seat type doesn.t include usage|usage allocation has been disabled|pooled group budget"
        r"|this service is disabled for your org|usage is paused for your org"
        # Claude Code's, of a plan: "You've hit your 5-hour limit · resets 3pm", "… your org's monthly spend limit"
        rf"|you.?ve (hit|reached) your (?:(?!{_OF_REQUESTS})[\w '\u2019-]){{0,40}}\blimit\b(?! (of|for)\b)"
        r"|(?<!api.)key limit exceeded",  # OpenRouter's, of what its user lets a key cost
        "the account with the provider. Look at its balance, plan or usage limit.",
    ),
    (
        r"rate.?limit|too many (requests|tokens\b.{0,9}(wait|per))|per.?(minute|min|day)\b|throttl"
        r"|resource.?(has been )?exhausted|rate increased too quickly|request limit reached|key limit exceeded"
        r"|频繁|限流|速率|每分钟",
        _RATE,
    ),
    (
        r"model.{0,120}\bnot (exist|found),? or (you|your \w+) (may|do|does) not have access"
        r"|use.case (form|details)",
        "the model. The provider does not offer it, or not to this account: choose another one, or ask for access.",
    ),
    (r"content violates usage guidelines", _FILTER),  # xAI's, whose 403 speaks of a permission and names the key
    (
        r"api.?key|unauthori[sz]ed|authenticat|(provider)?auth.?error|oauth|invalid token|permission"
        r"|token (is )?(expired|invalid)|(?<!extra_)forbidden|access denied|credential|request signature"
        r"|token refresh failed|invalid_grant|please run /login|please log out and sign in again"
        r"|signature (expired|verification)|jwt|security token|not have access|don't have access"
        r"|无效的令牌|令牌(已|无效|过期)|密钥|未授权|鉴权",
        "the key or the rights of the account. Log in again, or ask for access.",
    ),
    (
        r"(user|your) (location|country|region) is not supported|unsupported (country|countries|location)",
        "the account, or the place from which it is used. The provider does not serve it: choose another one.",
    ),
    (
        r"system message must be (at the beginning|the first)",
        "the system prompt, which the model's template takes only once, at the beginning. Look at what the client's "
        "plugins add to it, or give the server another template.",
    ),
    (
        r"system(\.\d{1,4})?(\.text)?: (text content blocks must|cache_control cannot be set for empty)",
        "an empty text in the system prompt. Look at the instructions that the client sends, and at what its plugins "
        "add to them.",
    ),
    (
        r"input_schema|function_?declarations|(tool|function) ?names must be unique|\btools[.\[]|toolconfig|toolspec"
        r"|schema for function|response_format|tool_choice|support tool|invalid tool type|function parameters"
        r"|tool choice requires|invalid 'tools'|(^|\| )tools: |(more than|at most|maximum of) \d+ (tools|functions)"
        r"|only supports function tools",
        _TOOLS,
    ),
    (
        r"reached (its|the) context window limit",
        "a conversation that fills the model. Have the client compact it, then go on.",
    ),
    (
        r"max_(completion_|output_)?tokens|maximum tokens you requested|maxoutputtokens|budget_tokens|thinking\.type"
        r"|reasoning.{0,3}effort|effort parameter|anthropic-beta|temperature|top_p|unsupported (parameter|value)"
        r"|argument not supported|extra inputs|cache_control|prompt_cache|effort\b.{0,40}\bavailable"
        r"|thinking (is|may) not|reasoning is mandatory|invalid chat setting|invalid beta flag|strategy requires"
        r"|api.?version (is )?(not supported|required)|(unsupported|invalid|missing) api.?version|only for api.?version"
        r"|encrypted content is not supported with this model.{0,60}\binclude\b"
        r"|invalid value: .reasoning\.encrypted_content.\. supported values",
        "a setting of the request. Look at the model's options in the client.",
    ),
    (
        r"(not|that) support (image|vision|multimodal)|image input|unknown variant .{0,2}image_url",
        "a model that takes no images. Choose one that does, or start a new session without them.",
    ),
    (
        r"model.{0,60}\b(not found|not exist|not available|not supported|unavailable)|no endpoints found"
        r"|on-demand throughput|unknown model|invalid model name|not found for api version|^model: "
        r"|model.{0,60}\bnot accessible via|model identifier is invalid|not a valid model|invalid model( id\b|:)"
        r"|deployment.{0,60}\bnot (found|exist)|(deployment|(provider)?model)_?not_?found"
        r"|llm provider not provided|\bno models? (is |are )?loaded"
        r"|model (is |was )?(not |un)loaded|failed to load (the )?model"
        r"|模型不存在|无可用渠道",
        "the choice of the model. The provider does not offer it, or not for this: choose another one.",
    ),
    (
        r"request (was |has been )?blocked(?! before it reached)|访问被阻断",  # before the address: a firewall says 405
        "something in the conversation that the provider blocks, and it does not say what. Go back by a turn, "
        "or start a new session.",
    ),
    (
        r"404 page not found|404 not found</(title|h1)>|cannot post /|invalid url \((get|post) "
        r"|unexpected endpoint or method|\bmethod not allowed|no route (matched|found)|unknown request url"
        rf"|(^(?=.*\bnot found)|unexpected status 404 not found: )(?:{_NOTHING})*+(url:|$)",
        "the address that the client asks, where nobody answers for models. Send the prompt again in a while; if that "
        "fails too, look at it in the client's settings (`baseURL`, `base_url`).",
    ),
    (
        r"content.?filter|content.?policy|content management policy|safety|flagged|moderation|usage policy"
        r"|inappropriate content|content exists risk|can.t help with this\. start a new session|敏感|不安全|违规",
        _FILTER,
    ),
    (
        r"could not parse the json body",
        "a request that was no valid JSON when it arrived. Send the prompt again; if that fails too, look at what "
        "stands between the client and the provider (proxy, gateway, plugins), or update the client.",
    ),
    (
        r"model's tool call could not be parsed|the response could not be read\b",
        "an answer that the client could not read. Send the prompt again.",
    ),
    (
        r"(the server had an error while|an error occurred while|our servers are|flex capacity)"
        r" (processing your request|currently overloaded|unavailable)",
        _SERVER,
    ),
    (
        r"econn|enotfound|eai_again|socket\b|certificate|connect(ion|ing|ed)?\b|getaddrinfo|fetch failed|timed? ?out"
        r"|deadline exceeded|name resolution|unreachable|unresponsive|without sending|stream (closed|disconnected)"
        r"|download(s|ed|ing)?\b|blocked before it reached|the response (stalled|stopped|stream was)"
        r"|response never arrived|went to sleep|network error|other side closed|premature close"
        r"|(^|\| )(type.?error: )?terminated( \||$)",
        _NETWORK,
    ),
    (
        r"overload|internal server error|server had an error|bad gateway|service unavailable|gateway time"
        r"|server.error|service is currently unavailable|serviceunavailable|at capacity|负载|过载|繁忙|不可用"
        r"|(status|error|code|http|failed)\W{0,9}(code|error|http)?\W{0,3}5[02]\d\b|\b5[02]\d:",
        _SERVER,
    ),
    (
        r"structured.?output",
        "the form of the answer that was asked for, which the model did not keep to. Send the prompt again.",
    ),
    (r"(message)?output.?length", "the length of the answer, which is at the model's limit. Send “continue”."),
    (r"(message)?abort(ed)?(error)?\b|cancell?ed|interrupted", "a turn that was stopped, which is no failure."),
)
_BEFORE: dict[object, str] = {  # said before anybody looks at the request
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    408: "timed out",
    429: "rate limit",
}
_STATUS: dict[object, str] = {
    **_BEFORE,
    405: "method not allowed",
    **dict.fromkeys(range(500, 600), "internal server error"),
}
# As words of their own or behind a "_": a tool, a field or a block of any name may be spoken of.
_PATTERNS = tuple((re.compile(rf"(?<![a-z])(?:{pattern})"), words) for pattern, words in _FAMILIES)
# A place in the history. Who names one has looked at it, whatever else is said.
_PLACE = re.compile(
    r"\b(messages?|contents?|input|parts)(\[\d|\.\d|: ?\d)|\bmessages? (at )?(index|position) \d"
    r"|\b((redacted_)?thinking|(server_)?tool_(use|result)|image|document)[`'\"]? (content )?blocks?\b"
)
# But of any image it says the same, wherever it stands, and of what the client marks anew with each request; and what
# Gemini lists beside a tool that it does not take is mostly a call of that.
_OF_ALL = re.compile(r"unknown variant .{0,2}image_url|\bcache_control\S{0,40} extra inputs|\bfunction_declarations\[")
# Of these nobody has looked at the history yet.
_TURNED_AWAY = (
    "the account",
    "a rate limit",
    "the model.",
    "the key",
    "the network",
    "the provider's server",
    "the address",
    "a client that",
)
# Nor of these, whatever else is said beside them: "internal server error" stands around refusals, too.
_UNREAD = ("the account", "a rate limit", "the model.", "the key", "the network", "a client that")
# A model that is not there (404): of other statuses the same words may be about what is asked of it.
_NOT_THERE = "the choice of the model"
_IN_A_WHILE = re.compile(r"rate.?limit|(tokens|requests|input tokens) per.?(minute|min|day|hour)\b|\b(tpm|rpm|tpd)\b")
_LOOKED_AT = 8_000  # characters of a text
_BLANKS = re.compile(r"\s+")


def _about(error: RecordedError, *, by_status: Mapping[object, str] = _STATUS) -> str:
    """Return the first that fits its words, or else its status; "" where it can't be told."""
    said = sorted(error.texts[:8], key=lambda text: text == error.name)  # the client's own name for it comes last
    # Apart: "Bad Request" before "signature of ..." speaks of no "request signature".
    text = _BLANKS.sub(" ", " | ".join(text[:_LOOKED_AT] for text in said)).strip().lower()
    if _PLACE.search(text) and error.status not in _BEFORE and not _OF_ALL.search(text):
        return ""
    known = (text, by_status.get(error.status, ""))
    return next((words for one in known for pattern, words in _PATTERNS if pattern.search(one)), "")


def other_cause(error: RecordedError) -> str | None:
    """Tell, by sentences of providers, what an error without a kind is about: "It seems to be about a rate limit of the
    provider. Wait a little, ..."; None where it can't be told.
    """
    about = _about(error)
    return f"It seems to be about {about}" if about else None


def of_a_limit(error: RecordedError) -> bool:
    """Whether an error is about how much was asked in a while, by its words."""
    text = " ".join(error.texts[:8])[:_LOOKED_AT].lower()
    return _IN_A_WHILE.search(text) is not None


def turned_away(error: RecordedError) -> bool:
    """Whether nobody seems to have looked at the history: an older refusal of it may stand all the same."""
    about = _about(error)
    return about.startswith(_TURNED_AWAY) or (error.status == 404 and about.startswith(_NOT_THERE))


def unread(error: RecordedError) -> bool:
    """Whether by its words, or a status that says it of any request, an error came before anybody looked at the
    history.
    """
    return _about(error, by_status=_BEFORE).startswith(_UNREAD)
