"""The picture of the README is of a real run, and can be made again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PICTURE = Path(__file__).parent.parent / "pictures" / "demo.svg"


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_the_picture_can_be_made_and_shows_what_the_kept_one_shows(tmp_path: Path) -> None:
    made = tmp_path / "demo.svg"
    subprocess.run([sys.executable, "-m", "tests.picture", str(made)], check=True, timeout=100)
    for words in ("healed", "untouched", "byte&#160;for&#160;byte", "Next:"):
        for svg in (made, PICTURE):
            assert words in svg.read_text(encoding="utf-8"), f"{svg}: {words}"
