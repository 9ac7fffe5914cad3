"""Cards of a whole site, drawn at build time without a server: the work of the command `cards`.

Begin with `source`, which reads what is to be drawn, from a folder of built HTML (`page`) or from JSON lines, and gives
each card a file name (`names`). `workers` draws the cards on all cores, and `folder` keeps them with a manifest, by
which the next run skips those that would be drawn the same.

May import `cards`, `host` and what these import, never `heartbeat`.
"""
