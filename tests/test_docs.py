"""What is said of the program is what it does: help, manual page, completion and README are held to the parser."""

from __future__ import annotations

import argparse
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recoveryd.cli.declare import Parser, subparsers
from recoveryd.cli.manual import manual
from recoveryd.cli.parser import make_parser
from recoveryd.cli.reasons import REASONS
from recoveryd.clients import Config
from recoveryd.clients.opencode.versions import BY_TIME_SINCE, TESTED, version_text, versions_tested
from recoveryd.core.model import Kind
from recoveryd.doctor.checks import _CHECKS, CODES
from recoveryd.settings.load import load
from tests import support
from tests.conftest import Run
from tests.support.trees import EMPTY, Tree, blank_answer

ROOT = Path(__file__).parent.parent
DOCS = (
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCS}
README = PAGES["README.md"]


def all_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for _, inner in subparsers(parser):
        yield inner
        yield from all_of(inner)


COMMANDS = {parser.prog.removeprefix("recoveryd "): parser for parser in all_of(make_parser())}
TOP = [name for name in COMMANDS if " " not in name]


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, command: str, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(*command.split(), "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


def test_the_list_of_commands_has_a_line_for_each(run: Run) -> None:
    _, out, _ = run("--help")
    listed = out.partition("COMMAND\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == TOP


def test_the_table_of_commands_has_all_of_them_and_no_option_that_is_none() -> None:
    rows = re.findall(r"^\| `recoveryd ([^`]+)` \| (.*) \|$", PAGES["docs/commands.md"], re.MULTILINE)
    assert sorted(usage.split()[0] for usage, _ in rows) == sorted(TOP)
    for usage, words in rows:
        parsers = [parser for name, parser in COMMANDS.items() if name.split()[0] == usage.split()[0]]
        known = set().union(*map(options, parsers))
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", f"{usage} {words}")) <= known, usage
        actions = {parser.prog.split()[-1] for parser in parsers[1:]}
        assert actions <= set(re.findall(r"[a-z]+", usage)), usage


def test_what_is_said_of_the_exit_codes_is_what_the_help_says() -> None:
    said = re.sub(r"\s+", " ", PAGES["docs/commands.md"])
    told = re.findall(r"(\d+) ([a-z ]+)", str(make_parser().epilog).replace("\n", " "))
    assert [number for number, _ in told] == ["0", "1", "2", "3", "4", "75", "78"]
    for number, words in told:
        assert f"{number} {words.strip()}" in said


def test_the_configuration_that_is_shown_is_sound_and_has_the_defaults(tmp_path: Path) -> None:
    block = PAGES["docs/configuration.md"].partition("```toml")[2].partition("```")[0]
    (tmp_path / "config.toml").write_text(block)
    config = load(Config, tmp_path / "config.toml", {})
    assert (config.max_retries, config.keep_thinking, config.ledger.keep_days) == (3, True, 30)


def test_the_versions_of_the_client_are_those_of_the_code() -> None:
    told = set(re.findall(r"\b1\.\d+\.\d+\b", README + PAGES["docs/guide.md"]))
    assert told == {version_text(version) for version in (*TESTED, BY_TIME_SINCE)}
    first, *rest, last = map(version_text, TESTED)
    assert f"tested on {', '.join([first, *rest])} and {last}" in README
    for client in ("kilo", "codex", "claude_code"):
        assert f"tested on {' and '.join(map(version_text, versions_tested(client)))}" in README
    sources = {str(path): path.read_text(encoding="utf-8") for path in (ROOT / "recoveryd").rglob("*.py")}
    assert [path for path, text in sources.items() if version_text(BY_TIME_SINCE) in text] == []


def test_every_command_that_the_documents_show_is_one() -> None:
    for name, page in PAGES.items():
        for line in _typed(page):
            command, *rest = line.split()
            assert command in (*TOP, "help") or command.startswith("-"), f"{name}: recoveryd {line}"
            known = set().union(*(options(p) for n, p in COMMANDS.items() if n.split()[0] == command), ("--version",))
            assert set(re.findall(r"(?<![\w-])--[a-z-]+", " ".join(rest))) <= known, f"{name}: recoveryd {line}"


@pytest.mark.parametrize("code", sorted(REASONS))
def test_every_reason_without_a_kind_is_in_the_documents(code: str) -> None:
    assert f"`{code}`" in PAGES["docs/json.md"]
    assert f"- `{code}`: " in PAGES["docs/guide.md"]


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for name, page in PAGES.items():
        for target in re.findall(r"\]\(([^)]+)\)", page):
            path, _, heading = target.partition("#")
            if "//" not in target:
                found = (ROOT / name).parent / path if path else ROOT / name
                assert found.exists(), f"{name}: {target}"
                headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE) if heading else ()
                assert not heading or heading in {_anchor(words) for words in headings}, f"{name}: {target}"


def _anchor(heading: str) -> str:
    """The name by which a link finds a heading, as on GitHub."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_the_helpers_of_the_tests_are_listed_and_those_that_are_listed_are_there() -> None:
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^- (.*?):", support.__doc__ or "", re.MULTILINE)))
    assert sorted(listed) == sorted(path.stem for path in Path(str(support.__file__)).parent.glob("[!_]*.py"))


def test_every_page_is_linked_from_the_readme() -> None:
    reached, left = set(), ["README.md"]
    while left:
        name = left.pop()
        reached.add(name)
        targets = re.findall(r"\]\(([^)#]+\.md)", PAGES[name])
        found = {str(((ROOT / name).parent / target).resolve().relative_to(ROOT)) for target in targets}
        left += found & PAGES.keys() - reached
    assert reached >= {name for name in DOCS if name.startswith("docs/")}


def _typed(text: str) -> Iterator[str]:
    """What stands behind `recoveryd` where a shell would read it: in blocks for one, and in code within a sentence."""
    block = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
    lines = [line for language, code in block.findall(text) if language == "sh" for line in code.splitlines()]
    inline = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", block.sub("", text))]
    for code in (*lines, *inline):
        for piece in re.split(r"&&|\\\||#|\||;", code):
            found = re.match(r"\s*(?:\S*/)?recoveryd (\S.*)", piece)
            if found:
                yield found[1]


class TestManual:
    def test_it_has_every_command_option_and_check(self) -> None:
        page = re.sub(r"\\([-&])", lambda m: "-" if m[1] == "-" else "", manual(make_parser()))
        for name, parser in COMMANDS.items():
            assert f".SS {name}\n" in page
            assert all(option in page for option in options(parser) - {"-h", "--help"})
        assert all(f".B {code}\n{words}" in page.replace("\\(aq", "'") for code, words in CODES.items())

    def test_it_follows_the_parser(self) -> None:
        parser = make_parser()
        action = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        made = action.add_parser("brandnew", help="do a new thing")
        assert isinstance(made, Parser)
        made.add_argument("--shiny", metavar="X", help="more of it")
        page = manual(parser)
        assert "Do a new thing." in page and "\\-\\-shiny X" in page

    @pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
    def test_the_formatter_has_nothing_to_say(self, tmp_path: Path) -> None:
        page = tmp_path / "recoveryd.1"
        page.write_text(manual(make_parser()), encoding="utf-8")
        done = subprocess.run(
            ["man", "--warnings", "-l", str(page)], capture_output=True, text=True, check=False, timeout=30
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "ledger forget" in done.stdout

    def test_the_checks_are_those_that_are_made(self) -> None:
        assert [code for code in CODES if code != "id_wrap"] == list(_CHECKS), (
            "the clients make that one with the one before"
        )


def script(run: Run, shell: str, folder: Path) -> Path:
    code, out, _ = run("completion", shell)
    assert code == 0
    path = folder / f"completion.{shell}"
    path.write_text(out, encoding="utf-8")
    return path


def asked(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


class TestCompletion:
    @pytest.mark.live
    def test_bash_offers_what_there_is(self, run: Run, tmp_path: Path) -> None:
        path = script(run, "bash", tmp_path)

        def offered(*words: str) -> set[str]:
            line = " ".join(f"'{word}'" for word in ("recoveryd", *words))
            ask = (
                f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words)};"
                ' f=$(complete -p recoveryd | sed "s/.*-F \\([^ ]*\\).*/\\1/"); $f; echo "${COMPREPLY[@]}"'
            )
            return set(asked(["bash", "-c", ask]))

        assert offered("") >= set(TOP)
        assert offered("sta") == {"start", "status"}
        for name, parser in COMMANDS.items():
            assert offered(*name.split(), "--") >= {o for o in options(parser) if o.startswith("--")}, name
        assert offered("scan", "--kind", "tool_c") == {Kind.TOOL_CALL_INVALID}
        assert offered("completion", "") >= {"bash", "zsh", "fish"}
        assert offered("ledger", "f") == {"forget"}

    @pytest.mark.live
    def test_bash_offers_the_ids_that_the_ledger_has(
        self, run: Run, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = tree.stuck(blank_answer, EMPTY)
        assert run("completion", "recoveries") == (0, "", "")
        assert run("scan", "--repair")[0] == 0
        name = run("completion", "recoveries")[1].strip()
        assert run("completion", "sessions")[1].split() == [session]
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "recoveryd").write_text(f'#!/bin/sh\nexec {sys.executable} -m recoveryd "$@"\n')
        (tmp_path / "bin" / "recoveryd").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
        path = script(run, "bash", tmp_path)
        for words, wanted in ((["undo"], name), (["scan", "--session"], session), (["ledger", "forget"], session)):
            line = " ".join(["recoveryd", *words, "''"])
            ask = f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words) + 1}; _shtab_recoveryd"
            assert wanted in asked(["bash", "-c", f"{ask}; echo ${{COMPREPLY[@]}}"]), words

    @pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
    def test_fish_offers_what_there_is(self, run: Run, tmp_path: Path) -> None:
        path = script(run, "fish", tmp_path)

        def offered(line: str) -> set[str]:
            done = subprocess.run(
                ["fish", "--no-config", "-c", f"source {path}; complete -C '{line}'"],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            return {row.split("\t")[0] for row in done.stdout.splitlines()}

        assert offered("recoveryd ") >= set(TOP)
        assert offered("recoveryd scan --") >= {"--repair", "--session", "--kind", "--json"}
        assert offered("recoveryd completion ") >= {"bash", "zsh", "fish"}

    @pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
    def test_zsh_takes_it_and_it_has_every_command(self, run: Run, tmp_path: Path) -> None:
        script(run, "zsh", tmp_path).rename(tmp_path / "_recoveryd")
        for line, whole in (("scan --rep", "--repair "), ("unp", "unpause "), ("ledger f", "forget ")):
            assert whole in typed(tmp_path, f"recoveryd {line}", whole)
        text = (tmp_path / "_recoveryd").read_text(encoding="utf-8")
        for name, parser in COMMANDS.items():
            assert re.search(rf"^ +{name.split()[-1]}\)", text, re.MULTILINE), name
            assert all(option in text for option in options(parser))


def typed(folder: Path, line: str, wanted: str) -> str:
    """What zsh shows when somebody types a line and a tab: once it is what is `wanted`, or after 15 seconds."""
    terminal, inside = pty.openpty()
    own = {**os.environ, "TERM": "dumb", "HOME": str(folder), "ZDOTDIR": str(folder)}
    shell = ["zsh", "-f", "-i"]
    with subprocess.Popen(shell, stdin=inside, stdout=inside, stderr=inside, env=own, start_new_session=True) as zsh:
        try:
            begin = f"PS1=; fpath=({folder} $fpath); autoload -U compinit; compinit -D -u; print READ''Y\n"
            os.write(terminal, begin.encode())
            read_until(terminal, "READY")
            os.write(terminal, f"{line}\t".encode())
            return read_until(terminal, wanted)
        finally:
            zsh.kill()
            zsh.wait()
            os.close(terminal)
            os.close(inside)


def read_until(terminal: int, wanted: str) -> str:
    said, deadline = b"", time.monotonic() + 15
    while wanted.encode() not in said and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536)
    return said.decode("utf-8", "replace")
