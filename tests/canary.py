"""`python -m tests.canary`: does the newest published version of each client still do what the tests hold it to?

A version that is not known is taken for the newest form that is. `CLIENT@VERSION` asks for another one. What differs is
said, and the code is 1; 2 where a client can't be had. `--write` puts the versions that passed where doctor and the
README have them from.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from tests.e2e import install
from tests.e2e.claude_code import client as claude_code
from tests.e2e.codex import install as codex

ROOT = Path(__file__).parent.parent
TESTED = ROOT / "recoveryd" / "tested.json"
README = ROOT / "README.md"


@dataclass(frozen=True)
class Client:
    """Where a client comes from, and the tests of its requests and its healing, which run the version in `variable`.

    `line`: how many numbers of a version name its line, of which only the newest is kept as tested.
    """

    newest: Callable[[], str]
    ensure: Callable[[str], Path]
    tests: tuple[str, ...]
    variable: str = "TEST_RECOVERYD_VERSIONS"
    line: int = 2


def _of(name: str, ensure: Callable[[str], Path], *tests: str, line: int = 2) -> Client:
    return Client(partial(install.newest, name), ensure, tests, install.variable_of(name), line)


CLIENTS = {
    "opencode": Client(
        install.newest, install.ensure, ("tests/e2e/test_wire_versions.py", "tests/e2e/test_heal_versions.py")
    ),
    "kilo": _of("kilo", install.ensure_kilo, "tests/e2e/test_kilo.py"),
    "codex": _of("codex", codex.ensure, "tests/e2e/codex/test_heal.py", "tests/e2e/codex/test_open.py", line=1),
    "claude_code": _of("claude_code", claude_code.ensure, "tests/e2e/claude_code"),
}


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    codes = []
    for asked in options.clients or CLIENTS:
        name, _, version = asked.partition("@")
        try:
            version = version or CLIENTS[name].newest()
            CLIENTS[name].ensure(version)
        except install.UnavailableError as reason:
            print(f"{name} {version}: it can't be had: {reason}")
            codes.append(2)
            continue
        differs = list(_run(CLIENTS[name], version))
        print(f"{name} {version}: {'it differs:' if differs else 'nothing differs.'}", *differs, sep="\n  ")
        codes.append(1 if differs else 0)
        if options.write and not differs:
            write(name, version)
    return max(codes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.canary", description=__doc__)
    parser.add_argument(
        "clients", nargs="*", metavar="CLIENT[@VERSION]", help="all, each at its newest, if none is named"
    )
    parser.add_argument("--write", action="store_true", help="note the versions that passed as tested")
    return parser


def _run(client: Client, version: str) -> Iterator[str]:
    """Run the tests of a client on one version; what failed, and how."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        env = {**os.environ, client.variable: version, "TEST_RECOVERYD_REQUIRED": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", f"--junitxml={report}", *client.tests]
        done = subprocess.run(command, cwd=ROOT, env=env, check=False)
        yield from differences(report.read_text(encoding="utf-8") if report.exists() else "")
        if done.returncode not in (0, 1):
            yield f"the tests could not be run (pytest's code was {done.returncode})"


def differences(report: str) -> Iterator[str]:
    """From pytest's report as XML: each test that failed, with the first lines of its reason."""
    for case in ElementTree.fromstring(report).iter("testcase") if report else ():
        for trouble in (*case.iter("failure"), *case.iter("error")):
            reason = (trouble.get("message") or "").splitlines()[:4]
            yield f"{case.get('name')}: {' / '.join(line.strip() for line in reason)[:600]}"


def write(name: str, version: str) -> None:
    """Note a version as tested. It takes the place of an older one of its line (1.18), so that the list stays short."""
    known = json.loads(TESTED.read_text(encoding="utf-8"))
    before, after = known[name], merged(known[name], version, CLIENTS[name].line)
    TESTED.write_text(json.dumps({**known, name: after}, indent=2) + "\n", encoding="utf-8")
    page = README.read_text(encoding="utf-8")
    README.write_text(page.replace(f"tested on {listed(before)}", f"tested on {listed(after)}"), encoding="utf-8")


def merged(versions: Iterable[str], version: str, line: int = 2) -> list[str]:
    """The newest of each line, oldest line first. Of a line in which a newer one is known nothing changes."""
    by_line: dict[tuple[int, ...], tuple[int, ...]] = {}
    for one in (*versions, version):
        numbers = tuple(map(int, one.split(".")))
        by_line[numbers[:line]] = max(numbers, by_line.get(numbers[:line], numbers))
    return [".".join(map(str, numbers)) for _, numbers in sorted(by_line.items())]


def listed(versions: Sequence[str]) -> str:
    """As a sentence has them: "1.1.53, 1.2.1 and 1.18.33"."""
    *first, last = versions
    return f"{', '.join(first)} and {last}" if first else last


if __name__ == "__main__":
    sys.exit(main())
