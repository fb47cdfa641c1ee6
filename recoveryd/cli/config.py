"""`recoveryd config`"""

from __future__ import annotations

import argparse

from rich.console import Console

from recoveryd import paths
from recoveryd.cli.common import config_of
from recoveryd.cli.output import Result, render
from recoveryd.config import show


def config(arguments: argparse.Namespace) -> int:
    path = arguments.config or paths.config_file()
    if arguments.what == "path":
        return render(Result({"path": str(path)}, lambda out: out.print(str(path))), as_json=arguments.json)
    settings = config_of(arguments)
    if arguments.what == "show":
        data = settings.model_dump(mode="json")
        return render(Result(data, lambda out: out.print(show(settings), end="")), as_json=arguments.json)

    def say(out: Console) -> None:
        out.print(f"{path} is sound." if path.exists() else f"There is no {path}: all settings are the defaults.")

    return render(Result({"path": str(path), "exists": path.exists(), "ok": True}, say), as_json=arguments.json)
