"""A desktop notice as a value: its text made safe to show, and many of them made one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recoveryd.core import clean, command_line

TITLE_LENGTH, BODY_LENGTH = 80, 400  # characters
_NAMES, _NAME_LENGTH, _WHO_LENGTH = 4, 44, 32  # sessions that a merged notice names, and the characters of each
AHEAD = "kept from failing"  # the news of what was repaired before it was refused: nothing waits for its user
_WORST_FIRST = ("stuck", "given up", "unanswered", "resumed", "healed")
_TAG = re.compile(r"<\s*[a-zA-Z/!?]")
_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
_ANGLES = str.maketrans("<>", "\u2039\u203a")


@dataclass(frozen=True, slots=True)
class Button:
    """A button under a toast; `pressed` is called once, in a thread of its own: it may block, and what it raises is
    logged.

    `offered`, asked right before the notice is shown, says whether the button is to be there; it may take seconds.
    """

    title: str
    pressed: Callable[[], object]
    offered: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Toast:
    """The value of a notice before it is fitted and made safe (`safe_title`, `core.text.clean`).

    `news` (healed, given up, unanswered, stuck) is what became of `session`, which is called `name`, in the client
    `who` ("OpenCode", "OpenCode subagent"). Notices with news may be held back for a moment and told as one; one
    without is an answer to the user and shown at once.
    `logged`: its line in the log, where it can't be shown, if that differs: a name may be the first words of a prompt.
    """

    title: str
    body: str
    buttons: tuple[Button, ...] = ()
    news: str = ""
    session: str = ""
    name: str = ""
    who: str = ""
    logged: str = ""

    def offered(self) -> Toast:
        """Return the same notice with those of its buttons that are offered now."""
        return replace(self, buttons=tuple(button for button in self.buttons if button.offered()))


def merged_toast(toasts: Sequence[Toast]) -> Toast:
    """Make one toast of many with news: how many sessions, the first names (the worst first), and where the rest is.

    Of several about one session the last counts.
    """
    latest = {toast.session: toast for toast in toasts}
    if len(latest) == 1:
        return toasts[-1]
    told = sorted(latest.values(), key=lambda toast: _rank(toast.news))
    counts = Counter(toast.news for toast in told)
    several, *others = [(news, counts[news]) for news in sorted(counts, key=_rank, reverse=True)]
    title = f"{several[1]} session{'s' if several[1] > 1 else ''} {several[0]}"
    title = ", ".join([title, *(f"{n} {news}" for news, n in others)])
    on = "Go on as usual." if counts.keys() == {AHEAD} else f"How to go on: {command_line('scan')}"
    then = f"All of them: `{command_line('history')}`. {on}"

    def body(name: Callable[[Toast], str]) -> str:
        for most in range(_NAMES, 0, -1):  # fewer where the commands are long: these are of no use cut short
            lines = [f"• {f'{t.news}: ' if others else ''}{_named(t, name(t))}" for t in told[:most]]
            left = [f"and {len(told) - most} more"] if len(told) > most else []
            text = "\n".join([*lines, *left, then])
            if len(text) <= BODY_LENGTH:
                break
        return text

    logged = f"{title}: {body(lambda t: t.session)}"
    return Toast(title, body(lambda t: t.name), news=told[0].news, logged=logged)


def _named(toast: Toast, name: str) -> str:
    who = clean(toast.who, _WHO_LENGTH)
    return clean(name, _NAME_LENGTH) + (f" ({who})" if who else "")


def _rank(news: str) -> int:
    return _WORST_FIRST.index(news) if news in _WORST_FIRST else len(_WORST_FIRST)


def safe_title(title: str) -> str:
    """Make the title of a `Toast` safe on any desktop: replace tags and entities by signs that look alike, as some
    notification services draw mark-up in titles.
    """
    text = _ENTITY.sub("\uff06", clean(title, TITLE_LENGTH))
    return (text.translate(_ANGLES) if _TAG.search(text) else text) or "recoveryd"
