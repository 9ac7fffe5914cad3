"""Cards: the PNG of 1200 x 630 pixels that `GET /og` answers with, and the files in which drawn cards are stored.

Begin with `routes`: a request is answered from the index or a file (`store`, `folder`, `eviction`, `seal`), or the card
waits in `drawing_queue` to be drawn. `request` turns the URL into a card, and `drawing` turns the card into a PNG, for
the server in a process of its own (`drawing_process`).

May import `keys`, `web`, `typeset` and what these import, never `heartbeat`.
"""
