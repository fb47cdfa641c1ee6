"""What a person is told of each cause that is not the history: what it is, and what to do."""

from __future__ import annotations

from recoveryd.core import Cause

WORDS = {
    Cause.FAILED_CALL: "a call that the model just made, and the provider does not take. Send the prompt again.",
    Cause.OLD_CLIENT: "a client that is too old for this model or service. Update it, or choose another model.",
    Cause.NETWORK: "the network. Look at the connection, then send the prompt again.",
    Cause.RATE_LIMIT: "a rate limit of the provider. Wait a little, then send the prompt again.",
    Cause.TOOLS: "the tools or the answer's form that the client asks for. Look at its MCP servers and plugins.",
    Cause.ACCOUNT: "the account with the provider. Look at its balance, plan or usage limit.",
    Cause.MODEL_ACCESS: (
        "the model. The provider does not offer it, or not to this account: choose another one, or ask for access."
    ),
    Cause.FILTER: "the provider's filter. Put what you asked in other words.",
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
        "that fails too, look at it in the client's settings (`baseURL`, `base_url`)."
    ),
    Cause.NO_JSON: (
        "a request that was no valid JSON when it arrived. Send the prompt again; if that fails too, look at "
        "what stands between the client and the provider (proxy, gateway, plugins), or update the client."
    ),
    Cause.UNREADABLE_ANSWER: "an answer that the client could not read. Send the prompt again.",
    Cause.SERVER: "the provider's server. Send the prompt again in a while.",
    Cause.ANSWER_FORM: (
        "the form of the answer that was asked for, which the model did not keep to. Send the prompt again."
    ),
    Cause.ANSWER_LENGTH: "the length of the answer, which is at the model's limit. Send “continue”.",
    Cause.STOPPED: "a turn that was stopped, which is no failure.",
}
