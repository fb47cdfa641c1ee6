"""OpenCode behind the port of a client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from recoveryd.clients.client import Client, Cure, Prompt, ShellSettings
from recoveryd.clients.opencode import (
    processes,
    prompting,
    records,
    wrapped_ids,
)
from recoveryd.clients.opencode.configured_sdks import asks_its_maker, reasoning_advice
from recoveryd.clients.opencode.error_record import by_own_runtime
from recoveryd.clients.opencode.opencode_store import of_opencode
from recoveryd.clients.opencode.plugin_file import OpencodePlugin
from recoveryd.clients.opencode.running_turns import RunningTurns
from recoveryd.clients.opencode.server import OpencodeServer
from recoveryd.clients.opencode.settings import OpencodeSettings
from recoveryd.clients.opencode.store_paths import config_home
from recoveryd.clients.opencode.stores import find_stores
from recoveryd.clients.opencode.versions import as_signed_in, forms_of, goes_by_ids, protocols_of, versions_tested
from recoveryd.clients.opencode.wire import wires_of
from recoveryd.clients.plugin import Plugin
from recoveryd.clients.shortening import Shortening
from recoveryd.clients.store import Generation, Store
from recoveryd.clients.whose_subagent import is_of_subagent
from recoveryd.core import (
    ActiveError,
    Block,
    Change,
    Check,
    ConfigProblem,
    Diagnosis,
    Editor,
    Edits,
    Failure,
    Json,
    Kind,
    Marks,
    Message,
    RecordedError,
    RecoverydError,
    Refusal,
    Session,
    Wire,
    clean,
)

_NAME_LENGTH = 40  # characters of an agent's name that are told
_CLEARS_S = 3.0  # after a refusal: it clears within 50 ms (measured), on a machine that is not busy


class Opencode:
    """The `Client` of OpenCode's sessions. `minutes` without a write are waited for before a turn counts as cut off."""

    name = "opencode"
    title = records.TITLE
    reads_once = False
    edits_shift = False
    mends = ""
    listens = True  # at ports that are looked for
    speaks_at_limit = True  # at an agent's limit of steps it ends the request with words that are the assistant's
    # Its copy of all (`--fork`) is refused as well, and so is /compact before 1.14 (python -m tests.e2e.next_steps), of
    # too many bytes (413), too: it sends all but old tool outputs. 1.18 compacts by itself then.
    way_back = "go on in a copy: type /fork, and choose the last prompt that was answered"

    def __init__(self, settings: OpencodeSettings, minutes: float, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self.server = OpencodeServer(settings, self.name, by_port=self.listens)
        self._clock = clock
        self._running_turns = RunningTurns(minutes, clock)

    def stores(self, env: Mapping[str, str]) -> Sequence[Store]:
        return find_stores(self._settings, env)

    def config_problems(self) -> Iterator[ConfigProblem]:
        from recoveryd.clients.opencode import config_problems  # late, as all that `doctor` and `install` ask for

        return config_problems.config_problems(self._settings)

    def shell_settings(self, service: Client, env: Mapping[str, str], state: Path) -> ShellSettings:
        from recoveryd.clients.opencode import shell_settings

        assert isinstance(service, Opencode)
        return shell_settings.missing_settings(self._settings, service._settings, env, state)

    def plugin(self, env: Mapping[str, str]) -> Plugin | None:
        return OpencodePlugin(self.name, config_home(env) / "opencode", processes.NAMES)

    def wires(self, store: Store, failure: Failure) -> Sequence[Wire]:
        forms = forms_of(store, self.server, failure.session)
        spoken = protocols_of(store, failure, forms)
        sent = as_signed_in(store, failure, forms)
        return [wire for protocol in spoken for wire in wires_of(failure, protocol, sent)]

    def advice(self, store: Store, failure: Failure, kind: Kind) -> str:
        """Name an agent's limit of steps where a request ended with the assistant's words, or as `reasoning_advice`."""
        if kind is Kind.ASSISTANT_PREFILL and self.speaks_at_limit:
            agent = clean(self.last_prompt(store.load(failure.session)).agent or "", _NAME_LENGTH)
            limit = f"raise or remove the limit of its agent {agent}".rstrip()
            speaks = f"there {self.title} ends a request with the assistant's words"
            return f"{limit} (`steps`, or `maxSteps`), if it has one: {speaks}"
        if kind is not Kind.REASONING_MISSING:
            return ""
        return reasoning_advice(failure, failure.folder or store.about(failure.session).directory, self.name)

    def heals(self, kind: Kind, block: Block | None = None, error: RecordedError | None = None) -> bool:
        """Say no: what it mends before it sends anything, its wire shows; once refused, it changes nothing."""
        del kind, block, error
        return False

    def editor(self, marks: Marks) -> Callable[[Session], Editor]:
        from recoveryd.clients.opencode.editor import OpencodeEditor  # late: only a repair needs it

        return partial(OpencodeEditor, marks=marks)

    def shortening(self, store: Store, session: Session, failure: Failure, marks: Marks) -> Shortening:
        from recoveryd.clients.opencode import compactions, error_record, limits, pruning, token_usage
        from recoveryd.clients.opencode.shortener import OpencodeShortener
        from recoveryd.clients.opencode.wire.compatible import weighed

        directory = store.about(session.id).directory
        forms = forms_of(store, self.server, failure.session)
        old = all(not form.keeps_compaction_tail for form in forms)
        editor = partial(OpencodeShortener, marks=marks, folder=str(_cut_outputs(store)), saved=cache(_text_in))
        context = limits.context_limit(self.server, store, failure, directory)
        logged, says_client = limits.logged_refusal(store, session, failure), compactions.says_client(failure.error)
        failed = session.message(failure.message)
        failed_at = max(failure.time, failed.completed if failed is not None else 0)
        return Shortening(
            editor=editor,
            usages=tuple(token_usage.usages(session, failure)),
            left=token_usage.left_over(session, failure),
            wholes=lambda found, edits: {Path(path): text for path, text in editor(found).wholes(edits).items()},
            logged=logged,
            says_client=says_client,
            unlogged=says_client and logged is None and marks.now - failed_at < limits.LOGGED_BY_MS,
            earlier=tuple(error_record.refusals(session, failure)),
            context=context or 0,
            unanswered=context is None,
            without_base=compactions.is_summary(session, failure.message),
            cleared_since=pruning.cleared_since(session, failure.time, marks.recovery),
            by_itself=self._by_itself(store, session, failure, directory) if old else (),
            drops_bound=all(form.has_bound_dropped(failure.called or failure.model) for form in forms),
            weighed=weighed,
        )

    def _by_itself(self, store: Store, session: Session, failure: Failure, directory: str) -> Edits:
        """Make the edits that the client is about to make: at the end of the turn that failed, or of the next."""
        from recoveryd.clients.opencode import limits, pruning

        now, then = pruning.pruned(session, 0), pruning.pruned(session, 1)
        clears = limits.clears_by_settings(self.server, store, failure, directory) if now or then else False
        if clears is None and now and 0 <= self._clock() - failure.time / 1000 < _CLEARS_S:
            raise ActiveError("OpenCode may be about to clear old outputs itself.")
        # What it could have cleared after the refusal and did not, it does not clear.
        return () if clears is False or (clears is None and now) else now or then

    def put_beside(self, store: Store, changes: Sequence[Change]) -> Mapping[Path, str]:
        from recoveryd.clients.opencode.shortener import put_beside

        def said(image: bytes | None) -> Json | None:
            return None if image is None else store.content.said(image)

        parts = [change for change in changes if store.content.is_part(change.key)]
        records = ((Path(c.key).name.removesuffix(".json"), said(c.before), said(c.after)) for c in parts)
        return {Path(path): text for path, text in put_beside(str(_cut_outputs(store)), records).items()}

    def hidden(self, store: Store, session: str) -> Diagnosis | None:
        """Look for hidden messages; only sessions that name a tail are read."""
        if "new" not in of_opencode(store).forms() or not of_opencode(store).names_tail(session):
            return None
        from recoveryd.clients.opencode import client_faults

        return client_faults.hidden_by_compaction(store.load(session), self.name)

    def next_failure(self, session: Session) -> Failure | None:
        from recoveryd.clients.opencode import client_faults

        return client_faults.next_failure(session, self.name)

    def asks_its_maker(self, session: Session, failure: Failure) -> bool:
        return asks_its_maker(failure.provider, session.directory, failure.error.url, client=self.name)

    def resumed_by(self, message: Message) -> str | None:
        return prompting.resumed_by(message)

    def by_shell(self, message: Message) -> bool:
        by_command = prompting.by_shell(message, (part.data for part in message.parts))
        return by_command or prompting.put_in_by_repair(message, lambda _: [part.data for part in message.parts])

    def last_prompt(self, session: Session) -> Prompt:
        return prompting.last_prompt(session)

    def stopped(self, message: Message) -> bool:
        return prompting.stopped(message)

    def ids_started_again(self, store: Store, session: str, now: float) -> Diagnosis | None:
        """Look whether ids started again; only sessions that have an old id are read."""
        ms = int(now * 1000)
        if not wrapped_ids.tells_old(of_opencode(store).greatest_id(session), ms) or not goes_by_ids(
            store, self.server, session
        ):
            return None
        from recoveryd.clients.opencode import client_faults

        return client_faults.ids_started_again(store.load(session), ms, self.name)

    def cut_off(self, session: Session) -> Diagnosis | None:
        from recoveryd.clients.opencode import client_faults

        return client_faults.cut_off(session, self.name)

    def under_way(self, store: Store, session: str) -> str | None:
        return self._running_turns.under_way(store, session)

    def at_work(self, store: Store, session: Session) -> str | None:
        return self._running_turns.at_work(store, session, self.server)

    def has_read(self, store: Store, session: Session, failure: Failure, since: float) -> bool:
        """Say yes, but of a prompt that was on its way: it reads all that is stored for each step."""
        del store
        return not prompting.on_its_way(session, failure, int(since * 1000))

    def unread(self, store: Store, session: str, since: float, failure: Failure | None = None) -> str:
        """Tell to prompt it again where the request of `failure` was on its way; not of what can't be read."""
        try:
            if failure is None or self.has_read(store, store.load(session), failure, since):
                return ""
        except RecoverydError:
            return ""
        return "the prompt that was refused since was on its way by then: prompt it again"

    def sends_unknown(self, store: Store, failure: Failure) -> str:
        """Tell of the copy of a part that another program left beside it, say: 1.1 sends it, too, or nothing at all
        (seen). That of a message has no parts, and nothing of it is sent. Or of the client's own way to ask a provider,
        without an SDK, which merges no messages and sends thinking that nobody signed (1.18.34).
        """
        if by_own_runtime(failure.error):
            switch = f"{self.name.upper()}_EXPERIMENTAL_NATIVE_LLM"
            sends = f"{self.title} was started with {switch}, and what it sends then is not known to recoveryd"
            return f"{sends}: start it without, and prompt the session again"
        found = of_opencode(store).strangers(failure.session)
        foreign = next((name for name in found if not name.startswith("message/") or not name.endswith(".json")), "")
        takes = f"{self.title} takes {foreign} for a record of its own, which recoveryd does not know"
        return f"{takes}: move it out of {store.root}, and prompt the session again" if foreign else ""

    def takes_prompts(self, store: Store, session: str) -> bool:
        """Go by whose it is: a subagent's task ended with the refusal, and the TUI takes no prompt there (1.18.34)."""
        return not is_of_subagent(store, session, unknown=False)  # what can't be read keeps nobody from being told

    def go_on(self, store: Store, session: str) -> str:
        if not self.takes_prompts(store, session):
            return "That was in a subagent: have the session that asked it go on with the task"
        return "Say “continue” to go on; an open TUI shows it once the session is loaded again"

    def address_key(self) -> str:
        return "" if self._settings.server_url else "server_url in [opencode]"

    def version(self) -> tuple[int, ...] | None:
        return next(iter(self.server.listening_versions()), None)

    def check_server(self) -> Iterator[Check]:
        from recoveryd.clients.opencode import doctor_checks

        return doctor_checks.check_versions(
            self.server, self._settings.server_url or "", self.title, versions_tested(self.name)
        )

    def passed_over(self, store: Store, stores: Sequence[Store]) -> RecoverydError | None:
        del store, stores
        return None

    def check_stores(self, stores: Sequence[tuple[Store, Generation]], now: int) -> Iterator[Check]:
        from recoveryd.clients.opencode import doctor_checks

        yield from doctor_checks.check_strangers([(of_opencode(store), generation) for store, generation in stores])
        yield from doctor_checks.check_id_wrap(self.server, stores, now, self.title)

    def cure(self, store: Store, session: Session, kind: Kind, name: str, now: int) -> Cure | Refusal:
        if kind is Kind.WRAPPED_IDS:
            return self._renaming(store, session, now)
        return self._ending(store, session, name, now)

    def _renaming(self, store: Store, session: Session, now: int) -> Cure | Refusal:
        """Give old messages and parts ids that sort before the new ones; nothing else changes."""
        if not goes_by_ids(store, self.server, session.id):
            return Refusal("the OpenCode that uses this store goes by time, not by ids: it needs no repair")
        found = wrapped_ids.wrapped(session, now)
        if found is None:
            return Refusal("its ids are in the order of time", understood=False)
        foreign = of_opencode(store).strangers(session.id)
        if foreign:
            return Refusal(f"{foreign[0]} lies among its files and can't be given another id; see `recoveryd doctor`")
        names = wrapped_ids.new_ids(found)
        if isinstance(names, Refusal):
            return names
        kept = wrapped_ids.taken_by_revert(session, found)
        also = f"; a revert is staged, and the next prompt takes back {len(kept)} newer ones with it" if kept else ""
        order = [names.get(message.id, message.id) for message in (*found.old, *found.new)]
        return Cure(
            changes=tuple(of_opencode(store).with_new_ids(session, names, kept)),
            actions=("renumber",) * len(found.old),
            objections=lambda read: (
                [] if wrapped_ids.sorts_as(read, order) else ["its ids are not in the order of time"]
            ),
            also=also,
        )

    def _ending(self, store: Store, session: Session, name: str, now: int) -> Cure | Refusal:
        """End the turn as the client ends one that its user stops."""
        busy = self.under_way(store, session.id)
        if busy is not None:
            raise ActiveError(f"It is left alone: {busy}.")
        from recoveryd.clients.opencode import interrupted_turn

        edits = interrupted_turn.end_open_turn(session, name, now)
        if not edits:
            return Refusal("no turn of it is open", understood=False)
        return Cure(
            changes=tuple(store.changes(session, edits)),
            actions=tuple(edit.action for edit in edits if not edit.companion),
            objections=lambda read: [
                f"{e.message_id} is still open" for e in interrupted_turn.end_open_turn(read, name, now)
            ],
            edits=edits,
        )


def _cut_outputs(store: Store) -> Path:
    """Return the folder in which the client keeps what it cut, and the model may read it."""
    return store.home / "tool-output"


def _text_in(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("utf-8")  # `read_text` would change the ends of its lines
    except (OSError, ValueError):
        return None
