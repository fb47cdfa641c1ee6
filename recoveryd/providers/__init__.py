"""What a provider refuses of a request, and its words for it: one folder a family of rules. Pure.

Imports `core` alone. Everybody asks `find` for the provider; nobody outside names one.
"""

from __future__ import annotations

from recoveryd.providers.base import Provider, check_either_way, named_block
from recoveryd.providers.find import (
    MODEL_WORDS,
    binds_thinking,
    families_with,
    provider_of,
    rules_for,
    size_of,
    takes_alike,
    why_unknown,
)
from recoveryd.providers.no_rules import NO_RULES
from recoveryd.providers.rules_version import VERSION
from recoveryd.providers.sentences.classify import candidates, classify, known_sentences
from recoveryd.providers.sentences.other_causes import other_cause, over_rate, turned_away
from recoveryd.providers.sentences.sizes import speaks_of_length

__all__ = [
    "MODEL_WORDS",
    "NO_RULES",
    "VERSION",
    "Provider",
    "binds_thinking",
    "candidates",
    "check_either_way",
    "classify",
    "families_with",
    "known_sentences",
    "named_block",
    "other_cause",
    "over_rate",
    "provider_of",
    "rules_for",
    "size_of",
    "speaks_of_length",
    "takes_alike",
    "turned_away",
    "why_unknown",
]
