"""How the fake provider counts tokens, and its words for a request that has too many.

Four characters are a token, an image is 1,600: not what a model counts, but the same each time, as a model's is.
"""

from __future__ import annotations

import json
import re
from typing import Any

PER_TOKEN = 4
IMAGE = 1_600
OUTPUT = 32_000  # what a request may ask for when it does not say

_RETRIED = re.compile("429|50[0234]|524")

TOO_LONG = "prompt is too long: {asked} tokens > {limit} maximum"
SUM = (
    "input length and `max_tokens` exceed context limit: {asked} + {output} > {limit}, decrease input length or "
    "`max_tokens` and try again"
)
NO_NUMBERS = "Prompt exceeds max length"

# Of too many bytes: a 413 of Anthropic, which is what a proxy says too, that tells how many or not; with a 400 Qwen's
# (QwenLM/qwen-code#371) and Moonshot's (MoonshotAI/kimi-code#1862).
TOO_LARGE = "Request exceeds the maximum size"
TOO_LARGE_TOLD = "Request exceeds the maximum size of {limit} bytes"
TOO_LARGE_QWEN = "Exceeded limit on max bytes to request body : {limit}"
TOO_LARGE_MOONSHOT = "total message size {asked} exceeds limit {limit}"


def count(body: dict[str, Any]) -> int:
    """The tokens of a request: system, tools and messages."""
    images = 0

    def bare(value: Any) -> Any:
        nonlocal images
        if isinstance(value, dict):
            if value.get("type") in ("image", "document"):
                images += 1
                return None
            return {key: bare(item) for key, item in value.items() if key != "cache_control"}
        return [bare(item) for item in value] if isinstance(value, list) else value

    said = [bare(body.get(name) or []) for name in ("system", "tools", "messages")]
    return sum(len(json.dumps(one, ensure_ascii=False)) for one in said) // PER_TOKEN + IMAGE * images


def too_long(body: dict[str, Any], limit: int, words: str) -> str | None:
    """The provider's words where a request has more tokens than `limit`; with `SUM` those of the answer count too."""
    asked, output = count(body), int(body.get("max_tokens") or OUTPUT)
    if asked + (output if words == SUM else 0) <= limit:
        return None
    said = words.format(asked=asked, output=output, limit=limit)
    while _RETRIED.search(said):  # 1.18 takes such a number anywhere in an error for a status, and tries again
        asked += 1
        said = words.format(asked=asked, output=output, limit=limit)
    return said
