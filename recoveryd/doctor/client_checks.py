"""What `doctor` asks of the clients that listen, and of the desktop."""

from __future__ import annotations

import os
from collections.abc import Iterator

from recoveryd.core import Check, fail, ok, warn
from recoveryd.doctor.patient import Patient
from recoveryd.tell import Desktop, Toast, can_show


def client(patient: Patient) -> Iterator[Check]:
    """Check the clients that listen: their versions, and whether they are this user's."""
    for one in patient.clients.on_this_machine(os.environ):
        yield from one.check_server()


def toast(patient: Patient) -> Iterator[Check]:
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
        yield ok("toast", "A notice can be shown on this desktop.", "To see one: recoveryd doctor --toast")
    else:
        yield warn("toast", f"No notice can be shown: {why}.", "Notices are in the log; `recoveryd history` lists all.")


def _show() -> str:
    """Show a notice. Returns why not, or ""."""
    desktop = Desktop()
    try:
        return desktop.show(Toast("recoveryd", "This is what a notice looks like."))
    finally:
        desktop.close()
