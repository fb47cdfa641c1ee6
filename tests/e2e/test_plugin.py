"""A plain TUI, which listens to nobody, as its user sees it: the plugin shows what was healed, and obeys.

Everything is seen on the screen of the real client in a terminal; the session gets stuck as sessions do.
`python -m tests.e2e.test_plugin tests/pictures` draws what is seen, for the README.
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
from tests.e2e.install import JSON_STORE, NEWEST, UnavailableError, ensure
from tests.e2e.provider import Provider
from tests.e2e.scenes import Stage
from tests.e2e.tui import WIDTH, PlainTui, words
from tests.picture import drawn

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PlainTui.available(), reason="tmux is not installed"),
]
# The newest is played by the program; a TUI of it takes half a minute.
VERSIONS = (JSON_STORE, NEWEST) if os.environ.get("TEST_RECOVERYD_FULL_CLIENTS") else (JSON_STORE,)
PICTURES = Path(__file__).parent.parent / "pictures"


@dataclass(frozen=True)
class There:
    tui: PlainTui
    daemon: Daemon
    provider: Provider

    def outcomes(self) -> list[str]:
        return [entry["outcome"] for entry in self.daemon.history()]

    def story(self) -> Iterator[tuple[str, str]]:
        """What a person sees: the refusal (no daemon runs yet), the notice, and how the session goes on."""
        self.tui.type("scene: start.")
        yield "before", self.tui.wait_for("tool_use")
        with self.daemon:
            yield "toast", self.tui.wait_for("session healed")
            self.tui.type("continue")
            yield "after", self.tui.wait_for("finished")


@contextmanager
def opened(root: Path, version: str, config: str = CONFIG) -> Iterator[There]:
    """A plain TUI that has loaded the plugin, a provider that plays scenes, and a daemon that is not started."""
    stage = Stage()
    with Provider() as provider:
        provider.force_when(stage.judge)
        provider.reply_when(stage.reply)
        tui = PlainTui(ensure(version), root / "client", provider.url)
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


@pytest.mark.parametrize("version", VERSIONS)
def test_a_person_sees_the_toast_types_continue_and_goes_on(version: str, tmp_path: Path) -> None:
    try:
        with opened(tmp_path, version) as there:
            seen = {name: words(screen) for name, screen in there.story()}
            assert there.outcomes() == ["healed"]
    except UnavailableError as reason:
        pytest.skip(str(reason))
    assert list(seen) == ["before", "toast", "after"]


def test_the_kept_pictures_show_it() -> None:
    for name, text in (("before", "tool_use"), ("toast", "session&#160;healed"), ("after", "finished")):
        drawing = (PICTURES / f"plugin-{name}.svg").read_text(encoding="utf-8")
        assert text in drawing and tempfile.gettempdir() not in drawing, name


def main() -> None:
    """Draw each scene of the story into a folder, on the newest client."""
    [folder] = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as root, opened(Path(root), NEWEST) as there:
        place = f"{root}/client/project"
        for name, screen in there.story():
            shown = screen.replace(place, "~/project".ljust(len(place)))
            (folder / f"plugin-{name}.svg").write_text(drawn(shown, "OpenCode", WIDTH), encoding="utf-8")


if __name__ == "__main__":
    main()
