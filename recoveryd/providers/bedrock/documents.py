"""What Amazon Bedrock refuses of the names of documents: characters, and two that have the same.

From its own sentences, and from public threads: an underscore is taken, "/" and "." are not (vercel/ai 20365, 20366).
Looked for only where an error says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recoveryd.core import Block, Claims, Kind, Refused, Request, Violation

_LEGAL = re.compile(r"(?!.*  )[a-zA-Z0-9_()\[\] -]{1,200}")
_CHARACTERS, _TWICE = "document file name can only contain", "duplicate document names"
_WHY = {
    _CHARACTERS: "the provider does not take the name of this document",
    _TWICE: "another document has the same name",
}


def claimed(refused: Refused, request: Request) -> frozenset[tuple[str, str]]:
    """Name the documents that an error means by their names, for `Claims.fields`."""
    return frozenset((block.part_id, "title") for _, block, said in _refused(request) if said == refused.said)


def check(request: Request, claims: Claims) -> Iterator[Violation]:
    """List the documents that an error means whose names still are refused."""
    for turn, block, said in _refused(request) if claims.fields else ():
        if (block.part_id, "title") in claims.fields:
            yield Violation(Kind.MEDIA_REJECTED, turn, block, _WHY[said], field="title")


def _refused(request: Request) -> Iterator[tuple[int, Block, str]]:
    """Go through the documents whose names Bedrock refuses, each with its turn and the sentence.

    Those without a name are sent as "document-1", "document-2" …, whatever the others are called.
    """
    nameless = sum(block.type == "document" and "title" not in block.body for block in request.blocks())
    seen = {f"document-{number + 1}" for number in range(nameless)}
    for number, turn in enumerate(request.turns):
        for block in turn.blocks:
            name = block.body.get("title")
            if block.type != "document" or not isinstance(name, str):
                continue
            if _LEGAL.fullmatch(name) is None:
                yield number, block, _CHARACTERS
            elif name in seen:
                yield number, block, _TWICE
            seen.add(name)
