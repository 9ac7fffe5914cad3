"""PostgreSQL, for several nodes: imported only if an operator gives a URL, since it needs psycopg.

Begin with `database`, which implements the protocols. `server` connects and reconnects the writer, `connection` makes
connections, `row_lease` chooses the node that sweeps and sends alerts, and `sampled_clock` gives the server's time.
`schema` creates the tables of `007.sql`; `examination` finds weak settings for `doctor`; `restore` brings a SQLite
backup in.

May import the modules of `database`, `database.sqlite`, `concurrency`, `host`, `clock`, `passwords` and `errors`.
"""
