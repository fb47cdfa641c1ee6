"""Put Gemini's rules behind the port that the planner asks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recoveryd.core import Block, CallLimits, Claims, Failure, Json, Kind, Refused, Request, Violation, kind_info
from recoveryd.providers.base import BindsNothing
from recoveryd.providers.endpoint import Endpoint

_PATH = re.compile(r"/models/[^/]+:(?:streamG|g)enerateContent$")
_ENDPOINTS = (
    Endpoint("google.generate", _PATH, providers=re.compile(r"google"), alone=True),
    Endpoint("google.vertex", _PATH, providers=re.compile(r"google-vertex"), alone=True),
)
_MODEL = re.compile(r"gemini")


class Gemini(BindsNothing):
    """The Gemini API, as Google AI Studio and Vertex serve it. Its signatures are bound to nothing before them."""

    name = "gemini"
    whose = "Gemini by Google's API or on Vertex"
    protocols = frozenset(endpoint.protocol for endpoint in _ENDPOINTS)
    finds = frozenset(
        {
            Kind.THINKING_SIGNATURE_INVALID,
            Kind.TOOL_RESULT_MISSING,
            Kind.TOOL_CALL_INVALID,
            Kind.EMPTY_CONTENT,
            Kind.INVALID_UNICODE,
            Kind.MEDIA_REJECTED,
            Kind.ROLE_ORDER,
        }
    )

    @property
    def call_limits(self) -> CallLimits:
        from recoveryd.providers.gemini import rules  # late, as all below: only a stuck session needs them

        return rules.LIMITS

    def spoke(self, failure: Failure) -> bool:
        return _asked(failure) and _MODEL.search(failure.model.lower()) is not None

    def disowned(self, failure: Failure) -> str:
        if not _asked(failure):
            return ""
        return "of the models of Google only the rules of Gemini are known to recoveryd"

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        from recoveryd.providers.gemini import rules

        return rules.check(request, claims)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        """Its errors name places that only some of its sentences have, and one fault of many: the rules find all."""
        del named
        if not kind_info(refused.kind).signature and refused.kind not in (Kind.MEDIA_REJECTED, Kind.TOOL_CALL_INVALID):
            return Claims()
        from recoveryd.providers.gemini import rules

        return rules.claims(refused, request)

    def sources(self, body: Json) -> Iterator[Json]:
        from recoveryd.providers.gemini import media

        return media.sources(body)


def _asked(failure: Failure) -> bool:
    return any(endpoint.spoke(failure) for endpoint in _ENDPOINTS)


GEMINI = Gemini()
