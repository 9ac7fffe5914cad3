"""The transactional outbox: alerts as rows, stored in the transaction of the change that they report.

`alert` makes the body and the signature. `alerts` stores alerts, moves them to another webhook URL and gives up old
ones. `attempts` stores the results of posts. `pending` reads the alerts that are still to be sent.

Imports the database and the small modules of `heartbeat` (`check`, `quota`, `transitions`), and uses no network. Begin
reading with `Alerts.record` in `alerts`.
"""
