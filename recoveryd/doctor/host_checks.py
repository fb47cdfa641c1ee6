"""What `doctor` asks of this machine: configuration, permissions, disks, clock, service, watched folders, desktop."""

from __future__ import annotations

import errno
import math
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from recoveryd.clients import Store
from recoveryd.core import Check, RecoverydError, RefusedError, command_line, fail, ok, warn
from recoveryd.disk import NOT_MOUNTED, REPLACED, check_owner, dangling_link, foreign, free_space, is_full
from recoveryd.doctor.config_references import reference_problems
from recoveryd.doctor.examined import Patient
from recoveryd.doctor.status import daemons, watched_by, why_late
from recoveryd.ledger import Upkeep, peek
from recoveryd.service import of_this_system
from recoveryd.settings import but_of_environment, ignored, paused
from recoveryd.tell import Desktop, Toast, can_show
from recoveryd.watch import folders, why_not_watched

_MB = 1_000_000
_ROOM = "Make room: a repair is kept in the ledger before it is written, and what has no room for both is not made."
_LITTLE, _FEW = 500 * _MB, 50 * _MB  # bytes; a repair needs far less, a database that grows does not
_ASK_S = 2.0  # for a service manager
_LIFT = "To have it repair: without --dry-run, `dry_run = true` and `enabled = false`, in the environment too."
_SWEPT = "Until then a sweep every minute finds what is not watched."
_SLACK = 120.0  # seconds that clocks and file systems may differ


def check_config(patient: Patient) -> Iterator[Check]:
    """Check the configuration, and what it names."""
    if patient.config_problem is not None:
        problem = patient.config_problem
        yield fail("config", f"{problem.message} All else is checked with what of it is sound.", problem.hint)
    found = reference_problems(patient.config)
    for one in found:
        yield warn("config", f"{one.key}: {one.says}", one.next)
    if patient.config_problem is not None or found:
        return
    if patient.config_file.exists():
        yield ok("config", f"{patient.config_file} is sound.")
    else:
        but = but_of_environment(os.environ)
        yield ok("config", f"There is no {patient.config_file}: all settings are the defaults{but}.")


def check_state_folder(patient: Patient) -> Iterator[Check]:
    """Check whether the state folder is writable, and readable by the user alone."""
    folder = patient.state_dir
    try:
        check_owner(folder)
        problem, seen = foreign(folder), folder.stat()
    except RefusedError as error:
        yield fail("state_folder", error.message, error.hint)
        return
    except (FileNotFoundError, NotADirectoryError):
        above = _existing(folder)
        if link := dangling_link(folder):
            yield fail("state_folder", f"{folder} is not there: {link}. Nothing is repaired.", NOT_MOUNTED)
            return
        if os.access(above, os.W_OK | os.X_OK):
            yield ok("state_folder", f"{folder} is not there yet; the first start makes it, for you alone.")
        else:
            says = f"{folder} is not there, and can't be made: {above} can't be written to."
            yield fail("state_folder", says, "Set XDG_STATE_HOME to a folder of your own.")
        return
    if problem is not None:
        yield fail("state_folder", problem.message, problem.hint)
    elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        yield fail("state_folder", f"{folder} can't be written to.", f"chmod 700 {folder}; is its disk read-only?")
    elif seen.st_mode & 0o077:
        says = f"Others may look into {folder}, where copies of your conversations are."
        yield fail("state_folder", says, f"chmod 700 {folder}")
    elif wide := sorted(p.name for p in folder.iterdir() if p.is_file() and p.stat().st_mode & 0o077):
        says = f"In {folder} others may read {', '.join(wide[:3])}."
        yield warn("state_folder", says, f"chmod 600 {folder}/*")
    else:
        yield ok("state_folder", f"{folder} is yours alone ({stat.S_IMODE(seen.st_mode):o}).")


