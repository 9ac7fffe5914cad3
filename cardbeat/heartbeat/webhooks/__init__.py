"""One post to a webhook: where it may go, in which form, and how long it may take.

`target` parses a URL and knows the forbidden addresses (SSRF). `receivers` turns the alert's body into the form of
Slack, Discord and others. `resolver` looks up names, `post` connects and sends. `permit` says what one attempt may do.

Imports `outbox.alert` (names, JSON, the outcome of a post) and `concurrency`, and no database. Only `resolver` and
`post` use the network. Begin reading with `Sender.post` in `post`.
"""
