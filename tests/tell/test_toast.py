"""The text of a notice: what it may hold, and how many notices become one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recoveryd.core import command_line, going_by
from recoveryd.tell.toast import BODY_LENGTH, TITLE_LENGTH, Toast, merged_toast, safe_title

ANY = st.text(st.characters(codec=None, exclude_categories=()))
NEWS = st.sampled_from(["healed", "given up", "stuck"])


LAST = "All of them: `recoveryd history`. How to go on: recoveryd scan"


def toast(number: int, news: str = "healed", name: str = "", who: str = "Kilo") -> Toast:
    name = name or f"name {number}"
    return Toast(f"Session {news}: {name}", "what was done", (), news, f"ses_{number}", name, who)


class TestTitle:
    @given(ANY)
    def test_no_title_is_a_tag_or_an_entity(self, text: str) -> None:
        title = safe_title(text)
        assert 0 < len(title) <= TITLE_LENGTH
        assert not re.search(r"<\s*[A-Za-z/!?]|&#?\w+;", title)

    def test_what_looks_like_markup_only_looks_like_it(self) -> None:
        assert safe_title("<b>x</b>") == "‹b›x‹/b›"
        assert safe_title("vector< int > a") == "vector‹ int › a"
        assert safe_title("<!-- x") == "‹!-- x"
        assert safe_title("&#x202e;&lt;b&gt;") == "＆#x202e;＆lt;b＆gt;"

    def test_one_that_nobody_can_see_is_our_name(self) -> None:
        assert safe_title("\u202e\u3164") == "recoveryd"

    @pytest.mark.parametrize("title", ["1 < 2 > 0", "R&D", "a -> b", "Q&A, more", "if a<1"])
    def test_other_signs_stay(self, title: str) -> None:
        assert safe_title(title) == title


class TestMerged:
    def test_many_are_counted_and_the_first_are_named(self) -> None:
        one = merged_toast([*(toast(n) for n in range(3)), *(toast(n, who="Claude Code") for n in range(3, 7))])
        assert one.title == "7 sessions healed"
        named = ["• name 0 (Kilo)", "• name 1 (Kilo)", "• name 2 (Kilo)", "• name 3 (Claude Code)"]
        assert one.body.splitlines() == [*named, "and 3 more", LAST]
        assert one.buttons == ()

    def test_the_worst_is_named_first(self) -> None:
        one = merged_toast([toast(1), toast(2), toast(3, "given up"), toast(4, "stuck"), toast(5)])
        assert one.title == "3 sessions healed, 1 given up, 1 stuck"
        assert one.body.splitlines()[:3] == [
            "• stuck: name 4 (Kilo)",
            "• given up: name 3 (Kilo)",
            "• healed: name 1 (Kilo)",
        ]

    def test_where_nobody_has_to_do_anything_no_list_of_what_to_do_is_named(self) -> None:
        ahead = [toast(n, "kept from failing") for n in range(3)]
        one = merged_toast(ahead)
        assert one.title == "3 sessions kept from failing"
        assert one.body.splitlines()[-1] == "All of them: `recoveryd history`. Go on as usual."
        assert merged_toast([*ahead, toast(4)]).body.splitlines()[-1] == LAST

    def test_a_command_is_whole_however_long_it_is(self) -> None:
        with going_by("/home/somebody/.config/recoveryd/my own.toml"):
            one = merged_toast([toast(n, name="y" * 44, who="OpenCode") for n in range(6)])
            assert one.body.endswith(command_line("scan"))
        assert len(one.body) <= BODY_LENGTH
        assert one.body.splitlines()[-2] == "and 3 more"

    def test_of_one_session_the_last_word_counts(self) -> None:
        one = merged_toast([toast(1), toast(2), toast(1, "given up")])
        assert one.title == "1 session healed, 1 given up"
        assert merged_toast([toast(1), toast(1, "given up")]) == toast(1, "given up")

    def test_a_title_can_not_add_a_line_or_push_the_others_out(self) -> None:
        names = ("x\n• All of it\u2028is fine", "y" * 5000, "z")
        one = merged_toast([toast(n, name=name, who="w" * 40) for n, name in enumerate(names)])
        who = f"({'w' * 31}…)"
        assert one.body.splitlines() == [f"• x • All of it is fine {who}", f"• {'y' * 43}… {who}", f"• z {who}", LAST]

    @given(st.lists(st.tuples(st.integers(0, 5), NEWS, ANY), min_size=1, max_size=12))
    def test_every_session_is_counted_once_and_it_fits(self, told: list[tuple[int, str, str]]) -> None:
        one = merged_toast([toast(number, news, name, who=name) for number, news, name in told])
        sessions = {number for number, _, _ in told}
        if len(sessions) > 1:
            assert sum(int(n) for n in re.findall(r"\d+", one.title)) == len(sessions)
        assert len(one.body) <= BODY_LENGTH
        assert one.news
