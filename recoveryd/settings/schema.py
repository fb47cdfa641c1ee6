"""The settings as values: each key with its default, its type, and what an error says is expected there.

`BaseConfig` has all that is no client's. Each client adds a section of its own (`clients.find.Config`): so a file, the
environment and `Config(max_retries=5)` are checked as a whole, and an unknown key is told with the nearest of all.
"""

from __future__ import annotations

import hashlib
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt

from recoveryd.core import KINDS, Kind

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def not_blank(text: str) -> str:
    """Check, for a field of the schema, that a text is not blank. Raises ValueError where it is blank."""
    if not text.strip():
        raise ValueError("blank")
    return text


def _absolute(path: Path) -> Path:
    path = _expanded(path)
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError("relative")
    return path


def _prom(path: Path) -> Path:
    if path.suffix != ".prom":
        raise ValueError("no .prom")
    return _absolute(path)


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:  # "~nobody"
        raise ValueError("no home") from error


def _level(text: str) -> str:
    if text.upper() not in _LEVELS:
        raise ValueError("unknown")
    return text.upper()


def _home(text: str) -> str:
    return str(_expanded(Path(text))) if not_blank(text).startswith("~") else text


Text = Annotated[str, AfterValidator(not_blank)]
Folder = Annotated[Path, AfterValidator(_absolute)]
_KINDS = tuple(kind for kind, about in KINDS.items() if not about.opt_in)
_BOOL, _TEXT = "true or false", "a text that is not blank"
FOLDERS = "a list of absolute paths, or ones that begin with ~"
_ARGV = "a list of texts: the program and its arguments"


class Section(BaseModel):
    """Each field's description is what an error says is expected there."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Notify(Section):
    """`[notify]`: which notices there are. `quiet` turns all of them off."""

    desktop: StrictBool = Field(default=True, description=_BOOL)
    tui: StrictBool = Field(default=True, description=_BOOL)
    quiet: StrictBool = Field(default=False, description=_BOOL)


class Compact(Section):
    """`[compact]`: conversations that are too long for their model, made shorter without one."""

    enabled: StrictBool = Field(default=True, description=_BOOL)
    target: Annotated[float, Field(strict=True, ge=0.1, le=0.95, allow_inf_nan=False)] = Field(
        default=0.7, description="a share of what the model takes, 0.1 to 0.95"
    )


class Hooks(Section):
    """`[hooks]`: commands of the user; they get the event as JSON on stdin."""

    on_abort: tuple[Text, ...] = Field(default=(), description=_ARGV)
    on_complete: tuple[Text, ...] = Field(default=(), description=_ARGV)


class LedgerLimits(Section):
    """`[ledger]`: how long originals are kept for `undo`, whichever is met first."""

    keep_days: StrictInt = Field(default=30, ge=1, description="a whole number of days, 1 or more")
    keep_mb: StrictInt = Field(default=200, ge=1, description="a whole number of megabytes, 1 or more")


class Metrics(Section):
    """`[metrics]`: where the daemon writes them."""

    textfile: Annotated[Path, AfterValidator(_prom)] | None = Field(
        default=None, description="an absolute path that ends in .prom, as node_exporter wants it"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _collector(text: str) -> str:
    """Return the address of a collector. Raises ValueError for one that is neither on this machine nor behind TLS."""
    from urllib.parse import urlsplit  # late: few have one

    parts = urlsplit(text)
    if "\\" in text or parts.port == 0:  # its port raises ValueError by itself where it is none
        raise ValueError("what sends takes what stands before a backslash for the host")
    here = parts.hostname == "localhost" or _is_loopback(parts.hostname or "")
    if not parts.hostname or parts.scheme not in ("http", "https") or (parts.scheme == "http" and not here):
        raise ValueError("no TLS")
    return text


class Otel(Section):
    """`[otel]`: where recoveries are sent as OTLP, over HTTP. Nothing is without it."""

    endpoint: Annotated[str, AfterValidator(_collector)] | None = Field(
        default=None, description='an address such as "http://127.0.0.1:4318"; of another machine with https'
    )


class Log(Section):
    """`[log]`: how much is logged."""

    level: Annotated[str, AfterValidator(_level)] = Field(default="INFO", description="one of " + ", ".join(_LEVELS))


class BaseConfig(Section):
    """The settings that are no client's, each with its default. Frozen."""

    enabled: StrictBool = Field(default=True, description=_BOOL)
    kinds: tuple[Kind, ...] = Field(default=_KINDS, description="a list of kinds to repair")
    interrupted_minutes: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] = Field(
        default=10.0, description="a number of minutes, 0 or more"
    )
    max_retries: StrictInt = Field(default=3, ge=1, description="a whole number, 1 or more")
    placeholder: Text = Field(default="[user interrupted]", description=_TEXT)
    cancelled_text: Text = Field(default="Operation cancelled by user (ESC pressed)", description=_TEXT)
    keep_thinking: StrictBool = Field(default=True, description=_BOOL)
    invent_reasoning: StrictBool = Field(default=False, description=_BOOL)
    auto_resume: StrictBool = Field(default=False, description=_BOOL)
    heal_ahead: StrictBool = Field(default=False, description=_BOOL)
    heal_ahead_seconds: Annotated[float, Field(strict=True, ge=1, allow_inf_nan=False)] = Field(
        default=5.0, description="a number of seconds, 1 or more"
    )
    resume_text: Text = Field(default="continue", description=_TEXT)
    dry_run: StrictBool = Field(default=False, description=_BOOL)
    lookback_hours: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] = Field(
        default=24.0, description="a number of hours, more than 0"
    )
    ignore: tuple[Annotated[str, AfterValidator(_home)], ...] = Field(
        default=(), description="a list of session ids and project folders"
    )
    compact: Compact = Field(default=Compact(), description="a table, [compact]")
    notify: Notify = Field(default=Notify(), description="a table, [notify]")
    hooks: Hooks = Field(default=Hooks(), description="a table, [hooks]")
    ledger: LedgerLimits = Field(default=LedgerLimits(), description="a table, [ledger]")
    metrics: Metrics = Field(default=Metrics(), description="a table, [metrics]")
    otel: Otel = Field(default=Otel(), description="a table, [otel]")
    log: Log = Field(default=Log(), description="a table, [log]")

    @property
    def idle(self) -> str:
        """Why the daemon writes to no store; "" when it repairs."""
        if self.dry_run:
            return "it is a dry run (`dry_run`)"
        return "" if self.enabled else "repairs are turned off (`enabled = false`)"

    @property
    def digest(self) -> str:
        """A short hash of the settings that decide about refusals: when it changes, refused sessions are looked at
        again.
        """
        decides = sorted(self.kinds), self.keep_thinking, sorted(self.ignore), self.compact.enabled, self.compact.target
        more = ("invent_reasoning",) if self.invent_reasoning else ()
        return hashlib.sha256(repr((*decides, *more)).encode("utf-8", "surrogateescape")).hexdigest()[:8]
