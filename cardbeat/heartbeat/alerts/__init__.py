"""Alerts: the rows of the outbox, and the threads that post them.

An alert is stored in the transaction of the change that it reports (`heartbeat/transitions.py`),
and posted after its commit. Nothing about alerts lives in memory but the posts that run, and what
limits them. Killed between a post and the storing of its result, it posts the alert again.

Begin with `outbox`, which reads what is due and stores what came of posts. Then `delivery`: one
thread picks what is due, others post it. `message` writes the body, in the form of Slack and
others, and the signature. `post` makes one request, to the addresses that `target` allows.
`retries` has the schedule, `limits` the limits.
"""
