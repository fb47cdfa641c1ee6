"""Claude behind GitHub Copilot: Anthropic's rules hold of what Copilot makes of the chat messages.

It also takes requests in Anthropic's own form: without an address it may have been either.
"""

from __future__ import annotations

import re
from dataclasses import replace

from recoveryd.providers.anthropic.provider import behind
from recoveryd.providers.endpoint import Endpoint

ENDPOINT = Endpoint(
    "copilot.chat",
    re.compile(r"/chat/completions$"),
    ("githubcopilot.com",),
    re.compile(r"github-copilot(?:-enterprise)?"),
)
COPILOT = behind(ENDPOINT, "copilot", "GitHub Copilot")
COPILOT = replace(COPILOT, protocols=COPILOT.protocols | {"anthropic.messages"})
