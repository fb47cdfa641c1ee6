"""The program as a process of its own, forked from one that imported it: importing takes half a second each time."""

from __future__ import annotations

import atexit
import json
import os
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]


def start(argv: Sequence[str], env: Mapping[str, str], streams: tuple[int, int, int]) -> Callable[[float], int]:
    """Start `recoveryd ARGV` with these descriptors as its streams; the answer waits so many seconds for its end."""
    ended, ends = os.pipe()
    with tempfile.TemporaryFile() as order:
        order.write(json.dumps({"argv": list(argv), "env": dict(env), "cwd": str(Path.cwd())}).encode())
        order.seek(0)
        socket.send_fds(_parent(), [b"."], [*streams, order.fileno(), ends])
    os.close(ends)

    def wait(seconds: float) -> int:
        heard = select.select([ended], [], [], seconds)[0]
        code = os.read(ended, 16) if heard else b""
        os.close(ended)
        if not code:
            raise TimeoutError(f"recoveryd {' '.join(argv)} did not end within {seconds:.0f} seconds")
        return int(code)

    return wait


@cache
def _parent() -> socket.socket:
    """The process to fork from; it ends with this one, which holds the other end."""
    mine, its = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-m", __name__, str(its.fileno())], pass_fds=[its.fileno()], cwd=ROOT)
    its.close()
    atexit.register(process.wait, 30)
    atexit.register(mine.close)
    return mine


def _serve(asked: socket.socket) -> None:
    for module in pkgutil.iter_modules([str(ROOT / "recoveryd" / "cli")], "recoveryd.cli."):
        import_module(module.name)
    while True:
        word, descriptors, _, _ = socket.recv_fds(asked, 1, 5)
        if not word:
            return
        pid = os.fork()
        if pid == 0:
            _become(*descriptors)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(descriptors[-1], str(code).encode())
        for descriptor in descriptors:
            os.close(descriptor)


def _become(stdin: int, stdout: int, stderr: int, order: int, ends: int) -> NoReturn:
    """Run the command as the interpreter would."""
    for number, descriptor in enumerate((stdin, stdout, stderr)):
        os.dup2(descriptor, number)
    with open(order, "rb") as file:
        asked = json.load(file)
    os.close(ends)
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    sys.stdin, sys.stdout = open(0, encoding="utf-8"), open(1, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.argv = ["recoveryd", *asked["argv"]]
    code = 1
    try:
        runpy.run_module("recoveryd", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
