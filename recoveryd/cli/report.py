"""`recoveryd report`"""

from __future__ import annotations

import argparse
import json
import sys

from recoveryd.cli.common import config_of, known_ledger, stores_of
from recoveryd.cli.output import Result, render
from recoveryd.core import RecoverydError, RefusedError
from recoveryd.doctor import Sources, bundle
from recoveryd.settings import paths


def report(arguments: argparse.Namespace) -> int:
    """Run `recoveryd report`: print a bug report of a recovery or a session, without its content."""
    config = config_of(arguments)
    with known_ledger() as ledger:
        made = bundle(Sources(config, stores_of(config), ledger, paths.state_dir()), arguments.id)
    if arguments.out is None:  # with `--json` and without: there is no other form of it
        return render(Result(made, lambda _: None), as_json=True)
    text = json.dumps(made, indent=2, ensure_ascii=True) + "\n"
    try:
        with arguments.out.open("x", encoding="ascii") as file:
            file.write(text)
    except FileExistsError as error:
        raise RefusedError(f"{arguments.out} is there already.", "Name another file, or move that one away.") from error
    except OSError as error:
        raise RecoverydError(
            f"{arguments.out} can't be written: {error.strerror or error}.", "Name another one."
        ) from error
    said = (
        f"Wrote {arguments.out}. It holds shapes, lengths and versions, and no content; look at it before you send it."
    )
    print(said, file=sys.stderr)  # noqa: T201
    return render(Result({"file": str(arguments.out)}, lambda _: None), as_json=arguments.json)