def check_disk(patient: Patient) -> Iterator[Check]:
    """Check the free space on the disks of the stores and of the state folder."""
    places = dict.fromkeys([_existing(patient.state_dir), *(_existing(store.root) for store in patient.stores)])
    free: dict[int, tuple[float, Path]] = {}
    for place in places:
        free.setdefault(place.stat().st_dev, (free_space(place), place))
    kept = _existing(patient.state_dir)
    if is_full(kept, by_write=True):
        del free[kept.stat().st_dev]
        yield fail("disk", f"Nothing can be written to {kept}: its disk is full, or your quota of it.", _ROOM)
    for left, place in free.values():
        says = f"{left / _MB:,.0f} MB are free on the disk of {place}."
        if left == math.inf:
            says = f"The disk of {place} does not tell how much of it is free."
        if left < _LITTLE:
            level = fail if left < _FEW else warn
            yield level("disk", says, _ROOM)
        else:
            yield ok("disk", says)


def check_clock(patient: Patient) -> Iterator[Check]:
    """Check that the clock is not behind what was written before."""
    times = {f"{store.root}": _newest(store.watch_files or (store.watch_path,)) for store in patient.stores}
    with suppress(RecoverydError):  # the check of the ledger says so
        ended = peek(patient.ledger, lambda opened: Upkeep(opened).ended()) or []
        times["the newest recovery"] = max((one.time for one in ended), default=0.0)
    what, newest = max(times.items(), key=lambda item: item[1], default=("", 0.0))
    ahead = newest - patient.now
    if ahead > _SLACK:
        yield warn(
            "clock",
            f"The clock says {time.strftime('%Y-%m-%d %H:%M', time.localtime(patient.now))}, but {what} was written"
            f" {ahead / 3600:.1f} hours later than that.",
            "Set the clock (timedatectl): what is new and what is old is told by it.",
        )
    else:
        yield ok("clock", "The clock is not behind anything that was written before.")


def check_service(_: Patient) -> Iterator[Check]:
    """Check that the service, if it is installed, runs."""
    asked, starts = of_this_system(os.environ, _ASK_S), f"{command_line('install')} starts it"
    found = asked.state()
    if found not in ("none", "absent") and (refusal := asked.refusal()):
        yield fail("service", refusal.message, refusal.hint)
    elif found == "active" and not asked.starts_by_itself():
        says = "The service runs, but no login starts it: it is disabled."
        yield warn("service", says, f"{command_line('install')} has it start at each login")
    elif found == "active":
        yield ok("service", "The service runs.")
    elif found == "failed":
        yield fail("service", "The service failed.", f"{asked.log_command} says why; {starts} again")
    elif found == "restarting":
        yield fail(
            "service",
            "The service does not stay up: it ended, and is started again after half a minute.",
            f"{asked.log_command} says why",
        )
    elif found == "activating":
        yield warn(
            "service", "The service is starting.", f"Ask again in a while; {asked.log_command} shows how far it is"
        )
    elif found == "none":
        yield ok("service", f"There is no service manager of the user to ask; `{command_line('start')}` works without.")
    elif found == "absent":
        yield ok("service", "It is not installed as a service.", f"{command_line('install')} has it run at each login")
    else:
        yield warn("service", f"The service is installed and does not run ({found}).", starts)


def check_repairs(patient: Patient) -> Iterator[Check]:
    """Check that nothing turns repairs off: a dry run, the configuration."""
    running = daemons(patient.config, [store.id for store in patient.stores], patient.state_dir)
    idle = [holder for holder in running if holder.idle]
    for holder in idle:
        lift = f"`{command_line('restart')}` does not wait for that." if holder.idle == REPLACED else _LIFT
        yield warn("repairs", f"Nothing is repaired by the recoveryd that runs ({holder}): {holder.idle}.", lift)
    if patient.config.idle and not idle:
        yield warn("repairs", f"Nothing is repaired, by the configuration: {patient.config.idle}.", _LIFT)
    if not patient.config.kinds:
        yield warn("repairs", "No kind is repaired, by the configuration: `kinds` is empty.", "Name some, or unset it.")
    elif not idle and not patient.config.idle:
        yield ok("repairs", "It is no dry run, and repairs are not turned off.")


