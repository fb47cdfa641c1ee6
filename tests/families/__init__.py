"""The families of providers beside Anthropic's own: the real client before a strict fake of each, and what heals.

`table` lists them, `reading` reads what the client sent, `fake` refuses what the family refuses, `play` breaks, heals
and goes on; `python -m tests.families` prints family x shape. `cut` breaks answers off in the stream, `cut_play` plays
them (`python -m tests.families.cut_play`); how each family streams a step at a time is in `cut_streams` and `cut_chat`.
"""
