"""Every shape on the real Codex, the slow ones too: `python -m tests.e2e.codex [NAME ...]`.

Prints a line a shape: what it was refused for, what healed it, and what became of three more prompts; and at the end
how many requests `recoveryd` foresaw item by item.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.e2e.codex.healing import play
from tests.e2e.codex.shapes import MENDED, SOUND, STUCK, Shape


def main(names: list[str]) -> int:
    """Play the shapes whose names hold one of `names`; all of them without. Returns how many did not go on."""

    def wanted(shapes: dict[str, Shape]) -> list[Shape]:
        return [shape for shape in shapes.values() if not names or any(name in shape.name for name in names)]

    with (
        tempfile.TemporaryDirectory() as folder,
        play(Path(folder), wanted(STUCK), wanted({**MENDED, **SOUND})) as rounds,
    ):
        wrong = [name for name, healed in rounds.stuck.items() if not healed.well]
        for healed in rounds.stuck.values():
            print(f"{'ok ' if healed.well else 'NOT'} {healed.tell()}")
        moved = [n for n, planted in rounds.whole.items() if not planted.path.read_bytes().startswith(planted.before)]
        print(f"healed {len(rounds.stuck) - len(wrong)} of {len(rounds.stuck)}; not: {wrong}")
        print(f"left as they were {len(rounds.whole) - len(moved)} of {len(rounds.whole)}; not: {moved}")
        foreseen = [name for name, healed in rounds.stuck.items() if not healed.unforeseen]
        print(f"requests foreseen {len(foreseen)} of {len(rounds.stuck)}")
    return len(wrong) + len(moved)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
