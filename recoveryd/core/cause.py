"""What an error is about that is no fault of a stored conversation. The values are names for the code alone."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """What else than the stored history ended a turn."""

    FAILED_CALL = "failed_call"  # a call of the model's, just made, that is not taken
    OLD_CLIENT = "old_client"
    NETWORK = "network"
    RATE_LIMIT = "rate_limit"
    OVER_RATE = "over_rate"  # a request that alone is more than a rate limit has room for
    COMPACTING = "compacting"  # a way to have a conversation compacted that the provider does not know
    TOOLS = "tools"
    ACCOUNT = "account"
    MODEL_ACCESS = "model_access"  # a model that is not there, or not for this account
    FILTER = "filter"
    KEY = "key"
    PLACE = "place"  # the country of the account
    SYSTEM_PROMPT = "system_prompt"
    EMPTY_SYSTEM_PROMPT = "empty_system_prompt"
    FULL = "full"  # the model's context, which the answer filled
    SETTING = "setting"
    NO_IMAGES = "no_images"
    MODEL_CHOICE = "model_choice"  # a model that is not there, or not for what is asked of it
    BLOCKED = "blocked"  # a filter or firewall that does not say of what
    ADDRESS = "address"
    NO_JSON = "no_json"
    UNREADABLE_ANSWER = "unreadable_answer"
    SERVER = "server"
    ANSWER_FORM = "answer_form"
    ANSWER_LENGTH = "answer_length"
    STOPPED = "stopped"
    HOOK = "hook"  # that did not let the request out
    DISK = "disk"  # without room
    CREDENTIALS = "credentials"  # that can't be used as they are set up: a key, a profile, a helper, a keychain
    HEADER = "header"  # that can't be sent
    NETWORK_PLACE = "network_place"  # a network that is not served: a region, a VPN
    CERTIFICATE = "certificate"
    PROXY = "proxy"  # that answers in the provider's place, or changes answers
    ACCOUNT_HOLD = "account_hold"
    ASKS_USER = "asks_user"  # a question of the client's that nobody answered
    MODEL_POLICY = "model_policy"  # the models that are allowed
    MODEL_SWAPPED = "model_swapped"  # an answer of a model that is not allowed
    MODE = "mode"  # of the client's work
    LONG_PROMPT = "long_prompt"  # too long by itself
    REFILLED = "refilled"  # full again after each compaction
    EMPTY_ANSWER = "empty_answer"
    DECLINED = "declined"  # by the model
    POLICY = "policy"  # of the organization or gateway, on what may be sent
    PRIVACY = "privacy"  # what the account's settings say of whom its words may go to
    BUDGET = "budget"  # of one session
    SANDBOX = "sandbox"  # of the client's, for commands
    DENIALS = "denials"  # of what the model wanted to do
    BUSY = "busy"  # a turn under way
    BROKEN_OFF = "broken_off"  # an answer, and nobody says why
    CLIENT = "client"  # that failed by itself
    RENEWAL = "renewal"  # of a login, by another process
    OVERHEAD = "overhead"  # what is sent beside the conversation, too long by itself
    LIMIT = "limit"  # of the account or in a while: the client does not keep which
    SERVER_UNTOLD = "server_untold"  # that said what the client does not keep