def check_pause(patient: Patient) -> Iterator[Check]:
    """Check that repairs are not paused, and that the list of what to ignore can be read."""
    found = paused(patient.state_dir, patient.now)
    try:
        ignored(patient.state_dir)
    except RecoverydError as error:
        yield fail("pause", error.message, error.hint)
    else:
        if found is None:
            yield ok("pause", "Repairs are not paused.")
    if found is not None:
        yield warn("pause", f"Repairs are paused{found.ending}.", command_line("unpause"))


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if os.path.exists(place))  # noqa: PTH110 - Path raises where it may not look


def _newest(files: tuple[Path, ...]) -> float:
    newest = 0.0
    for file in files:
        with suppress(OSError):
            newest = max(newest, file.stat().st_mtime)
    return newest


def check_watches(patient: Patient) -> Iterator[Check]:
    """Check that the kernel lets all folders be watched; of those of a `run` that one itself tells (`check_daemon`)."""
    limit, instances = folders.watch_limits()
    holders = {one.id: watched_by(one, patient.state_dir) for one in patient.living}
    if not patient.living or any(why_late(one, holders[one.id], patient.state_dir) for one in patient.living):
        return
    if limit is None:
        yield ok("watches", "This system has no limit on watched folders that could be read.")
        return
    places = {one.id: _places(one) for one in patient.living}
    wanted = sum(map(len, places.values()))
    free = [path for store, paths in places.items() if not holders[store] for path in paths]
    refused = folders.why_refused(free) if free else None  # the run that watches all of them needs nothing more
    count = "1 folder" if wanted == 1 else f"{wanted:,} folders"
    if refused is not None:
        of_instances = refused.errno == errno.EMFILE
        now = instances if of_instances else limit
        raised = f"max_user_instances={max(512, 2 * (instances or 0))}"
        raised = raised if of_instances else f"max_user_watches={max(524_288, limit * 2, wanted * 2)}"
        why = why_not_watched(refused)
        yield fail(
            "watches",
            f"The kernel refuses to watch all of {count}, with what other programs watch: {why} (now {now}).",
            f"sudo sysctl fs.inotify.{raised}; a file in /etc/sysctl.d keeps it. {_SWEPT}",
        )
    elif wanted > limit * 0.8:
        level = fail if wanted > limit else warn
        yield level(
            "watches",
            f"{count} to watch, and this user may watch {limit:,} with all programs together.",
            f"sudo sysctl fs.inotify.max_user_watches={max(524_288, wanted * 2)}; a file in /etc/sysctl.d keeps it. "
            f"{_SWEPT}",
        )
    else:
        yield ok("watches", f"{count} to watch; this user may watch {limit:,}.")


def _places(store: Store) -> list[str]:
    """List what is watched of a store that is there."""
    root = str(store.watch_path)
    return [root] if store.watch_files else [str(store.watch_path.parent), *folders.all_folders(root)]


def check_toast(patient: Patient) -> Iterator[Check]:
    """Check whether a notice can be shown on this desktop; with `--toast` show one."""
    if not patient.show_toast and (patient.config.notify.quiet or not patient.config.notify.desktop):
        yield ok("toast", "Notices on the desktop are turned off by the configuration.")
        return
    if patient.show_toast:
        problem = _show()
        if problem:
            yield fail("toast", f"No notice could be shown: {problem}.", "Notices are in the log meanwhile.")
        else:
            yield ok("toast", "A notice was shown. If you saw none, your desktop holds it back (do not disturb?).")
        return
    shows, why = can_show()
    if shows:
        yield ok("toast", "A notice can be shown on this desktop.", f"To see one: {command_line('doctor', '--toast')}")
    else:
        lists = f"Notices are in the log; `{command_line('history')}` lists all."
        yield warn("toast", f"No notice can be shown: {why}.", lists)


def _show() -> str:
    """Show a notice. Returns why not, or ""."""
    desktop = Desktop()
    try:
        return desktop.show(Toast("recoveryd", "This is what a notice looks like."))
    finally:
        desktop.close()
