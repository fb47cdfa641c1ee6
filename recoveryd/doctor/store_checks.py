"""What `doctor` asks of the stores: readable, of which generation, watched, and by whom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from recoveryd.core import Check, RecoverydError, __version__, command_line, fail, ok, warn
from recoveryd.disk import is_left_over
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import (
    HOW,
    NOT_READABLE,
    daemons,
    silent_lockers,
    watched_by,
    why_late,
    why_unusable,
)
from recoveryd.settings import paths


def check_stores(patient: Patient) -> Iterator[Check]:
    """Check that there is a store."""
    if patient.stores:
        yield ok(
            "stores", "1 store is there." if len(patient.stores) == 1 else f"{len(patient.stores)} stores are there."
        )
        return
    places = ", ".join(str(store.root) for store in patient.all_stores)
    yield warn(
        "stores",
        f"There is no store yet; looked for {places}.",
        "Start your client once. If its sessions are elsewhere, name the folder in its section of the configuration.",
    )


def check_store(patient: Patient) -> Iterator[Check]:
    """Check that each store can be read and edited, and tell its generation."""
    for one in patient.stores:
        generation = patient.generation(one)
        words = generation.words if generation else NOT_READABLE
        about = f"{one.root}: {words}"
        hint = f"Can you read and write there? See ls -l {one.root}."
        try:
            problem = one.live()
            next(iter(one.session_ids()), None) if problem is None else None
        except RecoverydError as error:
            problem, hint = error.message, error.hint or hint
        if generation is not None and generation.use == "left":
            yield ok("store", f"{about}. Nothing is repaired there.", about=one.id)
        elif generation is not None and generation.use == "unknown":
            yield warn("store", f"{about}.", "Its sessions are left alone; a newer recoveryd may know it.", one.id)
        elif problem:
            yield fail("store", f"{one.root} can't be used, so nothing in it is repaired: {problem}", hint, one.id)
        else:
            yield ok("store", f"{about}.", about=one.id)


def check_by_clients(patient: Patient) -> Iterator[Check]:
    """Check of the stores what only their client knows (`Client.check_stores`)."""
    living = [(store, generation) for store in patient.living if (generation := patient.generation(store)) is not None]
    for client in patient.clients.all():
        yield from client.check_stores([one for one in living if one[0].client == client.name], int(patient.now * 1000))


def check_daemon(patient: Patient) -> Iterator[Check]:
    """Check that each store is watched by a running recoveryd."""
    idle, place = [], paths.lock_dir(patient.state_dir)
    for one in patient.living:
        holder = watched_by(one, patient.state_dir)
        others = () if holder is not None else silent_lockers(patient.config, one, patient.state_dir)
        if holder is not None and holder.version != __version__:
            says = f"{one.root} is watched by recoveryd {holder.version} ({holder}); this is {__version__}."
            yield warn("daemon", says, "Restart it, so that both are the same.", one.id)
        elif holder is not None and (reason := why_unusable(one, holder, patient.state_dir))[0]:
            says = f"Nothing in {one.root} is repaired by the recoveryd that runs ({holder}): {reason[0]}"
            yield fail("daemon", says, reason[1], one.id)
        elif holder is not None and (late := why_late(one, holder, patient.state_dir)):
            says = f"{one.root} is looked at once a minute only by the recoveryd that runs ({holder}): {late}"
            yield warn("daemon", says, f"{command_line('restart')}, once that is mended", one.id)
        elif holder is not None:
            yield ok("daemon", f"{one.root} is watched ({HOW.get(holder.doing, 'somehow')}, {holder}).", about=one.id)
        elif others:
            pids = ", ".join(map(str, islice(others, 3)))
            says = f"{one.root} is locked by process {pids}, which does not say here that it watches it."
            yield warn("daemon", says, "Is that a recoveryd with another configuration?", one.id)
        else:
            idle.append(one)
    names = ", ".join(str(one.root) for one in idle)
    running = daemons(patient.config, [one.id for one in patient.stores], patient.state_dir) if idle else []
    if running:
        says = f"Not watched yet by the recoveryd that runs ({running[0]}): {names}; new ones are found once a minute."
        yield warn("daemon", says, "Where this stays so, does it go by another configuration?")
    elif idle:
        left = any(is_left_over(place, one.lock_path) for one in idle)
        note = " A run that ended without a word left a note, which does no harm." if left else ""
        yield warn("daemon", f"Not watched, so what gets stuck there stays so: {names}.{note}", command_line("start"))
