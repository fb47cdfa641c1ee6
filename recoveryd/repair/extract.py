"""What stands in the place of messages that are no longer sent: what was asked, which files, the last words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from recoveryd.core import Block
from recoveryd.repair.outline import Outline, Placed

_HEAD = (
    "The conversation before this point is longer than the model takes and is no longer sent. This extract was made "
    "without a model; nothing was deleted."
)
_LEAST = 1_000  # characters of the whole
_TASK = _TOLD = 0.3  # of the whole: what the user said first, or a summary that stands in its place
_ASKED = 0.35
_SAID = 0.15
_PATHS = ("filePath", "file_path", "path", "notebook_path")


def extract_before(outline: Outline, until: str, characters: int, summaries: Collection[str]) -> str:
    """Tell what stands before the message `until` in at most so many characters, about; what `summaries` told of that,
    by the ids of their messages, goes on.
    """
    placed = outline.placed
    end = next((at for at, one in enumerate(placed) if one.block.message_id == until), len(placed))
    room = max(_LEAST, characters) - len(_HEAD)
    before = [one for one in placed[:end] if one.block.message_id not in summaries]
    told = [one for one in placed[:end] if one.block.message_id in summaries]
    within = end < len(placed) and not placed[end].of_user
    chapters = _chapters(before, room, first=not told, within=within)
    return "\n\n".join([_HEAD, *filter(None, (_summary(told, room), *chapters))])


def _summary(told: Sequence[Placed], room: int) -> str:
    """Write what the newest summary told, which holds what those before it did."""
    said = [str(one.block.body["text"]) for one in told if not one.of_user and one.block.type == "text"]
    return f"What a summary told before:\n{_short(said[-1].removeprefix(_HEAD), int(room * _TOLD))}" if said else ""


def _chapters(before: Sequence[Placed], room: int, *, first: bool, within: bool) -> Iterator[str]:
    """Write the chapters of an extract. `first`: nothing stood before these, what the user said first is the task.
    `within`: a turn goes on behind them, and what the user said last is what is worked on.
    """
    asked = [str(one.block.body["text"]) for one in before if one.of_user and one.block.type == "text"]
    said = [str(one.block.body["text"]).strip() for one in before if not one.of_user and one.block.type == "text"]
    if asked and first:
        yield f"The user's first words:\n{_short(asked[0], int(room * _TASK))}"
    then, left = asked[1:] if first else asked, int(room * _ASKED)
    last = _short(then[-1], left) if within and then else ""
    then = then[:-1] if last else then
    if then:
        yield f"Then the user said:\n{_lines(then, left - len(last))}"
    if last:
        yield f"What the user asked last, and is worked on:\n{last}"
    yield _tools([one.block for one in before if one.block.type == "tool_use"], int(room * 0.2))
    if said:
        yield f"The last answer before this point:\n{_short(said[-1], int(room * _SAID))}"


def _tools(calls: Sequence[Block], room: int) -> str:
    if not calls:
        return ""
    counts = Counter(str(block.body.get("name")) for block in calls)
    lines = ["Tools that were used: " + ", ".join(f"{name} {_times(n)}" for name, n in counts.most_common(12))]
    paths: dict[str, None] = {}
    for block in calls:
        given = block.body.get("input")
        given = given if isinstance(given, dict) else {}
        for key in _PATHS:
            if isinstance(given.get(key), str):
                paths.pop(given[key], None)
                paths[given[key]] = None  # the latest last
    if paths:
        lines.append("Files, the latest first: " + _short(", ".join(reversed(paths)), max(200, room)))
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _lines(texts: Sequence[str], room: int) -> str:
    """Write a line for each text, the newest kept where not all fit, in their order."""
    each = max(80, min(400, room // max(1, len(texts))))
    kept: list[str] = []
    for text in reversed(texts):
        line = "- " + _short(" ".join(text.split()), each)
        room -= len(line) + 1
        if room < 0 and kept:
            kept.append(f"- ({len(texts) - len(kept)} earlier ones)")
            break
        kept.append(line)
    return "\n".join(reversed(kept))


def _short(text: str, characters: int) -> str:
    text = text.strip()
    if len(text) <= max(80, characters):
        return text
    head = max(80, characters) * 2 // 3
    tail = max(80, characters) - head
    return f"{text[:head].rstrip()} [...] {text[-tail:].lstrip()}"
