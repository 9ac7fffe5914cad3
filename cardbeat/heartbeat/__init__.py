"""Checks: pings, the sweep that finds late checks, and alerts.

A ping: `routes` > `pings` > the database's writer, which takes many pings at once and commits them.
A late check: `sweep` finds it, after it has moved the deadlines if the monitor was away. Both turn
a check with `transitions`, in one transaction: its status, the row of its outage, its alert.
`outages` reads these rows, and `tidy` removes what nothing needs any more.

`alerts` decides which alert is next and posts it: in a thread `delivery` > `outbox`, and in a
sender's `post` > `retries`. Begin with `check`, then `checks`.
"""
