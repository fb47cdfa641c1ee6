"""Text that others wrote, made safe to show."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.core.text import UNKNOWN, capital, clean, first_of, shown, uncapital

ANY = st.text(st.characters(codec=None, exclude_categories=()))
JOINERS = {"\u200c", "\u200d"}


class TestClean:
    @given(ANY, st.integers(1, 100))
    def test_any_text_fits_and_is_visible_and_is_utf8(self, text: str, length: int) -> None:
        fit = clean(text, length)
        assert len(fit) <= length
        fit.encode()
        assert not {c for c in fit if unicodedata.category(c)[0] == "C"} - JOINERS
        assert not re.search(r"\s\s|^\s|\s$|\n", fit)
        assert clean(fit, length) == fit

    def test_what_is_removed_and_what_stays(self) -> None:
        assert clean("a\x1b[31mb\u202ec\u2066d\u200be\x00", 80) == "a[31mbcde"
        assert clean(" a\t\u00a0b\r\nc\u2028d ", 80) == "a b c d"
        assert clean("a \n b\n\nc", 80, keep="\n") == "a\nb\n\nc"
        assert clean("half \ud83d of it", 80) == "half \ufffd of it"
        assert clean("--help; rm -rf ~", 80) == "--help; rm -rf ~"

    @pytest.mark.parametrize(
        "text",
        ["👩\u200d💻 läuft، हिन्दी", "👨\u200d👩\u200d👧\u200d👦 ok", "❤\ufe0f می\u200cخواهم", "שָׁלוֹם", "ที่นี่", "Tiếng"],
    )
    def test_what_people_write_stays(self, text: str) -> None:
        assert clean(text, 80) == text
        assert clean(unicodedata.normalize("NFD", text), 80) == unicodedata.normalize("NFD", text)

    def test_what_is_cut_says_so(self) -> None:
        assert clean("x" * 80, 80) == "x" * 80
        assert clean("x" * 81, 80) == "x" * 79 + "…"
        assert clean("x" * 10_000_000, 80) == "x" * 79 + "…"

    def test_marks_do_not_pile_up(self) -> None:
        flood = "Z" + "\u0301\u0489" * 500 + "!" + "\u200d" * 500 + "?"
        assert clean(flood, 2000) == "Z" + "\u0301\u0489" * 2 + "!" + "\u200d" * 4 + "?"

    def test_what_is_left_out_does_not_begin_a_new_pile(self) -> None:
        assert clean("Z" + "\u0301\u202e" * 50, 2000) == "Z" + "\u0301" * 4

    @pytest.mark.parametrize("text", ["", " \n", "\u3164\u2800", "\u200d\u200c", "\u202e\u2066", "\U000e0041\ufeff"])
    def test_what_nobody_can_see_is_nothing(self, text: str) -> None:
        assert clean(text, 80) == ""

    def test_without_a_length_nothing_is_cut(self) -> None:
        assert clean("x " * 10_000) == ("x " * 10_000).strip()

    def test_what_is_hidden_can_be_told(self) -> None:
        assert clean("a\x1b[31m\n\u202eb \ud83d", instead=UNKNOWN) == f"a{UNKNOWN}[31m {UNKNOWN}b {UNKNOWN}"
        assert clean("a\x1bb", instead=" ") == "a b"


class TestShown:
    @given(ANY)
    def test_no_character_is_obeyed(self, text: str) -> None:
        safe = shown(text, keep="\t", instead=UNKNOWN)
        assert len(safe) == len(text)
        safe.encode()
        assert not {c for c in safe if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")} - JOINERS - {"\t"}

    def test_blanks_and_lines_stay_where_that_is_said(self) -> None:
        assert shown("a  b\tc\nd\r", keep="\t\n", instead=repr) == "a  b\tc\nd'\\r'"


def test_a_sentence_begins_with_a_capital_but_a_name_stays() -> None:
    assert capital("it is fine") == "It is fine"
    assert capital("tool_result_missing is off") == "tool_result_missing is off"


def test_in_the_midst_of_a_sentence_stands_a_small_letter_but_a_name_stays() -> None:
    assert uncapital("A turn is running") == "a turn is running"
    assert uncapital("OpenCode may be about to clear it") == "OpenCode may be about to clear it"
    assert uncapital("") == ""


@pytest.mark.parametrize(
    ("names", "said"),
    [([], ""), (["a"], "a"), (["a", "b", "c"], "a, b, c"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")],
)
def test_of_many_names_the_first_are_told_and_how_many_more_there_are(names: list[str], said: str) -> None:
    assert first_of(names) == said
    assert first_of(names, 1) == (f"a and {len(names) - 1} more" if len(names) > 1 else said)
