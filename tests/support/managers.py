"""A `systemctl` and a `launchctl` that write down what they are asked, and do to files what the real ones do."""

from __future__ import annotations

from pathlib import Path

_SYSTEMCTL = """#!/bin/sh
printf '%s\\n' "$*" >> '{folder}/calls'
[ "$1" = --user ] || exit 97
wants="$HOME/.config/systemd/user/default.target.wants"
case "$2" in
  show-environment)
    [ -e '{folder}/unreachable' ] && echo 'Failed to connect to bus: No medium found' >&2 && exit 1
    echo "HOME=$HOME" ;;
  daemon-reload) [ -e '{folder}/unloadable' ] && exit 1 || exit 0 ;;
  enable) mkdir -p "$wants" && ln -sf ../recoveryd.service "$wants/recoveryd.service" ;;
  disable) rm -f "$wants/recoveryd.service" ;;
  restart)
    [ -e '{folder}/slow' ] && exec sleep 5
    [ -e '{folder}/failing' ] && exit 1 || exit 0 ;;
  start) [ -e '{folder}/failing' ] && exit 1 || exit 0 ;;
  is-active) cat '{folder}/active' ;;
  is-enabled) cat '{folder}/enabled' ;;
  stop) [ ! -e '{folder}/unstoppable' ] || exit 1 ;;
  show) [ "$4" = StatusText ] && echo 'watching a store' || cat "{folder}/$4" || cat '{folder}/failing' ;;
esac
"""
_LAUNCHCTL = """#!/bin/sh
printf '%s\\n' "$*" >> '{folder}/calls'
case "$1" in
  bootstrap) [ -e '{folder}/late' ] && rm '{folder}/late' && echo 'Bootstrap failed: 5' >&2 && exit 5 || exit 0 ;;
esac
"""


class Fakes:
    """Both of them in `path`, which goes to the front of PATH.

    A file in `folder` changes what they do: `unreachable` (no user manager), `failing` (a start fails; the file's
    content is the exit status), `unloadable` (no unit is taken), `unstoppable`, `slow` (it takes its time), `late`
    (launchd refuses once); or is what is answered: `active` and `enabled` to is-active and is-enabled, one of the name
    of a property of the unit for that.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "bin"
        self.path.mkdir(parents=True)
        for name, text in (("systemctl", _SYSTEMCTL), ("launchctl", _LAUNCHCTL)):
            made = self.path / name
            made.write_text(text.format(folder=folder))
            made.chmod(0o755)

    def calls(self) -> list[str]:
        """What was asked since the last time, a line each."""
        log = self.folder / "calls"
        said = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return said
