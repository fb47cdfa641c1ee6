"""`recoveryd doctor`"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from recoveryd.cli.common import whose_by
from recoveryd.cli.output import OK, WRONG, Result, print_labelled, render
from recoveryd.clients import Config, Whose, find_stores
from recoveryd.core import Check, ConfigError
from recoveryd.doctor import CODES, Patient, examine, none_failed
from recoveryd.settings import load_sound, paths

_WIDTH = 7 + max(map(len, CODES))
_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(arguments: argparse.Namespace) -> int:
    """Run `recoveryd doctor`: print all checks; 1 where one failed."""
    patient = _patient(arguments)
    checks, whose = list(examine(patient)), whose_by(patient.config)
    good = none_failed(checks)
    data = {
        "ok": good,
        "checks": [asdict(check) | {"client": whose.name(check.about) if check.about else ""} for check in checks],
    }
    return render(
        Result(data, lambda out: _show(out, checks, whose if whose.several else None), OK if good else WRONG),
        as_json=arguments.json,
        paged=True,
    )


def _patient(arguments: argparse.Namespace) -> Patient:
    """Collect what is examined. A configuration that is not sound is a finding here, not the end."""
    file = arguments.config or paths.config_file()
    config, problem = load_sound(Config, file)
    if arguments.config is not None and not file.exists():
        problem = ConfigError(f"There is no configuration file {file}.")
    return Patient(
        config=config,
        config_file=file,
        state_dir=paths.state_dir(),
        all_stores=find_stores(config),
        now=time.time(),
        config_problem=problem,
        show_toast=arguments.toast,
    )


def _show(out: Console, checks: Sequence[Check], whose: Whose | None) -> None:
    for check in checks:
        says = f"{whose.title(check.about)}: {check.says}" if whose and check.about else check.says
        one_line = f"{says} Next: {check.next}" if check.next and not out.is_terminal else says
        print_labelled(out, f"{check.level:5} {check.code}", one_line, _STYLES[check.level], _WIDTH)
        if check.next and out.is_terminal:
            print_labelled(out, "", check.next, "dim", _WIDTH)
    counts = {level: sum(check.level == level for check in checks) for level in ("fail", "warn")}
    out.print()
    if counts["fail"] or counts["warn"]:
        failed = "1 check fails" if counts["fail"] == 1 else f"{counts['fail']} checks fail"
        warned = "1 is a warning" if counts["warn"] == 1 else f"{counts['warn']} are warnings"
        out.print(", ".join(word for word, n in ((failed, counts["fail"]), (warned, counts["warn"])) if n) + ".")
    else:
        out.print("All is as it should be.")
