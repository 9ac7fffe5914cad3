"""Cards: the PNG of 1200 x 630 pixels that `GET /og` answers with, and the files that store them.

Begin with `routes`: a request is answered from memory or a file (`store`, `seal`), or its card
waits to be drawn. `request` turns the URL into a card, `drawing` turns the card into a PNG, in a
process of its own (`painter`).

May import `keys`, `web`, `typeset` and what these import, never `heartbeat`.
"""
