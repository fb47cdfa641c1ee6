"""The steps by which a conversation gets shorter, each from the least harm on: what may go, and what that saves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from recoveryd.core import Block, Edits, Json, Kind, Request, Session, Shortener, merged
from recoveryd.core import edited as with_edits
from recoveryd.repair.extract import extract_before
from recoveryd.repair.inputs import ShortenInput
from recoveryd.repair.measure import Measure
from recoveryd.repair.outline import Outline
from recoveryd.repair.scales import documents

ALONE = 0.25  # of the limit: one thing that is longer is cut first
OUTPUTS_KEPT = 40_000  # tokens of the newest outputs before the last two turns
LONGEST_INPUT = 2_000  # characters of a text in an old input
_LEAST_KEPT = 8_000  # characters of a thing that is cut
_CLEARED = 33  # characters of the words in the place of an output
_TOO_MANY_BYTES = "the request had too many bytes"
_TOO_LONG_WITH_IT = "the conversation is longer than the model takes with it"
_LOOKS = 3  # at what was done: by then it fits, or never does
_EXTRACT = 0.04  # of the target: the extract
SLACK = 0.01  # of the target, for what words in the place of others take


@dataclass(frozen=True, slots=True)
class Saving:
    """One thing that a step may do to `block` for a shorter session, and the tokens that it saves. `do` takes the
    editor of the session as it is by then.
    """

    block: Block
    saves: float
    do: Callable[[Shortener], Edits]

    @property
    def what(self) -> tuple[str, str]:
        """What it is done to: a call and its output are two of a part."""
        return self.block.type, self.block.part_id


@dataclass(slots=True)
class ShorterSoFar:
    """A session as the steps have made it shorter so far, and what it would send.

    `taken` is what was done since the request was built last: `total` is an estimate then.
    """

    case: ShortenInput
    measure: Measure
    target: float
    request: Request  # without any edit, at first
    edits: Edits = ()
    outline: Outline = field(init=False)
    total: float = field(init=False)  # tokens
    taken: set[tuple[str, str]] = field(default_factory=set)
    _edited: tuple[Edits, Session, Shortener] | None = None

    def __post_init__(self) -> None:
        self._weigh()

    @property
    def session(self) -> Session:
        """The session with all edits."""
        return self._now()[0]

    @property
    def editor(self) -> Shortener:
        """The editor of the session with all edits."""
        return self._now()[1]

    def _now(self) -> tuple[Session, Shortener]:
        if self._edited is None or self._edited[0] is not self.edits:
            session = with_edits(self.case.session, self.edits) if self.edits else self.case.session
            self._edited = self.edits, session, self.case.editor(session)
        return self._edited[1:]

    def look(self) -> None:
        """Build the request of what is edited so far, and weigh it."""
        self.request = self.case.wires[0].build(self.session)
        self._weigh()

    def _weigh(self) -> None:
        self.outline = Outline.of(self.request)
        self.total = self.measure.total(self.request)
        self.taken.clear()

    def add(self, deeds: Iterable[Edits]) -> None:
        new = [edit for deed in deeds for edit in deed]
        if new:
            self.edits = merged(self.edits, new, self.case.session)
            self.look()

    def take(self, options: Iterable[Saving], *, ordered: bool = False) -> None:
        """Do so many of `options` that the target is met, by what each is said to save."""
        left = [option for option in options if option.what not in self.taken]
        done = enough_of_the_oldest(left, self.editor, self.need, self.target, ordered=ordered)
        if done:
            self.edits = merged(self.edits, [edit for _, edits in done for edit in edits], self.case.session)
            self.total -= sum(option.saves for option, _ in done)
            self.taken.update(option.what for option, _ in done)

    def back_to(self, edits: Edits) -> None:
        """Go back to where these were all its edits."""
        if edits != self.edits:
            self.edits = edits
            self.look()

    @property
    def need(self) -> float:
        """The tokens that still have to go."""
        return self.total - self.target

    @property
    def fits(self) -> bool:
        """Whether it is within the target, or so near that nothing more is worth its harm."""
        return self.need <= self.target * SLACK


def most_saved(options: Iterable[Saving]) -> float:
    """Count the tokens that a step's options together save, each of a block but once."""
    return sum({option.what: option.saves for option in options}.values())


