"""Claude behind LiteLLM: Anthropic's rules hold of what LiteLLM makes of the chat messages.

Such a gateway has any address, and its models any name: its error names whose API refused.
"""

from __future__ import annotations

import re

from recoveryd.providers.anthropic.provider import behind
from recoveryd.providers.endpoint import Endpoint

ENDPOINT = Endpoint("openai.chat", re.compile(r"/chat/completions$"))
LITELLM = behind(ENDPOINT, "litellm", "LiteLLM", protocol="litellm.anthropic", said="anthropicexception", thinks=False)
