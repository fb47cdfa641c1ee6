"""A plain TUI, which listens to nobody, as its user sees it: the plugin shows what was healed, and obeys.

Everything is typed by keys and seen on the screen of the real client in a terminal; the session gets stuck as sessions
do. `python -m tests.e2e.test_plugin tests/pictures` draws what is seen, for the README.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.daemon import CONFIG, Daemon
from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError
from tests.e2e.provider import Provider
from tests.e2e.scenes import Stage
from tests.e2e.snapshots import Snapshot, changed, still
from tests.e2e.tui import WIDTH, PlainTui, plain_tui, words
from tests.picture import drawn

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PlainTui.available(), reason="tmux is not installed"),
]
# The others are played where TEST_RECOVERYD_FULL_CLIENTS is set: a TUI takes half a minute.
CLIENTS = (JSON_STORE, NEWEST, "kilo") if os.environ.get("TEST_RECOVERYD_FULL_CLIENTS") else (JSON_STORE,)
# What a client notes by itself when a command is typed: Kilo, that the session was in use.
OWN_NOTES = {"kilo": {"session", "event", "event_sequence"}}
PICTURES = Path(__file__).parent.parent / "pictures"


@dataclass(frozen=True)
class There:
    tui: PlainTui
    daemon: Daemon
    provider: Provider

    def outcomes(self) -> list[str]:
        return [entry["outcome"] for entry in self.daemon.history()]

    def kept(self) -> Snapshot:
        """All that the client keeps of its sessions, once it has done with the last prompt."""
        return still(self.tui)

    def story(self) -> Iterator[tuple[str, str]]:
        """What a person sees: the refusal (no daemon runs yet), the notice, and how the session goes on."""
        yield "before", self.tui.enter("scene: start.", "tool_use")
        with self.daemon:
            yield "toast", self.healed()
            yield "after", self.tui.enter("continue", "finished")

    def healed(self) -> str:
        """Wait for the notice of a heal; where it does not come, say what the daemon did."""
        try:
            return self.tui.wait_for("session healed")
        except AssertionError as never:
            raise AssertionError(f"{never}\n{self.outcomes()}\n{self.daemon.log[-3000:]}") from never

    def by_command(self) -> Iterator[tuple[str, str]]:
        """What a person sees who types `/recoveryd`: what was done, that it was taken back, and how it goes on."""
        yield "before", self.tui.enter("scene: newer.", "tool_use")
        with self.daemon:
            self.healed()
            yield "command", self.tui.enter("/recoveryd", "To take the newest back")
            yield "undone", self.tui.enter("/recoveryd undo", "is not repaired again")
            [undone, *_] = self.daemon.history()
            healed = self.daemon.run("scan", "--repair", "--yes", "--session", undone["session"])
            assert healed.returncode == 0, healed.stdout + healed.stderr
            yield "after", self.tui.enter("/recoveryd continue", "finished")


@contextmanager
def opened(root: Path, name: str, config: str = CONFIG) -> Iterator[There]:
    """A plain TUI that has loaded the plugin, a provider that plays scenes, and a daemon that is not started."""
    stage = Stage()
    with Provider() as provider:
        provider.force_when(stage.judge)
        provider.reply_when(stage.reply)
        tui = plain_tui(name, root / "client", provider.url)
        # The client's settings are where recoveryd looks for them.
        settings = tui.root / "config" / "recoveryd"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(config)
        daemon = Daemon(root / "daemon", tui.root / "data", env={"XDG_CONFIG_HOME": str(tui.root / "config")})
        put = daemon.run("plugin", "install")
        assert "wrote" in put.stdout, put.stderr
        with tui:
            daemon.wait(lambda: any((daemon.state / "plugin").glob("*.json")), "the plugin was not loaded")
            yield There(tui, daemon, provider)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_person_sees_the_toast_types_continue_and_goes_on(name: str, tmp_path: Path) -> None:
    try:
        with opened(tmp_path, name) as there:
            seen = {part: words(screen) for part, screen in there.story()}
            assert there.outcomes() == ["healed"]
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert list(seen) == ["before", "toast", "after"]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_person_asks_by_the_command_undoes_and_goes_on(name: str, tmp_path: Path) -> None:
    try:
        with opened(tmp_path, name) as there:
            kept, asked = dict[str, Snapshot](), dict[str, int]()
            for part, _ in there.by_command():
                kept[part], asked[part] = there.kept(), len(there.provider.main)
            outcomes = there.outcomes()
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert outcomes == ["healed", "undone"]
    assert changed(kept["before"], kept["command"]), "nothing was healed"
    assert changed(kept["before"], kept["undone"]).keys() <= OWN_NOTES.get(name, set()), "it is not as it was"
    assert asked["undone"] == asked["before"], "the model was asked what the command answers"
    assert asked["after"] > asked["undone"]


def test_the_kept_pictures_show_it() -> None:
    for name, text in (
        ("before", "tool_use"),
        ("toast", "session&#160;healed"),
        ("after", "finished"),
        ("command", "newest&#160;back"),
    ):
        drawing = (PICTURES / f"plugin-{name}.svg").read_text(encoding="utf-8")
        assert text in drawing and tempfile.gettempdir() not in drawing, name


def main() -> None:
    """Draw each scene of the story into a folder, on the newest client."""
    [folder] = map(Path, sys.argv[1:])
    for story, names in ((There.story, ("before", "toast", "after")), (There.by_command, ("command",))):
        with tempfile.TemporaryDirectory() as root, opened(Path(root), NEWEST) as there:
            place = f"{root}/client/project"
            for name, screen in story(there):
                shown = screen.replace(place, "~/project".ljust(len(place)))
                if name in names:
                    (folder / f"plugin-{name}.svg").write_text(drawn(shown, "OpenCode", WIDTH), encoding="utf-8")


if __name__ == "__main__":
    main()
