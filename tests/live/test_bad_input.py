"""What should not lie in a store: each a clear line with what and where, nothing changed, and the daemon goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from recoveryd.disk.tree import MAX_FILE
from tests.e2e.daemon import CONFIG, Daemon
from tests.live.stuck import Stuck, tree, wait_healed

Spoil = Callable[[Stuck, Path], str]


def _part(stuck: Stuck) -> Path:
    """The file of the text behind the tool."""
    message = str(stuck.planted.messages[1]["id"])
    part = next(p["id"] for p in stuck.planted.parts[message] if p["type"] == "text")
    return stuck.storage / "part" / message / f"{part}.json"


def _part_folder_a_symlink(stuck: Stuck, outside: Path) -> str:
    folder = _part(stuck).parent
    folder.rename(outside / "elsewhere")
    folder.symlink_to(outside / "elsewhere")
    return f"{folder} is a symlink, where a folder should be; it is left alone"


def _part_folder_a_file(stuck: Stuck, outside: Path) -> str:
    folder = _part(stuck).parent
    folder.rename(outside / "elsewhere")
    folder.write_text("{}")
    return f"{folder} is a file, where a folder should be; it is left alone"


def _part_a_folder(stuck: Stuck, outside: Path) -> str:
    _part(stuck).unlink()
    _part(stuck).mkdir()
    return f"{_part(stuck)} is a folder, where a file should be; it is left alone"


def _part_a_symlink(stuck: Stuck, outside: Path) -> str:
    part = _part(stuck)
    part.rename(outside / "part.json")
    part.symlink_to(outside / "part.json")
    return f"{part} is a symlink, where a file should be; it is left alone"


def _part_a_pipe(stuck: Stuck, outside: Path) -> str:
    _part(stuck).unlink()
    os.mkfifo(_part(stuck))
    return f"{_part(stuck)} is a named pipe, where a file should be; it is left alone"


def _part_huge(stuck: Stuck, outside: Path) -> str:
    with _part(stuck).open("ab") as file:
        file.truncate(MAX_FILE + 1)
    return f"{_part(stuck)} is too large: {MAX_FILE + 1:,} bytes, at most {MAX_FILE:,} are read"


def _message_not_json(stuck: Stuck, outside: Path) -> str:
    path = stuck.storage / "message" / stuck.id / f"{stuck.planted.messages[1]['id']}.json"
    path.write_text('{"id": "msg_')
    return f"{path} is no JSON object"


def _message_deep(stuck: Stuck, outside: Path) -> str:
    path = stuck.storage / "message" / stuck.id / f"{stuck.planted.messages[1]['id']}.json"
    path.write_text('{"id":' * 100_000)
    return f"{path} is nested too deeply to be read"


SPOILS: list[Spoil] = [
    _part_folder_a_symlink,
    _part_folder_a_file,
    _part_a_folder,
    _part_a_symlink,
    _part_a_pipe,
    _part_huge,
    _message_not_json,
    _message_deep,
]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda spoil: str(spoil.__name__).strip("_"))
def test_what_is_no_record_is_told_and_left_alone(daemon: Daemon, tmp_path: Path, spoil: Spoil) -> None:
    """The path and the reason, in the log, where no line comes twice; the next session is healed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    stuck = Stuck(daemon.storage)
    sentence = spoil(stuck, outside)
    daemon.start()
    stuck.fail()
    before, beside = tree(daemon.storage), tree(outside)
    daemon.wait(lambda: sentence in daemon.log, f"it did not say: {sentence}")
    assert tree(daemon.storage) == before
    assert tree(outside) == beside
    good = Stuck(daemon.storage)
    good.fail()
    wait_healed(daemon, good)
    told = [line.split(" ", 1)[1] for line in daemon.log.splitlines() if sentence in line]
    assert len(told) == 1, told
    assert "Traceback" not in daemon.log
    assert tree(outside) == beside


def test_ids_that_lead_elsewhere_do_not(daemon: Daemon, tmp_path: Path) -> None:
    """Ids inside of records are never a path: what they point at is neither read nor written."""
    outside = tmp_path / "outside"
    (outside / "part").mkdir(parents=True)
    (outside / "part" / "prt_1.json").write_text("{}")
    daemon.start()
    stuck = Stuck(daemon.storage)
    part = _part(stuck)
    for path in (part, stuck.storage / "message" / stuck.id / f"{stuck.planted.messages[1]['id']}.json"):
        record = json.loads(path.read_bytes())
        for name in ("id", "sessionID", "messageID", "parentID"):
            if name in record:
                record[name] = "../../../../outside/part/prt_1"
        path.write_text(json.dumps(record))
    stuck.fail()
    good = Stuck(daemon.storage)
    good.fail()
    wait_healed(daemon, good)
    daemon.wait_settled([stuck.id])
    assert tree(outside) == {"part/prt_1.json": b"{}"}
    assert [path for path in tree(tmp_path / "data") if "outside" in path] == []
    assert "Traceback" not in daemon.log


def test_strange_names_in_the_store_are_passed_over(daemon: Daemon) -> None:
    """Folders and files whose names can be no ids: not read, not written, no word lost about them."""
    for name in ("ses with spaces", "ses_..", "..hidden", "ses_\udcff"):
        (daemon.storage / "message" / name).mkdir()
        (daemon.storage / "message" / name / "msg_1.json").write_text("{")
    (daemon.storage / "message" / "ses_file").write_text("no folder")
    before = tree(daemon.storage)
    daemon.start()
    good = Stuck(daemon.storage)
    good.fail()
    wait_healed(daemon, good)
    now = tree(daemon.storage)
    assert {path: now.get(path) for path in before} == before
    assert [line for line in daemon.log.splitlines() if "INFO" not in line] == []


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("max_retrys = 3\n", "unknown key `max_retrys`; the nearest one is `max_retries`"),
        ("[notify]\ndesktp = true\n", "unknown key `notify.desktp`; the nearest one is `notify.desktop`"),
        ('max_retries = "three"\n', "`max_retries` is"),
        ("max_retries = \n", "config.toml"),
        ('kinds = ["empty_contents"]\n', "empty_content"),
    ],
    ids=["key", "key of a section", "type", "no TOML", "kind"],
)
def test_a_bad_configuration_is_explained(tmp_path: Path, data: Path, config: str, words: str) -> None:
    """78, the file and the key, and what it may have meant; nothing is touched."""
    daemon = Daemon(tmp_path / "daemon", data, config=config)
    stuck = Stuck(daemon.storage)
    stuck.fail()
    before = stuck.files
    done = daemon.run("run")
    assert done.returncode == 78
    assert words in done.stderr
    assert str(daemon.root / "config" / "recoveryd" / "config.toml") in done.stderr
    assert "Traceback" not in done.stderr
    assert stuck.files == before


def test_an_unknown_setting_of_the_environment_is_explained(tmp_path: Path, data: Path) -> None:
    daemon = Daemon(tmp_path / "daemon", data, config=CONFIG, env={"RECOVERYD_MAX_RETRYS": "3"})
    done = daemon.run("run")
    assert done.returncode == 78
    assert "RECOVERYD_MAX_RETRYS" in done.stderr
    assert "RECOVERYD_MAX_RETRIES" in done.stderr
