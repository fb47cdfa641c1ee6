"""`recoveryd config`"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from recoveryd.cli.common import config_of
from recoveryd.cli.output import OK, WRONG, Result, hung, render
from recoveryd.core import ConfigProblem
from recoveryd.doctor import problems
from recoveryd.settings import paths, show


def config(arguments: argparse.Namespace) -> int:
    path = arguments.config or paths.config_file()
    if arguments.what == "path":
        return render(Result({"path": str(path)}, lambda out: out.print(str(path))), as_json=arguments.json)
    settings = config_of(arguments)
    if arguments.what == "show":
        data = settings.model_dump(mode="json")
        return render(Result(data, lambda out: out.print(show(settings), end="")), as_json=arguments.json)
    return render(_checked(path, problems(settings)), as_json=arguments.json)


def _checked(path: Path, found: Sequence[ConfigProblem]) -> Result:
    """A configuration that can be read, and what is wrong with the things that it names."""

    def say(out: Console) -> None:
        for one in found:
            hung(out, "wrong", f"{one.key}: {one.says}")
            hung(out, "", one.next)
        if not path.exists():
            out.print(f"There is no {path}: all settings are the defaults.")
        elif not found:
            out.print(f"{path} is sound.")

    data = {"path": str(path), "exists": path.exists(), "ok": not found, "problems": [asdict(one) for one in found]}
    return Result(data, say, WRONG if found else OK)
