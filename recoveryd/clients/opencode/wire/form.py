"""What differs between the versions of OpenCode in what they send."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Form:
    """What differs in the requests of OpenCode's versions, in one place. The names of the fields say what 1.18 does."""

    name: str
    keeps_compaction_tail: bool  # a compaction may name a tail that stays; the tail is sent behind the summary
    reverts_parts: bool  # a revert to a part keeps the parts before it; of files (1.1), the whole message goes
    sends_redacted: bool  # redacted thinking without words, and signed thinking without words
    sends_foreign_thinking: bool  # the thinking of another model goes as text
    spaces_empty_text: bool  # an empty text beside signed thinking becomes a blank
    moves_text: bool  # text behind a tool call is moved in front of it, not across thinking
    drops_odd_files: bool  # of a tool, which Anthropic's SDK can't send; before, no request could be built
    drops_provider_calls: bool  # calls that the provider executed are left out; before, no request could be built
    plain_interrupted: bool  # an interrupted call with output has a plain result
    omits_empty_output: bool  # beside attachments
    sends_ignored: bool  # the text of an answer that is marked as not to be shown; every version of OpenCode's own
    drops_empty_prompts: bool  # a prompt of empty texts vanishes; before, some SDKs sent it without content
    knows_mistral: bool  # by the names of all its models; before, by "mistral" and "devstral" alone
    mends_calls: bool  # the SDK for Bedrock makes names legal and inputs objects
    spreads_files: bool  # the files of a tool, beside its result, are announced as media; before, as images
    mends_unicode: bool  # half characters become U+FFFD, but not in the input of a call
    drops_bound_thinking: bool  # it has a provider that binds thinking drop what no longer fits, by the model's name
    system_is_item: bool  # OpenAI's Responses API has the system prompt as its first item; not with a login of ChatGPT
    ties_by_id: bool  # of one millisecond, messages go by id; before, by what the database has: see `Message.row`
    bare_prompts: bool  # a prompt is sent as it is; Kilo puts a text behind each, old ones too, and stores none of them
    sends_given_files: bool  # of `send_file`, by which Kilo gives its user a file; it sends the model no such file
    reads_pages: bool  # whole ones: also what a compaction replaced, where it is in the page that this one begins in
    reads_all: bool  # also what a compaction replaced, so a part there that is no JSON stops the request

    @property
    def attached(self) -> str:
        """The words in front of a tool's files, where its result can't hold them."""
        return f"Attached {'media' if self.spreads_files else 'image(s)'} from tool result:"

    def mends_for_mistral(self, provider: str, model: str) -> bool:
        """Whether the client fits a conversation to what models of Mistral take, whoever serves them."""
        names = _MISTRALS if self.knows_mistral else _MISTRALS[:2]
        return provider == "mistral" or any(name in model.lower() for name in names)

    def has_bound_dropped(self, model: str) -> bool:
        """Whether the client asks the provider of `model` to drop thinking that no longer fits: for names it knows."""
        match = _BINDING.search(model) if self.drops_bound_thinking else None
        if match is None:
            return False
        first, number, minor, then = match.groups()
        version = int(number), int(minor or 0)
        return version > (5, 1) or (version == (5, 1) and (first or then or "").lower() != "mythos")

    @classmethod
    def named(cls, name: str) -> Form:
        """Return the form "old": files (held to 1.1.53); "paged": databases before about 1.14 (1.2.1); "new": since
        then (1.18.33).
        """
        return _FORMS[name]


# For models of these names the client sends short ids, and an answer between a tool's result and a prompt.
_MISTRALS = ("mistral", "devstral", "codestral", "pixtral", "mixtral")
# How the client reads the version of a Claude from its name: none from `claude_opus-5-1`, as a proxy may call it.
_BINDING = re.compile(
    r"claude-(?:([a-z]+)-)?([0-9]+)(?:[.-]([0-9]{1,2}))?(?:-([a-z]+))?(?:[.@-]|\Z)", re.IGNORECASE | re.ASCII
)
_FLAGS = len(Form.__dataclass_fields__) - 1


OLD = replace(
    Form("old", *[False] * _FLAGS),
    sends_ignored=True,
    system_is_item=True,
    ties_by_id=True,
    bare_prompts=True,
    sends_given_files=True,
)
NEW = Form("new", *[True] * _FLAGS)


PAGED = replace(OLD, name="paged", reads_pages=True, reverts_parts=True, ties_by_id=False)


# Kilo 7.7.9 sends what 1.18 sends, but for these.
FORK = replace(
    NEW,
    name="fork",
    moves_text=False,
    mends_unicode=False,
    sends_ignored=False,
    bare_prompts=False,
    sends_given_files=False,
)


_FORMS = {form.name: form for form in (OLD, PAGED, NEW, FORK)}
