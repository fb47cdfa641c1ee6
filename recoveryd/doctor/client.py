"""What `doctor` asks of the client that listens, and of the desktop."""

from __future__ import annotations

from collections.abc import Iterator

from recoveryd.clients.opencode.server_address import strangers
from recoveryd.clients.opencode.versions import TESTED, spelled
from recoveryd.clients.peers import Owner
from recoveryd.doctor.check import Check, Patient, fail, ok, warn
from recoveryd.tell.desktop import Desktop, can_show
from recoveryd.tell.toast import Toast


def client(patient: Patient) -> Iterator[Check]:
    version = patient.client
    named, tested = spelled(version or ()), ", ".join(map(spelled, TESTED))
    if version is None and patient.shut_out:
        yield _shut_out(patient)
    elif version is None:
        yield ok("client", "No client listens (a plain TUI does not); the form of its requests is told by its store.")
    elif version in TESTED:
        yield ok("client", f"OpenCode {named} listens; this version was tested.")
    elif TESTED[0] < version < TESTED[-1]:
        yield ok("client", f"OpenCode {named} listens. It lies between versions that were tested ({tested}).")
    else:
        yield _untested(version)


def _untested(version: tuple[int, ...]) -> Check:
    """A version beyond those that were tested: no alarm where only its last number is greater, as it is each week."""
    tested, newer = ", ".join(map(spelled, TESTED)), version > TESTED[-1]
    nearest = TESTED[-1 if newer else 0]
    says = f"OpenCode {spelled(version)} listens, which was not tested with this recoveryd ({tested} were)."
    says += f" Repairs are planned as for {spelled(nearest)}, and each is read back."
    if newer and version[:2] == nearest[:2]:
        return ok("client", says)
    better = "A newer recoveryd may know it." if newer else "A newer OpenCode is known."
    return warn("client", says, f"{better} Look at what `recoveryd scan --dry-run` would do first.")


def _shut_out(patient: Patient) -> Check:
    """Another user's client at the usual address is as it should be; at the address that is configured it is not."""
    url, whose = next(iter(patient.shut_out.items()))
    says = f"{strangers(url, whose)}."
    if whose is Owner.UNKNOWN:
        return warn("client", says, "Without it there are no notices in the client and no `auto_resume`.")
    if patient.config.opencode.server_url:
        return warn("client", says, "Is that address still your client's? It is server_url in [opencode].")
    return ok("client", f"No client of yours listens (a plain TUI does not). {says}")


def toast(patient: Patient) -> Iterator[Check]:
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
    """Show a notice; why not, or ""."""
    desktop = Desktop()
    try:
        return desktop.show(Toast("recoveryd", "This is what a notice looks like."))
    finally:
        desktop.close()
