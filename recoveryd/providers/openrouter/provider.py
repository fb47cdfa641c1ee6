"""Claude behind OpenRouter: Anthropic's rules hold of what OpenRouter makes of the chat messages."""

from __future__ import annotations

import re

from recoveryd.providers.anthropic.provider import behind
from recoveryd.providers.endpoint import Endpoint

ENDPOINT = Endpoint("openrouter.chat", re.compile(r"/chat/completions$"), ("openrouter.ai",), re.compile(r"openrouter"))
OPENROUTER = behind(ENDPOINT, "openrouter", "OpenRouter", also=" and Kimi")
# Kilo's own gateway passes on to OpenRouter what it is asked at this path.
_KILO = Endpoint("openrouter.chat", re.compile(r"/api/openrouter/chat/completions$"), alone=True)
KILO = behind(_KILO, "kilo", "Kilo's gateway")
