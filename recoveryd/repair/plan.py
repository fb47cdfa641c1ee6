"""From a refused session to the cheapest edits that the rules accept, or to an honest refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recoveryd.core import (
    KINDS,
    Block,
    Claims,
    Edit,
    Kind,
    Limit,
    Refusal,
    Request,
    Session,
    Violation,
    Wire,
    explained_by,
    without_collector,
)
from recoveryd.providers import Provider, named_block
from recoveryd.repair.fixes import REPAIRS
from recoveryd.repair.inputs import PlanInput
from recoveryd.repair.search import Search

NOTHING_EXPLAINS = "the rules find nothing in the stored session that explains this error"
WHICH_IS_NOT_KNOWN = (
    "it is not known which image or document the error means, or it is one that recoveryd does not take out"
)
_OF_ALL = (Limit.NUMBER, Limit.REQUEST)  # said of all images of a request together


@dataclass(frozen=True, slots=True)
class Plan:
    """What `plan` found: edits whose result the rules accept, what they objected to before, to which parts (ids), and
    the claims that they were asked with.
    """

    edits: tuple[Edit, ...]
    kinds: tuple[Kind, ...]
    accused: tuple[str, ...]
    claims: Claims


@without_collector()
def plan(given: PlanInput) -> Plan | Refusal:
    """Plan the cheapest edits after which the next prompt is accepted; checked by the rules, not assumed."""
    said = given.evidence.kind
    about = KINDS[said]
    if (said not in REPAIRS and not about.signature) or (about.offer and said not in given.provider.finds):
        return Refusal(about.unrepaired or "this kind of failure is not repaired by editing the store")
    claims = given.claims or claims_of(given, given.wires[0].build(given.session))
    # A provider says either kind of a rejected signature, and the rules find one of them: who allowed what was said
    # means both.
    allowed = given.kinds | explained_by(said) if about.signature else given.kinds
    search = Search(
        given.session, given.wires, given.provider, given.editor, claims, given.settings, allowed, binds=given.binds
    )
    kinds = tuple(dict.fromkeys(violation.kind for violation in search.found))
    if all(explained_by(kind).isdisjoint(kinds) for kind in (said, *given.known)):
        return Refusal(WHICH_IS_NOT_KNOWN if _of_one_of_several(given) else NOTHING_EXPLAINS, understood=False)
    edits = search.run()
    accused = tuple(found.block.part_id if found.block else found.part_id for found in search.found)
    return edits if isinstance(edits, Refusal) else Plan(edits, kinds, accused, claims)


def objections(session: Session, wires: Sequence[Wire], provider: Provider, claims: Claims) -> list[Violation]:
    """List what the rules that a plan was made by still refuse of a session as it was read back; nothing, if it is
    healed.
    """
    return [violation for wire in wires for violation in provider.check(wire.build(session), claims)]


def claims_of(given: PlanInput, request: Request) -> Claims:
    """Look up, before planning, what the error tells of the request that failed, not of the stored list."""
    named = _named(given)
    claims = given.provider.claims(given.evidence, _with_models(given, request), named)
    if claims.media and claims.over not in _OF_ALL:  # what was not sent then, or is not now, leaves no other to blame
        then = given.provider.claims(given.evidence, _with_models(given, _asked(given)), named)
        claims = replace(claims, media=claims.media & then.media)
    if KINDS[given.evidence.kind].signature and not given.settings.keep_thinking:
        thinking = frozenset(b.part_id for b in request.blocks() if b.is_thinking)
        return replace(claims, accused=claims.accused | thinking)
    return claims


def _with_models(given: PlanInput, request: Request) -> Request:
    """Return a request with what is known of the models that gave the session's answers."""
    told = any("modelID" in message.data for message in given.session.messages if message.role == "assistant")
    return replace(request, by_others=given.by_others, models_told=told)


def _asked(given: PlanInput) -> Request:
    """Build the request that failed."""
    return given.wires[0].stored(given.session.until(given.failure.message))


def _of_one_of_several(given: PlanInput) -> bool:
    """Whether an error is of an image or document, not of all of a request: it stands at a place, or some are sent.
    Where it says how many there may be, more than those.
    """
    said = given.evidence
    if said.kind is not Kind.MEDIA_REJECTED or said.over is Limit.REQUEST:
        return False
    sent = given.wires[0].build(given.session).blocks()
    many = sum(1 for block in sent for _ in given.provider.sources(block.body))
    return many > said.most_media if said.most_media else said.position is not None or many > 0


def _named(given: PlanInput) -> Block | None:
    """Find the block that the error names in the request that failed."""
    if given.evidence.position is None:
        return None
    return named_block(given.provider, given.evidence, _asked(given))
