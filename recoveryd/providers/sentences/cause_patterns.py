"""The words by which a cause is known that is not the history: of providers, gateways, firewalls, clients. Data."""

from __future__ import annotations

from recoveryd.core import Cause

# What says no more than that nothing is there: of no item, no message, no id.
_NOTHING = (
    r"\"(?:error|detail|message|title|status|code|type|path|timestamp|request_id)\" ?:|\b404\b|\breq_\w{1,40}\b"
    r"|\bnot found:(?= ?(?:[{<]|not found|file not found|404))|\b\d{4}-\d\d-[\dt:.+z-]*"
    r"|\b(?:api_?|ai_\w{1,20}|not_?found_?|unknown_?|invalid_request_)?error\b"
    r"|/[\w/.-]{0,200}\b(?:responses|completions|messages)\b"
    r"|\b(?:not|found|file|page|resource|route|endpoint|the|requested|unknown|was|on|this|server)\b|[^\w:]"
)
# Of what stands in a history: a field of it that is not known is a refusal of that.
_IN_HISTORY = (
    r"(?:input|messages?|contents?|parts?|role|turns?|items?|output|response|tool_(?:calls?|results?|call_id)|refusal"
    r"|annotations|reasoning(?:_(?:content|details|text|opaque)| items?)|thinking_blocks)\b"
)
_OF_MODEL = rf"(?<![\w-]){_IN_HISTORY}"  # what is said of it is not said of the model
# Of what a limit is that no plan sets: of what is asked at a time, or in one request.
_OF_REQUESTS = r"\b(?:rate|requests?|concurren\w*|tokens?|context|conversation|chat|input|output|length|images?)\b"
# A page where an answer was asked for, but one that says that the request is too large (its style may stand before). A
# number in a drawing, a session that was idle for too long or a header that is too large say nothing of that.
TOO_LARGE = (
    r"(?:(?:>|\b(?:error|code|status|http(?:/[\d.]{1,3})?))\W{0,9}413\b(?!-)"
    r"|\b413\W{1,3}(?:error|request|payload|content|entity)\b"
    r"|\b(?:request(?!\W(?:header|ur[il]))|entity|payload|content|body|upload|file|message|input|prompt)\b"
    r"[^<>|.]{0,30}(?<!took )\btoo (?:large|long|big)\b)"
)
HTML = r"<(!doctype )?html\b"
# What Codex asks a provider with, which it takes for OpenAI, to compact a thread: it stands in none.
OF_COMPACTING = r"(?:invalid|unknown|unsupported)(?: \w+){0,3}\W{1,3}compaction_trigger"
_PAGE = rf"{HTML}(?!.{{0,8000}}{TOO_LARGE})"
# The first that fits is taken: an empty account is often told as a limit, and a limit as an overload.
FAMILIES = (
    (
        r"tool_use_failed|failed to call a function\. please|tool call validation failed"  # first: it quotes any words
        r"|error parsing tool call|model tried to call unavailable tool",
        Cause.FAILED_CALL,
    ),
    (rf"{OF_COMPACTING}|remote compaction v2 expected exactly one", Cause.COMPACTING),
    (
        r"requires a newer version of (codex|claude code|opencode|kilo)\b|upgrade to the latest app or cli"
        r"|this version of [^|]{0,40}is no longer supported|requires kilo v\d|upgrade_required|client is outdated",
        Cause.OLD_CLIENT,
    ),
    # Claude Code's own sentences, for which it has no narrower name, or that somebody copied.
    (r"a mod's http\.fetch hook stopped this request", Cause.HOOK),
    (r"the disk that holds the claude code config directory|enospc: no space left|edquot: |disk is full", Cause.DISK),
    (r"another claude code process is refreshing it", Cause.RENEWAL),
    (r"not sent: no api attempts left", Cause.SERVER),
    (
        r"can't save to the keychain|your apikeyhelper script is failing|no llm gateway: a gateway set in your shell"
        r"|could not load (aws|google cloud|azure) credentials|belongs to a disabled organization"
        r"|your organization's gateway refused the request|gateway could not authenticate with its upstream"
        r"|loadsettingerror|could not load (the default )?credentials|requires aws credentials",  # of the AI SDK
        Cause.CREDENTIALS,
    ),
    (
        r"invalid anthropic_custom_headers|invalid request header from the environment"
        r"|invalid [\w-]{1,60} header value from|invalid value for (distinct )?header \w",
        Cause.HEADER,
    ),
    (r"request blocked before it reached anthropic's api", Cause.NETWORK_PLACE),
    (r"auto mode (is unavailable for your plan|doesn't run on)", Cause.MODE),
    (r"claude opus is not available with the claude pro plan", Cause.MODEL_ACCESS),
    (r"the server routed this response to a model", Cause.MODEL_SWAPPED),
    (r"autocompact is thrashing", Cause.REFILLED),
    (r"the model returned an empty response \(retry also failed\)", Cause.EMPTY_ANSWER),
    (r"exceeded the \d{1,9} output token maximum", Cause.ANSWER_LENGTH),
    (r"empty or malformed response \(http \d{3}\)[^|]{0,200}body is an html page", Cause.PROXY),
    (r"empty or malformed response \(http \d{3}\)|zliberror fetching", Cause.UNREADABLE_ANSWER),
    (
        r"ssl certificate error|self[- ]signed certificate|unable to (verify|get) [^|]{0,30}certificate"
        r"|certificate (has expired|verify failed|is not yet valid)|hostname/ip does not match certificate"
        r"|unknown certificate|err_tls_cert|unable_to_verify_leaf",
        Cause.CERTIFICATE,
    ),
    (
        r"<title>(just a moment\.\.\.|attention required! \| cloudflare|403 forbidden|(access|web ?(page|site)) "
        r"(denied|blocked)|error: the request could not be satisfied)"
        r"|blocked by a gateway or proxy\. you may not have permission"  # OpenCode's, of any page with a 403
        # The AI SDK's and V8's of a page, and JavaScriptCore's, where it is no server's.
        rf"|json parsing failed: text: {_PAGE}|unexpected token '?<'?, \"<(!doctype|html)"
        r"|(^|\| )api error: (json parse error: unrecognized token '<'|unexpected token '?<)"
        r"|error code: 10(0\d|10|12|20)\b|proxy authentication required|network authentication required"
        r"|redirected too many times|virtual network/firewall|public access is disabled|check your network settings",
        Cause.PROXY,
    ),
    (
        r"no endpoints (found|available) matching your|data collection is required for this model",
        Cause.PRIVACY,
    ),
    (r"temporarily limiting requests", Cause.RATE_LIMIT),  # Claude Code's, which says "not your usage limit" behind it
    (
        r"function_declarations\[",
        Cause.TOOLS,
    ),  # Gemini's path of one, with the names of its fields: `properties[api_key]`
    (
        r"(free|go|subscription)usagelimiterror|free usage exceeded",
        Cause.ACCOUNT,
    ),  # OpenCode's own service, which calls it a rate limit
    (
        # OpenAI's, Groq's: of one that the others have left no room for, it is said otherwise.
        r"request too large for [^|]{0,200}\b(tokens|requests) per (min|minute|day)\b"
        r"|\btokens per (min|minute|day)\b[^|]{0,200}(input or output tokens must be reduced|reduce your message size)",
        Cause.OVER_RATE,
    ),
    (
        # A limit in a while, though it says how to buy more.
        r"rate limit (was |is |has been )?(reached|exceeded)\b|\b[rt]p[mdsh]\b|(minute|hour|day|second) limit exceeded"
        r"|per_minute|throttling\.|resource has been exhausted \(e\.g\. check quota|fair usage policy"
        r"|number of requests exceeded the quota|calls / minute",
        Cause.RATE_LIMIT,
    ),
    (
        r"credit.{0,40}(low|balance|required|exhausted)|available credits|balance is too low|insufficient.?balance"
        r"|quota|billing|insufficient.?(credit|fund)|payment|extra usage|usage.limit|free tier"
        r"|upgrade to (?!the latest|a newer|an active)"
        r"|more credits|usage credits|not (yet )?available for (this|your) (subscription|plan)"
        r"|budget has been exceeded|organization has been disabled|organization must be verified"
        r"|余额|额度|欠费|使用上限|非活动状态|已被封禁"
        r"|overdue|in arrears|not enough balance|balance is insufficient|set inference limit|coding plan feature"
        r"|(any|add|low|depleted your[^|]{0,20}) credits?\b|spend(ing)? (cap|limit)|monthly limit exhausted"
        r"|daily call limit|exceededbudget\b|exceeded budget for\b|crossed budget|over budget\W{1,3}spend"
        r"|budget_exceeded|account is in good standing"
        r"|\b(images|tokens|requests)\b[^|.]{0,20} (per|this|a|each) month\b"
        r"|(account|organization)\b[^|]{0,60}\b(is suspended|been (locked|restricted|suspended))"
        r"|(?<!_)(plan|subscription)\b[^|]{0,30}\b(has expired|inactive|not (yet )?(support|include))"
        r"|requires a subscription|out of credits|hit your spend cap"  # Codex', of a workspace
        # Claude Code's
        r"|out of usage\b|seat type doesn.t include usage|usage allocation has been disabled|pooled group budget"
        r"|this service is disabled for your org|usage is paused for your org"
        # Claude Code's, of a plan: "You've hit your 5-hour limit · resets 3pm", "… your org's monthly spend limit"
        rf"|you.?ve (hit|reached) your (?:(?!{_OF_REQUESTS})[\w '\u2019-]){{0,40}}\blimit\b(?! (of|for)\b)"
        r"|(?<!api.)key limit exceeded",  # OpenRouter's, of what its user lets a key cost
        Cause.ACCOUNT,
    ),
    (
        r"rate.?limit|too many (requests|tokens\b.{0,9}(wait|per))|per.?(minute|min|day)\b|throttl"
        r"|\bthis (minute|hour)\b"
        r"|resource.?(has been )?exhausted|rate increased too quickly|request limit reached|key limit exceeded"
        r"|频繁|限流|速率|每分钟|频率过高|并发数过高|too many connections|request rate is too high|slow down\b",
        Cause.RATE_LIMIT,
    ),
    (
        r"((user|your) location|country|region|territory) (is )?not supported|unsupported_country"
        r"|unsupported (country|countries|location)|(not |un)available in your (country|region)",
        Cause.PLACE,
    ),
    (
        r"model[^|]{0,120}\bnot (exist|found),? or (you|your \w+( [\w-]+)?) (may|do|does) not have access"
        r"|use.case (form|details)|not allowed (to access this model|to sample from)"
        r"|access to (this |the )?model is (denied|not available)|access to model denied|model access (is )?denied"
        r"|don't have access to the model|not found the model \S{1,80} or permission"
        r"|feature_exclusive_model|has not activated the model|no access to model:|your current plan and polic",
        Cause.MODEL_ACCESS,
    ),
    (
        r"not allowed (to access model|for your team)|无权访问模型|has no access to model|denied by copilot policy"
        r"|disabled by your organization|is blocked at the (project|organization) level",
        Cause.MODEL_POLICY,
    ),
    # xAI's, whose 403 speaks of a permission and names the key; OpenRouter's
    (r"content violates usage guidelines|requires moderation on|blocked by guardrail", Cause.FILTER),
    (
        r"api.?key|unauthori[sz]ed|authenticat|(provider)?auth.?error|oauth|invalid token|permission"
        r"|token (is )?(expired|invalid)|(?<!extra_)forbidden|access denied|credential|request signature"
        r"|token refresh failed|invalid_grant|please run /login|please log out and sign in again"
        r"|(?<!thinking )signature (expired|verification)|jwt|security token|not have access|don't have access"
        r"|unauthenticated"
        r"|bearer token|not authorized to|operation not allowed|need to sign in|sso (session|login)"
        r"|无效的令牌|令牌(已|无效|过期|状态)|密钥|未授权|鉴权",
        Cause.KEY,
    ),
    (
        r"system message must be (at the beginning|the first)",
        Cause.SYSTEM_PROMPT,
    ),
    (
        r"system(\.\d{1,4})?(\.text)?: (text content blocks must|cache_control cannot be set for empty)",
        Cause.EMPTY_SYSTEM_PROMPT,
    ),
    (
        r"input_schema|function_?declarations|(tool|function) ?names must be unique|\btools[.\[]|toolconfig|toolspec"
        r"|schema for function|response_format|tool_choice|support tool|invalid tool type|function parameters"
        r"|tool choice requires|invalid 'tools'|(^|\| )tools: |(more than|at most|maximum of) \d+ (tools|functions)"
        r"|\b(tool|function) (definitions|schemas) exceed"
        r"|only supports function tools|body \| tools\b|tools (param requires|with mixed)|maximum tools limit"
        r"|(tools?|function) (use|calls?|calling)\W{1,3}((is|are) )?(not (supported|enabled)|unsupported)"
        r"|not support (tools?|function calling)\b|parse grammar|json schema conversion failed"
        r"|function name is duplicated|functiondeclaration|only allowed when tools are specified"
        r"|expects the .?tools=.? param",
        Cause.TOOLS,
    ),
    (
        r"reached (its|the) context window limit",
        Cause.FULL,
    ),
    (
        r"max_(completion_|output_)?tokens|maximum tokens you requested|maxoutputtokens|budget_tokens|thinking\.type"
        r"|reasoning.{0,3}effort|effort parameter|anthropic-beta|temperature|top_p|unsupported (parameter|value)"
        r"|argument not supported|extra inputs|cache_control|prompt_cache|effort\b.{0,40}\bavailable"
        r"|thinking (is|may) not|reasoning is mandatory|invalid chat setting|invalid beta flag|strategy requires"
        r"|api.?version (is )?(not supported|required)|(unsupported|invalid|missing) api.?version|only for api.?version"
        rf"|unknown parameter: .(?!{_IN_HISTORY})|thinking_budget|enable_thinking must be|thinking level"
        r"|not support thinking\b(?! (in|content|blocks?|parts?|messages?|turns?)\b)"
        rf"|only works in thinking mode|(?!{_IN_HISTORY})reasoning_\w{{1,20}} is not supported"
        r"|developer instruction is not enabled"
        r"|prompt caching|default chat template|configure ai gateway|live search is deprecated"
        r"|can handle the requested parameters"
        r"|encrypted content is not supported with this model.{0,60}\binclude\b"
        r"|invalid value: .reasoning\.encrypted_content.\. supported values",
        Cause.SETTING,
    ),
    (
        r"(not|that) support (image|vision|multimodal)|image input|unknown variant .{0,2}image_url"
        r"|is not a multimodal model|模型不支持.{0,4}图",
        Cause.NO_IMAGES,
    ),
    (
        rf"model((?!{_OF_MODEL})[^|{{]){{0,60}}\b(not (found|exist|available|supported)|unavailable\b(?!_|\"))"
        r"|no endpoints found"
        r"|on-demand throughput|un(known|supported) model\b|not found for api version|(^|\| |\"message\": ?\")model: "
        r"|model[^|]{0,60}\bnot accessible via|model identifier is invalid|not a valid model"
        rf"|invalid model\b(?!\W{{1,3}}{_IN_HISTORY})"
        r"|only supported in v1/|work with the specified model|unavailable for free|free promotion has ended"
        r"|(free|alpha) period (of|for) this model|no such model|model names are|no (allowed )?providers available"
        r"|no allowed providers|unable to access (non-serverless )?model|could not resolve the foundation model"
        rf"|model((?!{_OF_MODEL})[^|]){{0,90}}\b(no longer|been decommissioned|end of (its )?life|as legacy"
        r"|is disabled)"
        r"|(not support|use of) (the )?\w{1,20} api\b|not supported for format|model has unloaded"
        r"|function '[\da-f-]{8,36}': not found for account|model disabled|model '[^']{1,80}' was removed"
        r"|is being retired"
        r"|given endpoint does not exist|model not support\b"
        r"|deployment.{0,60}\bnot (found|exist)|(deployment|(provider)?model)_?not_?found"
        r"|llm provider not provided|\bno models? (is |are )?loaded"
        r"|model (is |was )?(not |un)loaded|failed to load (the )?model"
        r"|模型不存在|无可用渠道|模型不支持",
        Cause.MODEL_CHOICE,
    ),
    (
        r"request (was |has been )?blocked(?! before it reached)|访问被阻断",  # before the address: a firewall says 405
        Cause.BLOCKED,
    ),
    (
        r"404 page not found|404 not found</(title|h1)>|cannot post /|invalid url \((get|post) "
        r"|unexpected endpoint or method|\bmethod not allowed|no route (matched|found)|unknown request url"
        r"|could not route to /|fetch\(\) url is invalid"
        r"|(completions|messages|responses)\W{1,3}cannot be parsed as a url"
        r"|failed to parse url from \S{1,200}/(completions|messages|responses)\b"
        r"|endpoint only accepts the path|default backend - 404|malformed_http_response"
        rf"|(^(?=.*\bnot found)|unexpected status 404 not found: )(?:{_NOTHING})*+(url:|$)",
        Cause.ADDRESS,
    ),
    (
        r"content.?filter|content.?policy|content management policy|safety|flagged|moderation|usage policy"
        r"|inappropriate content|content exists risk|can.t help with this\. start a new session|敏感|不安全|违规"
        r"|new_sensitive|sensitive information|censorship_blocked|blocked output|guardrail checks"
        r"|unsafe or sensitive|prompt blocked|considered high risk",
        Cause.FILTER,
    ),
    (
        r"could not parse (the json|request) body|(^|\| )malformed json( \||$)",
        Cause.NO_JSON,
    ),
    (
        r"model's tool call could not be parsed|the response could not be read\b"
        r"|(^|\| |error: )invalid json response\W{0,3}( \||$)"
        r"|failed to process successful response|no output generated\b(?! (for|by) )"
        r"|(^|\| )api error: (json parse error: |unexpected (token|end of json)\b)",
        Cause.UNREADABLE_ANSWER,
    ),
    (
        r"(the server had an error while|an error occurred while|our servers are|flex capacity)"
        r" (processing your request|currently overloaded|unavailable)"
        r"|gateway time-?out|inference connection error|has terminated: (exit|signal)|generate first token before",
        Cause.SERVER,
    ),
    (
        r"econn|enotfound|eai_again|epipe|typo in the url or port|decompression failed"
        r"|socket\b|certificate|connect(ion|ing|ed)?\b|getaddrinfo|fetch failed|timed? ?out"
        r"|deadline.(exceeded|expired)|unable to reach|网络错误|name resolution|unreachable|unresponsive"
        r"|without sending|stream (closed|disconnected)"
        r"|download(s|ed|ing)?\b|blocked before it reached|the response (stalled|stopped|stream was)"
        r"|response never arrived|went to sleep|network error|other side closed|premature close"
        r"|(^|\| )(type.?error: )?terminated( \||$)",
        Cause.NETWORK,
    ),
    (
        r"overload|internal server error|server had an error|bad gateway|service unavailable|gateway time"
        r"|server.error|service is currently unavailable|serviceunavailable|(at|over) capacity|负载|过载|繁忙|不可用"
        r"|capacity temporarily exceeded|temporarily unavailable|high (load|traffic)|spikes in demand|访问量过大"
        r"|encountered an unexpected (internal )?error|not ready to serve|degraded function|model has crashed"
        r"|group is saturated|at maximum capacity"
        r"|(status|error|code|http|failed)\W{0,9}(code|error|http)?\W{0,3}5[02]\d\b|\b5[02]\d:",
        Cause.SERVER,
    ),
    (
        r"structured.?output",
        Cause.ANSWER_FORM,
    ),
    (r"(message)?output.?length", Cause.ANSWER_LENGTH),
    (r"(message)?abort(ed)?(error)?\b|cancell?ed|interrupted", Cause.STOPPED),
    # The AI SDK's of an answer that it can't read: last, for what it read may tell more.
    (r"(^|\| )(ai_jsonparseerror: )?json parsing failed: text: ", Cause.UNREADABLE_ANSWER),
)
