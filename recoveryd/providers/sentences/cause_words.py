"""What a person is told of each cause that is not the history: what it is, and what to do."""

from __future__ import annotations

from recoveryd.core import Cause

WORDS = {
    Cause.FAILED_CALL: "a call that the model just made, and that is not taken. Send the prompt again.",
    Cause.OLD_CLIENT: "a client that is too old for this model or service. Update it, or choose another model.",
    Cause.NETWORK: "the network. Look at the connection, then send the prompt again.",
    Cause.RATE_LIMIT: "a rate limit of the provider. Wait a little, then send the prompt again.",
    Cause.OVER_RATE: (
        "a rate limit of the provider that has no room for a request of this length, however long you wait. Start a "
        "new session or have the client compact this one; if that is refused as well, turn off tools and MCP servers, "
        "or choose a plan or model with a higher limit."
    ),
    Cause.COMPACTING: (
        "the way in which the client asks for a compaction, which this provider or gateway does not know. In Codex "
        "give the provider another `name` than “OpenAI” in `config.toml`, or update the gateway; then prompt again."
    ),
    Cause.TOOLS: "the tools or the answer's form that the client asks for. Look at its MCP servers and plugins.",
    Cause.ACCOUNT: "the account with the provider. Look at its balance, plan or usage limit.",
    Cause.MODEL_ACCESS: (
        "the model. The provider does not offer it, or not to this account: choose another one, or ask for access."
    ),
    Cause.FILTER: (
        "the provider's filter. Put what you asked in other words; if that fails too, go back to before it first, "
        "since what was filtered is sent along."
    ),
    Cause.KEY: "the key or the rights of the account. Log in again, or ask for access.",
    Cause.PLACE: "the account, or the place from which it is used. The provider does not serve it: choose another one.",
    Cause.SYSTEM_PROMPT: (
        "the system prompt, which the model's template takes only once, at the beginning. Look at what the "
        "client's plugins add to it, or give the server another template."
    ),
    Cause.EMPTY_SYSTEM_PROMPT: (
        "an empty text in the system prompt. Look at the instructions that the client sends, and at what its "
        "plugins add to them."
    ),
    Cause.FULL: "a conversation that fills the model. Have the client compact it, then go on.",
    Cause.SETTING: "a setting of the request. Look at the model's options in the client.",
    Cause.NO_IMAGES: "a model that takes no images. Choose one that does, or start a new session without them.",
    Cause.MODEL_CHOICE: "the choice of the model. The provider does not offer it, or not for this: choose another one.",
    Cause.BLOCKED: (
        "something in the conversation that the provider blocks, and it does not say what. Go back by a turn, or "
        "start a new session."
    ),
    Cause.ADDRESS: (
        "the address that the client asks, where nobody answers for models. Send the prompt again in a while; if "
        "that fails too, look at it in the client's settings (`baseURL`, `base_url`, `ANTHROPIC_BASE_URL`)."
    ),
    Cause.NO_JSON: (
        "a request that was no valid JSON when it arrived. Send the prompt again; if that fails too, look at "
        "what stands between the client and the provider (proxy, gateway, plugins), or update the client."
    ),
    Cause.UNREADABLE_ANSWER: (
        "an answer that the client could not read. Send the prompt again; if that fails too, look at what stands "
        "between the client and the provider (proxy, gateway), or choose another model."
    ),
    Cause.SERVER: "the provider's server. Send the prompt again in a while.",
    Cause.ANSWER_FORM: (
        "the form of the answer that was asked for, which the model did not keep to. Send the prompt again."
    ),
    Cause.ANSWER_LENGTH: "the length of the answer, which is at the model's limit. Send “continue”.",
    Cause.STOPPED: "a turn that was stopped, which is no failure.",
    Cause.HOOK: "a hook that did not let the request out. Look at the client's hooks and plugins.",
    Cause.DISK: (
        "a disk without room, on which the client could not write. Make room there (there may be a quota, too), then "
        "send the prompt again."
    ),
    Cause.CREDENTIALS: (
        "the login or key that the client is set up with, which can't be used. The message itself says which: look at "
        "the client's settings and environment variables."
    ),
    Cause.HEADER: (
        "a header that can't be sent: of a key, or one that is set besides. Look for line breaks and odd characters in "
        "the client's keys and environment variables."
    ),
    Cause.NETWORK_PLACE: (
        "the network from which it is asked, which the provider does not serve. Look at the VPN or proxy, or ask from "
        "another network."
    ),
    Cause.CERTIFICATE: (
        "a certificate that could not be verified. Look at what stands between the client and the provider (proxy, "
        "gateway, VPN), and at the authorities that the client trusts."
    ),
    Cause.PROXY: (
        "something between the client and the provider (proxy, firewall, gateway, portal) that answers in its place, "
        "or changes its answers. Look at that, or ask from another network."
    ),
    Cause.ACCOUNT_HOLD: (
        "the account, which the provider holds back until it is verified or looked into. The message itself says what "
        "to do."
    ),
    Cause.ASKS_USER: "a question of the client's that nobody answered. Send the prompt again, and answer it.",
    Cause.MODEL_POLICY: (
        "the models that the client's settings or its organization allow. Choose another one, or have this one allowed."
    ),
    Cause.MODEL_SWAPPED: (
        "an answer of another model than may be used, which the client threw away. Send the prompt again, or choose "
        "another model."
    ),
    Cause.MODE: "the mode in which the client works, which this plan or model does not have. Choose another mode.",
    Cause.LONG_PROMPT: (
        "the prompt, which is too long by itself and was not sent. Send less of it, or put it in a file and name that."
    ),
    Cause.REFILLED: (
        "files or outputs so large that the conversation is full again after each compaction. Go back by a turn and "
        "have less read at once, or start a new session."
    ),
    Cause.EMPTY_ANSWER: "an answer without a word. Send the prompt again.",
    Cause.DECLINED: (
        "the model, which declined to answer. Put what you asked in other words, go back by a turn, or choose another "
        "model."
    ),
    Cause.POLICY: (
        "a policy of the organization or gateway, which does not let through what was sent. Go back to before that, or "
        "start a new session."
    ),
    Cause.PRIVACY: (
        "the account's privacy settings, which leave nobody who offers the model. Change them at the provider, or "
        "choose another model."
    ),
    Cause.BUDGET: (
        "the budget that was set for this session, which is used up. Have it raised where it was set, or start a new "
        "session."
    ),
    Cause.SANDBOX: "the client's sandbox, in which a command could not be run. Look at its settings for that.",
    Cause.DENIALS: (
        "actions of the model that were denied too often, so that the client ended the turn. Say what it is to do "
        "instead, or look at the client's rules for approvals."
    ),
    Cause.BUSY: "a turn that was under way, which nothing can be done beside. Do it again once that has ended.",
    Cause.BROKEN_OFF: (
        "an answer that broke off, and why is not told. Send the prompt again; if it breaks off each time, look at the "
        "connection and at what stands between the client and the provider (proxy, gateway)."
    ),
    Cause.CLIENT: "the client itself, which failed. Start it again and send the prompt again, or update it.",
    Cause.RENEWAL: (
        "a login that another process of the client is renewing. Send the prompt again in a minute; if that fails too, "
        "quit the other ones, or log in again."
    ),
    Cause.OVERHEAD: (
        "what the client sends beside the conversation, which is too long for the model by itself: the system prompt, "
        "tools, attached files. Turn off MCP servers and plugins, attach less, or choose a model that takes more."
    ),
    Cause.LIMIT: (
        "a limit, of what is asked in a while or of the account (balance, plan, usage): the client does not keep "
        "which. Wait a little and send the prompt again; if that fails too, look at the account."
    ),
    Cause.SERVER_UNTOLD: (
        "the provider's server, which failed, and the client does not keep what it said. Send the prompt again in a "
        "while; if that fails each time, look into the log of the server or gateway, or choose another model."
    ),
}
