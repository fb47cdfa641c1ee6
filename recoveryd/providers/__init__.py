"""What a provider refuses of a request, and its words for it: one folder a family of rules. Pure.

Imports `core` alone. Everybody asks `find` for the provider; nobody outside names one.
"""

from __future__ import annotations

from recoveryd.providers.base import Provider
from recoveryd.providers.find import (
    LIKELY,
    MODEL_WORDS,
    SURE,
    binds_thinking,
    provider_of,
    rules_for,
    size_of,
    whose,
    why_unknown,
)
from recoveryd.providers.no_rules import NO_RULES
from recoveryd.providers.rules_version import VERSION
from recoveryd.providers.sentences.classify import candidates, classify
from recoveryd.providers.sentences.other_causes import other_cause, turned_away
from recoveryd.providers.sentences.rows import squeeze

__all__ = [
    "LIKELY",
    "MODEL_WORDS",
    "NO_RULES",
    "SURE",
    "VERSION",
    "Provider",
    "binds_thinking",
    "candidates",
    "classify",
    "other_cause",
    "provider_of",
    "rules_for",
    "size_of",
    "squeeze",
    "turned_away",
    "whose",
    "why_unknown",
]
