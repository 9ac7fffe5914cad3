"""Delivery: which alert is posted next, by which thread, and when it is tried again.

`delivery` is the thread that holds the lease and works in rounds; `dispatcher` is one round: record results, read what
is new, send out what is due. `schedule` knows when each check's next alert is due, `lanes` and `places` which due one
may be posted now, `allowance` how many posts a key may cause and an address may get. `couriers` are the threads that
post, `courier` makes one attempt, `retries` judges its outcome.

Imports `outbox` and `webhooks`; only `checks` and the layers above import from here. Begin reading with
`courier`, then `dispatcher`.
"""
