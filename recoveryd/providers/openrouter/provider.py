"""Claude behind OpenRouter: Anthropic's rules hold of what OpenRouter makes of the chat messages."""

from __future__ import annotations

import re
from dataclasses import replace

from recoveryd.providers.anthropic.provider import behind
from recoveryd.providers.endpoint import Endpoint

ENDPOINT = Endpoint("openrouter.chat", re.compile(r"/chat/completions$"), ("openrouter.ai",), re.compile(r"openrouter"))
OPENROUTER = behind(ENDPOINT, "openrouter", "OpenRouter", also=" and Kimi")
# Kilo's own gateway passes on to OpenRouter what it is asked at this path, and has one for Anthropic's form: without an
# address it may have been either.
_KILO_PATH = re.compile(r"/api/openrouter/chat/completions$")
_KILO = Endpoint("openrouter.chat", _KILO_PATH, providers=re.compile("kilo"), alone=True)
KILO = behind(_KILO, "kilo", "Kilo's gateway")
KILO = replace(KILO, protocols=KILO.protocols | {"anthropic.messages"})
