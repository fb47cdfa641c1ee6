"""The plist of macOS: keys and types of launchd.plist(5), in the XML that `plutil -lint` accepts."""

from __future__ import annotations

import plistlib
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from recoveryd.core.errors import RecoverydError
from recoveryd.service.base import Service
from recoveryd.service.launchd import Launchd, plist

# launchd.plist(5), in the order of that page: the keys that we use, and what their value may be.
KEYS: dict[str, type] = {
    "Label": str,
    "ProgramArguments": list,
    "KeepAlive": dict,
    "RunAtLoad": bool,
    "EnvironmentVariables": dict,
    "Umask": int,
    "ExitTimeOut": int,
    "ThrottleInterval": int,
    "StandardErrorPath": str,
    "ProcessType": str,
}
KEEP_ALIVE = {"SuccessfulExit", "Crashed", "OtherJobEnabled", "AfterInitialDemand", "NetworkState", "PathState"}
PROCESS_TYPES = {"Background", "Standard", "Adaptive", "Interactive"}
SCALARS = {"string", "integer", "true", "false"}
NAMES = [
    "plain",
    "with space",
    "50% of $HOME",
    "it's",
    'say "hi"',
    "back\\slash",
    "ünï \U0001f600",
    "a;b|c&d",
    "<x>]]>",
]


def made(name: str, folder: Path = Path("/Users/me")) -> Service:
    place = folder / name
    return Service((f"{place}/recoveryd", "--config", f"{place}/c.toml"), {"XDG_STATE_HOME": str(place)}, place)


@pytest.mark.parametrize("name", NAMES)
def test_each_key_is_one_of_launchd_and_of_its_type(name: str) -> None:
    service = made(name)
    found = plistlib.loads(plist(service).encode())
    assert {key: type(value) for key, value in found.items()} == KEYS
    assert found["ProgramArguments"] == [*service.command, "run", "--launchd"]
    assert found["EnvironmentVariables"] == service.environment
    assert found["StandardErrorPath"] == f"{service.state}/launchd.err"
    assert found["KeepAlive"].keys() <= KEEP_ALIVE and found["ProcessType"] in PROCESS_TYPES
    assert found["Umask"] == 0o077
    absolute = (found["ProgramArguments"][0], found["StandardErrorPath"], *found["EnvironmentVariables"].values())
    assert all(path.startswith("/") for path in absolute), "launchd expands nothing"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_xml_of_a_property_list(name: str) -> None:
    """Read without Python's own reader of plists: the document type, the one root, keys and values by turns."""
    text = plist(made(name))
    assert text.splitlines()[1] == (
        '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">'
    )
    root = ElementTree.fromstring(text.encode())
    assert (root.tag, root.attrib, len(root)) == ("plist", {"version": "1.0"}, 1)
    assert list(wrong(root[0])) == []


def wrong(node: ElementTree.Element) -> Iterator[str]:
    """What the DTD of property lists does not allow."""
    if node.attrib:
        yield f"{node.tag} has attributes"
    if node.tag == "dict":
        keys = [key.text for key in node[::2]]
        if {key.tag for key in node[::2]} - {"key"} or len(node) % 2 or len(set(keys)) != len(keys):
            yield f"keys: {keys}"
        for value in node[1::2]:
            yield from wrong(value)
    elif node.tag == "array":
        for value in node:
            yield from wrong(value)
    elif node.tag not in SCALARS or len(node):
        yield node.tag


@pytest.mark.parametrize("name", ["a\nb", "bell\x07", "caf\udce9"])
def test_what_xml_can_not_hold_is_refused(name: str) -> None:
    with pytest.raises(RecoverydError, match="can't be written in a plist"):
        plist(made(name))


def test_the_file_is_one_that_launchd_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes none that others may write to; its name is that of the label."""
    monkeypatch.setattr(Launchd, "_call", lambda *_: subprocess.CompletedProcess([], 0))
    Launchd({"HOME": str(tmp_path)}).start(made("x", tmp_path), print, lambda: None)
    (file,) = (tmp_path / "Library" / "LaunchAgents").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert file.stem == plistlib.loads(file.read_bytes())["Label"]


@pytest.mark.parametrize(
    "text",
    ["", "<plist><dict>", "<plist><array/></plist>", "<plist><dict><key>ProgramArguments</key><true/></dict></plist>"],
)
def test_a_file_that_somebody_broke_names_no_configuration(tmp_path: Path, text: str) -> None:
    """`install` then writes it anew."""
    file = tmp_path / "Library" / "LaunchAgents" / "recoveryd.plist"
    file.parent.mkdir(parents=True)
    file.write_text(plist(made("x", tmp_path)))
    assert Launchd({"HOME": str(tmp_path)}).named_config() == tmp_path / "x" / "c.toml"
    file.write_text(text)
    assert Launchd({"HOME": str(tmp_path)}).named_config() is None


def test_the_command_for_the_log_is_one_for_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/Users/it's me")
    command = shlex.split(Launchd({"HOME": "/Users/it's me"}).log_command)
    assert command[:2] == ["tail", "-F"] and "it's me" in command[2] and len(command) == 3
