"""Claude on Amazon Bedrock: Anthropic's rules behind the Converse API, which takes shorter ids and names of calls."""

from __future__ import annotations

import re
from dataclasses import replace

from recoveryd.core import Block, Claims, Refused, Request, Violation
from recoveryd.providers.anthropic.endpoint import OWN_LIMITS
from recoveryd.providers.anthropic.provider import Anthropic, behind
from recoveryd.providers.bedrock import documents
from recoveryd.providers.endpoint import Endpoint


class _Bedrock(Anthropic):
    """Anthropic's rules, and Bedrock's own of the names of documents."""

    def check(self, request: Request, claims: Claims) -> list[Violation]:
        found = [*super().check(request, claims), *documents.check(request, claims)]
        return sorted(found, key=lambda violation: violation.turn)

    def claims(self, refused: Refused, request: Request, named: Block | None) -> Claims:
        return replace(super().claims(refused, request, named), fields=documents.claimed(refused, request))


ENDPOINT = Endpoint(
    "bedrock.converse",
    re.compile(r"/model/[^/]+/converse(?:-stream)?$"),
    providers=re.compile(r"amazon-bedrock"),
    alone=True,
)
BEDROCK = behind(
    ENDPOINT, "bedrock", "Amazon Bedrock", replace(OWN_LIMITS, longest_name=64, longest_id=64), of=_Bedrock
)