def enough_of_the_oldest(
    options: Sequence[Saving], editor: Shortener, need: float, target: float, *, ordered: bool
) -> list[tuple[Saving, Edits]]:
    """Choose so many of the oldest that they save `need`; as the last the smallest that does, so that no more goes.

    `ordered`: the oldest in any case, as a provider that binds thinking takes it away from the start alone.
    """
    done: list[tuple[Saving, Edits]] = []
    for at, option in enumerate(options):
        if need <= 0:
            break
        chosen = option
        if option.saves - need > target * SLACK and not ordered:
            fitting = [other for other in options[at:] if other.saves >= need]
            chosen = min(fitting, key=lambda other: other.saves)
        edits = chosen.do(editor)
        if edits:
            done.append((chosen, edits))
            need -= chosen.saves
    while not ordered and len(done) > 1 and need + done[-2][0].saves < -target * SLACK:
        need += done.pop(-2)[0].saves  # the last one is so large that this may stay
    return done


def cut_what_is_huge(work: ShorterSoFar, limit: float) -> None:
    """Cut, as a step, each thing that is a quarter of the limit alone, the longest first, and no more of it than has to
    go.
    """
    found = [(work.measure.tokens(block), block) for block in work.outline.cuttable()]
    for tokens, block in sorted((pair for pair in found if pair[0] > ALONE * limit), key=lambda pair: -pair[0]):
        need = work.need
        if need <= 0:
            return
        length = _length(block)
        # Half a hundredth more: what is put in its place takes some.
        kept = max(_LEAST_KEPT, int(length * (1 - (need + work.target * SLACK / 2) / tokens)))
        if kept < length:
            work.add([work.editor.cut(block, kept)])


def _length(block: Block) -> int:
    content = block.body.get("content") if block.type == "tool_result" else block.body.get("text")
    if isinstance(content, str):
        return len(content)
    texts = content if isinstance(content, (list, tuple)) else ()
    return sum(len(str(item.get("text", ""))) for item in texts)


def oldest_media(work: ShorterSoFar) -> Iterable[Saving]:
    """List, as a step, the images and files."""
    for one in work.outline.placed:
        sources = list(work.case.provider.sources(one.block.body)) if one.block.part_id else []
        if sources:
            yield Saving(one.block, work.measure.part(sources, one.block), partial(_take_out_media, one.block))


def _take_out_media(block: Block, editor: Shortener) -> Edits:
    return editor.take_out_media(block, lambda _: _TOO_MANY_BYTES, _TOO_MANY_BYTES)


def unanswered_documents(work: ShorterSoFar) -> Iterable[Saving]:
    """List, as a step, the documents that no answer stands behind, where it is known what they take, and what the
    client's own does.
    """
    for one in work.outline.placed[work.outline.newest_answer :] if work.measure.base else ():
        block = one.block
        if block.part_id and block.message_id in work.measure.scales.pages and documents(block.body):
            yield Saving(block, work.measure.tokens(block), partial(_take_out_documents, block))


def _take_out_documents(block: Block, editor: Shortener) -> Edits:
    def fault(source: Json) -> str | None:
        return None if str(source.get("media_type")).startswith("image/") else _TOO_LONG_WITH_IT

    return editor.take_out_media(block, fault, _TOO_LONG_WITH_IT)


def old_outputs(work: ShorterSoFar, spare: int = 2) -> Iterable[Saving]:
    """List, as a step, the outputs of tools before the last two turns, but for the newest."""
    old = list(work.outline.outputs(turns=spare))
    kept = 0.0
    for at in range(len(old) - 1, -1, -1):
        kept += work.measure.tokens(old[at]) + _shown(work, old[at])
        if kept > OUTPUTS_KEPT * work.measure.a_token:
            return [_cleared(work, block) for block in old[: at + 1]]
    return []


def present_outputs(work: ShorterSoFar, spare: int = 3) -> Iterable[Saving]:
    """List, as a step, all outputs of tools that are left but the last three."""
    return [_cleared(work, block) for block in work.outline.outputs(last=spare)]


def _cleared(work: ShorterSoFar, block: Block) -> Saving:
    saves = work.measure.part(block.body.get("content"), block) - _CLEARED * work.measure.rate(block)
    return Saving(block, saves + _shown(work, block), lambda editor: editor.clear_output(block))


