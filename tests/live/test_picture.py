"""The picture of the README is of a real run, can be made again, and says what the program says today."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PICTURE = Path(__file__).parent.parent / "pictures" / "demo.svg"
_OTHER_EACH_TIME = re.compile(r"\b(?:msg|prt)_\w+|\br[a-z0-9]{8}\b|\d+(?:\.\d+)?")  # ids and figures


def said(picture: Path) -> list[str]:
    """All texts of a picture, in their order, without what is another one each time."""
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    words = " ".join(_OTHER_EACH_TIME.sub("_", html.unescape(text).replace("\xa0", " ")) for text in texts)
    return words.split()


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_the_picture_can_be_made_and_the_kept_one_says_the_same(tmp_path: Path) -> None:
    made = tmp_path / "demo.svg"
    subprocess.run([sys.executable, "-m", "tests.picture", str(made)], check=True, timeout=100)
    for words in ("healed", "untouched", "byte&#160;for&#160;byte", "Next:"):
        assert words in made.read_text(encoding="utf-8"), words
    assert said(made) == said(PICTURE), f"`python -m tests.picture {PICTURE}` makes it anew"
