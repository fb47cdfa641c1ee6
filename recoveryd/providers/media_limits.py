"""Which images or documents are meant where an error says that one is too large, or too many, and not which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from recoveryd.core import Block, Claims, Json, Limit, Refused, Request

LEAST_BASE64 = 5 * 1024 * 1024  # characters of one, that each provider takes, as far as is known

_LEAST_MB = 10**6 / 2**20  # how much less a megabyte may be than is counted
_HELD_IN = ("data", "image_url", "result")  # by Anthropic; by OpenAI, that of a prompt, and one that the model made
Media = tuple[Block, Json]  # an image or document, and the block that holds it

_WHY: Mapping[Limit | None, str] = {
    Limit.NUMBER: "there were more than the provider takes",
    Limit.REQUEST: "the request had more bytes than the provider takes",
}


def claimed_fault(claims: Claims) -> str:
    """Tell, as half a sentence, why an image or document that an error means is taken out."""
    return _WHY.get(claims.over, "the provider does not take it")


def not_answered(request: Request, held: Sequence[Media]) -> Sequence[Media]:
    """Choose of `held` those that no answer of the model that is asked stands behind, as it was sent the others before,
    and went on; all, where it was sent every one: not each client tells which model answered.
    """
    return new_of(request, held) or held


def new_of(request: Request, held: Sequence[Media]) -> Sequence[Media]:
    """Choose of `held` those that no answer of the model that is asked stands behind.

    What the model gave last, in one go, may hold one itself.
    """
    answers = [
        turn.role == "assistant" and any(message not in request.by_others for message, _ in turn.origins)
        for turn in request.turns
    ]
    start = len(answers) - 1 - answers[::-1].index(True) if True in answers else 0
    while start > 0 and answers[start - 1]:
        start -= 1
    behind = {id(block) for turn in request.turns[start:] for block in turn.blocks}
    return [one for one in held if id(one[0]) in behind]


def only_new(request: Request, held: Sequence[Media]) -> Sequence[Media]:
    """Return the one of `held` that there is, or that no answer stands behind; nothing where there are several such."""
    new = not_answered(request, held)
    return new if len(new) == 1 else ()


def believed(
    refused: Refused, request: Request, placed: Sequence[Media], held: Sequence[Media], found: Iterable[Block]
) -> Sequence[Media]:
    """Choose of `placed`, which stand at the place that an error names, those that may be meant: plugins add and drop
    messages of a request, so another may have stood there.

    Not one that is lighter than the number of bytes that is named, and not one that the model that is asked has
    answered, where another of `held` is new; none where the rules find a new one, in a block of `found`: what is meant
    besides, the next refusal names. How many pixels a side may have depends on how many images there are: there an
    answered one may be meant, unless the rules find any. What is to be fetched may be gone since: that is believed. So
    are all where the session does not tell which model answered.
    """
    found = [*found]
    new = {block.part_id for block, _ in new_of(request, held)}
    if refused.over is Limit.BYTES:
        placed = [one for one in placed if _is_fetched(one[1]) or not _is_lighter(one[1], refused.limit)]
    if refused.over is Limit.SIDES:
        return () if found else placed
    if not request.models_told or not new:
        return placed
    unexplained = new.isdisjoint(block.part_id for block in found)
    return [one for one in placed if _is_fetched(one[1]) or (unexplained and one[0].part_id in new)]


def _is_lighter(source: Json, limit: int) -> bool:
    """Whether an image has fewer than so many bytes, however these and a megabyte are counted. One that is held in
    another way (text, say) may have any number.
    """
    held = next((held for name in _HELD_IN if isinstance(held := source.get(name), str)), None)
    return held is not None and len(held) < limit * _LEAST_MB


def _is_fetched(source: Json) -> bool:
    """Whether the provider is to fetch an image or document itself."""
    place = str(source.get("image_url", ""))
    return source.get("type") in ("url", "file") or "file_id" in source or place.startswith(("http://", "https://"))


def unreadable(refused: Refused, request: Request, held: Sequence[Media]) -> Sequence[Media]:
    """Return what an error means that says of one image or document that it can't be read, and not of which: the only
    one, or the only one that no answer stands behind. Where none that may be meant stands at the place that is named,
    it is another request than is known: then the only new one, and where the session does not tell which model
    answered, only if there is no other.
    """
    if not refused.of_one or refused.of_none or refused.sort == "file":  # sound, or a film, which is not among `held`
        return ()
    if refused.position is not None:
        held = new_of(request, held) if request.models_told or len(held) == 1 else ()
    found = only_new(request, held)
    return [one for one in found if not refused.media_types or one[1].get("media_type") in refused.media_types]


def too_large(
    refused: Refused, request: Request, held: Sequence[Media], weigh: Callable[[Json], int]
) -> Sequence[Media]:
    """Choose of `held` those that are meant: the only one; those above the number of bytes that is named, or else the
    heaviest. Where bytes tell nothing, the only one that no answer stands behind, unless it is said of bytes, or maybe
    of them, and a heavier one is there.

    Where bytes or sides may be meant, one that the model that is asked has answered is not. `weigh` returns the bytes
    of one, as it is sent.
    """
    unanswered = not_answered(request, held)
    if refused.over is Limit.SIZE and request.models_told and not refused.limit:
        held = unanswered
    if len(held) < 2:
        return held
    plausible = list(held)
    if refused.over is not Limit.SIDES:
        weights = [weigh(source) for _, source in held]
        heaviest = max(weights)
        most = refused.limit or max(LEAST_BASE64, heaviest) - 1
        heavy = [one for one, weight in zip(held, weights, strict=True) if weight > most]
        if heavy or refused.limit:
            return heavy
        plausible = [one for one, weight in zip(held, weights, strict=True) if weight == heaviest]
    return unanswered if len(unanswered) == 1 and unanswered[0] in plausible else ()


def too_many(refused: Refused, held: Sequence[Media]) -> Sequence[Media]:
    """Choose the oldest of `held`, so many as are too many in a request; none where that is not told."""
    return held[: len(held) - refused.most_media] if 0 < refused.most_media < len(held) else ()
