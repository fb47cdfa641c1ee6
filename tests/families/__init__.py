"""The families of providers beside Anthropic's own: the real client before a strict fake of each, and what heals.

`table` lists them, `reading` reads what the client sent, `fake` refuses what the family refuses, `play` breaks, heals
and goes on; `python -m tests.families` prints family x shape.
"""
