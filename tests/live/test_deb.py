"""The Debian package: built from this tree, taken apart, and its program run by Debian's own Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from recoveryd.core.version import __version__

ROOT = Path(__file__).parents[2]
SYSTEM = Path("/usr/bin/python3")
MISSING = [name for name in ("dpkg-deb", "strip", "gzip") if not shutil.which(name)]


@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(MISSING) or not SYSTEM.exists(), reason=f"not Debian's: {MISSING or SYSTEM}")
def test_the_package_has_all_that_the_program_needs(tmp_path: Path) -> None:
    env = {**os.environ, "DPKG_DEB_COMPRESSOR_LEVEL": "0"}  # that is most of the time
    subprocess.run([ROOT / ".ci" / "deb", tmp_path], check=True, env=env, timeout=500)
    (package,) = tmp_path.glob("recoveryd_*.deb")
    if shutil.which("lintian"):
        judged = subprocess.run(["lintian", "--allow-root", package], capture_output=True, text=True, check=False)
        assert judged.stdout == ""
    place, home = tmp_path / "place", tmp_path / "home"
    subprocess.run(["dpkg-deb", "-x", package, place], check=True)
    assert (place / "usr/share/man/man1/recoveryd.1.gz").stat().st_size > 1000
    assert "_shtab_recoveryd" in (place / "usr/share/bash-completion/completions/recoveryd").read_text()
    home.mkdir()
    own = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TEST_RECOVERYD_LOCKS": "below HOME"}

    def said(*words: str) -> str:
        done = subprocess.run(
            [place / "usr/bin/recoveryd", *words], env=own, capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    assert said("--version") == f"recoveryd {__version__}\n"
    assert f"ExecStart={place}/usr/bin/recoveryd run" in said("install", "--print")
    assert "byte for byte" in said("demo")