def _shown(work: ShorterSoFar, block: Block) -> float:
    """Count the tokens of what is sent beside an output, and goes with it."""
    return sum(map(work.measure.tokens, work.outline.shown[block.part_id]))


def old_inputs(work: ShorterSoFar, spare: int = 3) -> Iterable[Saving]:
    """List, as a step, the long inputs of tools, but for the last `spare`."""
    for block in work.outline.calls(last=spare):
        texts = [text for text in _texts(block.body.get("input")) if len(text) > LONGEST_INPUT]
        if texts:
            part = sum(len(text) - LONGEST_INPUT for text in texts) / max(1, sum(map(len, _texts(block.body))))
            saves = work.measure.tokens(block) * part
            yield Saving(block, saves, partial(_cut_input, block))


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list) else []


def oldest_thinking(work: ShorterSoFar) -> Iterable[Saving]:
    """List, as a step, thinking from the start, which leaves what a provider binds in order; not that of the open
    turn, nor that beside a call where each wants its own.
    """
    calls = {block.message_id for block in work.outline.calls(last=0)}
    kept = calls if Kind.REASONING_MISSING in work.case.provider.finds else ()
    for block in work.outline.thinking():
        if block.message_id not in kept:
            yield Saving(block, work.measure.tokens(block), partial(_set_aside, block))


def _cut_input(block: Block, editor: Shortener) -> Edits:
    return editor.cut_input(block, LONGEST_INPUT)


def _set_aside(block: Block, editor: Shortener) -> Edits:
    return editor.set_aside([block], "set_aside_old_thinking")


def replace_by_extract(work: ShorterSoFar) -> bool:
    """Put, as the last step, a compaction in the client's own form in the place of all before a point: as much of the
    end as fits stays, the rest is told in short.
    """
    room = work.target * (1 - _EXTRACT - SLACK) - work.measure.base
    place = work.outline.last_that_fit(room, work.measure.tokens)
    if place is None:
        return False
    room = int(work.target * _EXTRACT / work.measure.usual)
    words = extract_before(work.outline, place, room, work.editor.summaries())
    try:
        edits = work.editor.compact(place, words)
    except ValueError:  # no room between two records
        return False
    work.add([edits])
    return bool(edits)


def make_room(work: ShorterSoFar, limit: float) -> None:
    """Take all steps, until the target is met; else, instead of those behind the first, that of unanswered documents
    and then them, where that does; else the extract.
    """
    if work.fits:
        return
    cut_what_is_huge(work, limit)
    whole = work.edits
    sorts = (old_outputs, present_outputs, old_inputs, oldest_thinking)
    _take_if_enough(work, sorts)
    stripped = work.edits
    if not work.fits and work.measure.scales.pages:
        work.back_to(whole)
        _take_if_enough(work, (unanswered_documents, *sorts))
    if work.fits:
        return
    work.back_to(whole)
    if replace_by_extract(work):
        take(work, [partial(step, spare=1) for step in (old_outputs, present_outputs, old_inputs)])
    else:
        work.back_to(stripped)


def _take_if_enough(work: ShorterSoFar, sorts: Sequence[Callable[[ShorterSoFar], Iterable[Saving]]]) -> None:
    """Take the first of `sorts` that together save enough; nothing where all don't. What a later one of these may do as
    well is left to it, for the one that takes a large thing says what need not go besides.
    """
    known: list[list[Saving]] = []
    for step in sorts:
        options = list(step(work))
        again = {option.what for option in options}
        known = [[option for option in before if option.what not in again] for before in known]
        known.append(options)
        if most_saved(option for options in known for option in options) >= work.need:
            take(work, sorts, known)
            return


def take(
    work: ShorterSoFar,
    sorts: Sequence[Callable[[ShorterSoFar], Iterable[Saving]]],
    known: Sequence[Sequence[Saving]] = (),
) -> None:
    """Do no more of each sort than has to go. What that saves is known before it is looked at, but for a little.

    `known`: what each sort may do, as far as that was found out.
    """
    for _ in range(_LOOKS):
        for number, step in enumerate(sorts):
            if work.fits:
                break
            work.take(known[number] if number < len(known) else step(work), ordered=step is oldest_thinking)
        if not work.taken:
            return
        work.look()
        known = ()
