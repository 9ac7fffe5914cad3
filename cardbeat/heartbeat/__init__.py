"""Checks: pings, the sweep that finds late checks, and alerts. Imports `keys`, `web`, `database` and what they import.

A ping: `routes` > `checks` > the database's writer, which takes many pings at once (`pings`) and commits them. If the
check was overdue, its recovery alert is stored in the same commit. While the disk is full the writer can't commit, and
the ping is refused with 503 (`database/sqlite/database.py`). `host/disk.py` keeps what is new or longer from using the
last space, `database/sqlite/room.py` other programs. A late check: `sweep` marks it with its alert, after `credit`.

`outbox` stores alerts, `webhooks` posts one, `delivery` decides which is next; `delivery/retries.py` has the schedule
of retries. To add a receiver: `webhooks/receivers.py`, `cardbeat/pages/editor/receivers.js`, the table in
`docs/alerts.md` and the tests, see "Add a receiver" in `.github/CONTRIBUTING.md`. Begin with `check`, then `checks`.
"""
