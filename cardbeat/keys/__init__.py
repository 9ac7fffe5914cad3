"""API keys: issued, found, limited and revoked, and the endpoints `/register` and `/key`.

`store` holds the keys in the database, with a cache in memory. `bearer` guards the routes that need a checks key. `key`
has the types and the refusals, `tiers` the limits of a key, `rate` the limits per minute, `webhook_secrets` the secrets
that sign alerts.

It imports the database, the web server's messages and routes, and small modules of the root; it knows neither cards nor
checks. Begin reading with `key`, then `Keys` in `store`.
"""
