"""API keys: issued, found, limited and revoked, and the endpoints `/register` and `/key`.

`store` holds the keys in the database, caches them for a second, and guards the routes that need
a checks key. `key` has the types, `tiers` the limits of a key, `rate` the limits per minute,
`routes` the endpoints.

It imports the database, the web server's messages and routes, and small modules of the root; it
knows neither cards nor checks. Begin reading with `key`, then `Keys` in `store`.
"""
