"""What to write about a stuck session, of whatever kind, and how to tell that what is read back is sound."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recoveryd.clients.base import Store
from recoveryd.clients.opencode import interrupted_turn, wrapped_ids
from recoveryd.clients.opencode.editor import OpencodeEditor
from recoveryd.clients.opencode.holders import Holders
from recoveryd.clients.opencode.server import Client
from recoveryd.clients.opencode.versions import forms_of, goes_by_ids
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.core.editor import Marks
from recoveryd.core.errors import ActiveError, LeftAloneError
from recoveryd.core.kinds import UNREPAIRED
from recoveryd.core.model import Change, Edit, Failure, Kind, Refusal, Session
from recoveryd.core.violation import Claims
from recoveryd.providers.anthropic.provider import ANTHROPIC
from recoveryd.providers.find import family, unknown
from recoveryd.providers.sentences.classify import named_ids, position
from recoveryd.repair.kinds import Settings
from recoveryd.repair.plan import Case, Evidence, objections, plan
from recoveryd.settings.load import Config
from recoveryd.settings.overrides import left_alone
from recoveryd.tell.actions import actions_of, sentence
from recoveryd.tell.where import places


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that heal a session. `objections` says what is still wrong with it, as it is read back; nothing: healed.

    `detail` says what was done once it is, `would` the same before, each with `also`. `places` says of each action
    where it is done; a renaming has neither places nor edits. `kinds` are what the rules found wrong, also before an
    earlier proposal was written; `claims` are what the provider's error said. Both are for a second plan.
    """

    changes: tuple[Change, ...]
    actions: tuple[str, ...]
    kind: Kind
    objections: Callable[[Session], Sequence[str]]
    kinds: tuple[Kind, ...]
    edits: tuple[Edit, ...] = ()
    places: tuple[str, ...] = ()
    claims: Claims | None = None
    also: str = ""

    @property
    def detail(self) -> str:
        return sentence(self.actions, self.kind) + self.also

    @property
    def would(self) -> str:
        return sentence(self.actions, self.kind, done=False) + self.also

    @property
    def parts(self) -> tuple[str, ...]:
        """Those that are edited."""
        return tuple(dict.fromkeys(edit.part_id for edit in self.edits if edit.part_id))


class Proposer:
    """Makes proposals by the configuration, and what the user ordered since. Writes nothing; errors of the store pass.

    ActiveError: what is to be ended may still be under way. LeftAloneError: the user wants it so.
    """

    def __init__(
        self,
        config: Config,
        state_dir: Path,
        client: Client,
        holders: Holders,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._state_dir = state_dir
        self._client = client
        self._holders = holders
        self._clock = clock

    def propose(
        self, store: Store, session: Session, failure: Failure, kind: Kind, name: str, earlier: Proposal | None = None
    ) -> Proposal | Refusal:
        """`name` is the recovery's id; `earlier` is what was proposed for the same failure before the client wrote."""
        if left_alone(self._config, self._state_dir, store, session.id):
            raise LeftAloneError("You said to leave this session or folder alone (`recoveryd ignore` lists both).")
        if kind not in self._config.kinds:
            return Refusal(f"{kind} is not among the kinds that your configuration names")
        if kind is Kind.WRAPPED_IDS:
            return self._renaming(store, session)
        if kind is Kind.INTERRUPTED_TURN:
            return self._ending(store, session, name)
        return self._editing(store, session, failure, kind, name, earlier)

    def _editing(
        self, store: Store, session: Session, failure: Failure, kind: Kind, name: str, earlier: Proposal | None
    ) -> Proposal | Refusal:
        if kind not in UNREPAIRED and family(failure) is None:
            reason = f"{unknown(failure)}, so nothing can be proved"
            return Refusal(f"{reason}: choose another model, or start a new session")
        # Of other kinds a turn that runs is left alone in any case; this one it may look like.
        busy = self._holders.at_work(store, session, self._client) if kind is Kind.UNSENDABLE_PART else None
        if busy is not None:
            raise ActiveError(f"It is left alone: {busy}.")
        settings = Settings(self._config.placeholder, self._config.cancelled_text, self._config.keep_thinking)
        evidence = Evidence(kind, named_ids(failure.error), position(failure.error))
        claims, known = (earlier.claims, earlier.kinds) if earlier else (None, ())
        forms = forms_of(store, self._client, session.id)
        editor = partial(OpencodeEditor, marks=Marks(name, int(self._clock() * 1000)))
        kinds, wires = frozenset(self._config.kinds), wires_of(failure, forms)
        planned = plan(Case(session, failure, evidence, settings, wires, ANTHROPIC, editor, claims, kinds, known))
        if isinstance(planned, Refusal):
            return planned
        asked = planned.claims
        return Proposal(
            changes=tuple(store.changes(session, planned.edits)),
            actions=actions_of(planned.edits),
            kind=kind,
            objections=lambda found: [v.reason for v in objections(found, wires_of(failure, forms), ANTHROPIC, asked)],
            kinds=tuple(dict.fromkeys((*known, *planned.kinds))),
            edits=planned.edits,
            places=places(session, planned.edits),
            claims=asked,
        )

    def _renaming(self, store: Store, session: Session) -> Proposal | Refusal:
        if not goes_by_ids(store, self._client, session.id):
            return Refusal("the OpenCode that uses this store goes by time, not by ids: it needs no repair")
        now = int(self._clock() * 1000)
        found = wrapped_ids.wrapped(session, now)
        if found is None:
            return Refusal("its ids are in the order of time", understood=False)
        foreign = store.strangers(session.id)
        if foreign:
            return Refusal(f"{foreign[0]} lies among its files and can't be given another id; see `recoveryd doctor`")
        names = wrapped_ids.new_ids(found)
        if isinstance(names, Refusal):
            return names
        kept = wrapped_ids.taken_by_revert(session, found)
        also = f"; a revert is staged, and the next prompt takes back {len(kept)} newer ones with it" if kept else ""
        order = [names.get(message.id, message.id) for message in (*found.old, *found.new)]
        return Proposal(
            changes=tuple(store.renamed(session, names, kept)),
            actions=("renumber",) * len(found.old),
            kind=Kind.WRAPPED_IDS,
            objections=lambda read: (
                [] if wrapped_ids.in_order(read, order) else ["its ids are not in the order of time"]
            ),
            kinds=(Kind.WRAPPED_IDS,),
            also=also,
        )

    def _ending(self, store: Store, session: Session, name: str) -> Proposal | Refusal:
        busy = self._holders.under_way(store, session.id)
        if busy is not None:
            raise ActiveError(f"It is left alone: {busy}.")
        now = int(self._clock() * 1000)
        edits = interrupted_turn.ended(session, name, now)
        if not edits:
            return Refusal("no turn of it is open", understood=False)
        return Proposal(
            changes=tuple(store.changes(session, edits)),
            actions=actions_of(edits),
            kind=Kind.INTERRUPTED_TURN,
            objections=lambda found: [
                f"{e.message_id} is still open" for e in interrupted_turn.ended(found, name, now)
            ],
            kinds=(Kind.INTERRUPTED_TURN,),
            edits=edits,
            places=places(session, edits),
        )
