"""PostgreSQL, for several nodes: psycopg is imported only if an operator gives a URL.

Begin with `database`, which commits and connects again. `connection` is psycopg's, for our SQL.
`lease` chooses the node that sweeps and sends alerts. `schema` runs the scripts, and finds weak
settings for `doctor`; `restore` brings a SQLite backup in.

May import the modules of `database`, `database.sqlite`, `jobs`, `host`, `clock` and `errors`.
"""
