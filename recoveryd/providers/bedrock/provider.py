"""Claude on Amazon Bedrock: Anthropic's rules behind the Converse API, which takes shorter ids and names of calls."""

from __future__ import annotations

import re
from dataclasses import replace

from recoveryd.providers.anthropic.endpoint import OWN_LIMITS
from recoveryd.providers.anthropic.provider import behind
from recoveryd.providers.endpoint import Endpoint

ENDPOINT = Endpoint(
    "bedrock.converse",
    re.compile(r"/model/[^/]+/converse(?:-stream)?$"),
    providers=re.compile(r"amazon-bedrock"),
    alone=True,
)
BEDROCK = behind(ENDPOINT, "bedrock", "Amazon Bedrock", replace(OWN_LIMITS, longest_name=64, longest_id=64))
