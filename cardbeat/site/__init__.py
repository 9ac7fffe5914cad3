"""Cards of a whole site, drawn at build time without a server: the work of the command `cards`.

Begin with `source`, which reads what is to be drawn, from a folder of built HTML or from JSON
lines, and gives each card a file name (`names`). `page` is what one page says of itself, found by
its `tags` and read in its `charset`; `head` is what is written into it. `workers` draws the cards
on all cores, and `folder` keeps them: the seal of each PNG says what drew it, so that the next run
skips those that would be drawn the same.

May import `cards`, `host`, `vendor` and what these import, never `heartbeat`.
"""
