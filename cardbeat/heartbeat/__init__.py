"""Checks: pings, the sweep that finds late checks, and alerts.

A ping: `routes` > `pings` > the database's writer, which takes many pings at once and commits them.
If the check was overdue, its recovery alert is stored in the same commit, and its row in `outages`
ends. A late check: `sweep` marks it together with its alert, after it has moved the deadlines if
the monitor was away. `tidy` removes what nothing needs any more.

`alerts` stores alerts, decides which is next and posts it. Begin with `check`, then `checks`.
"""
