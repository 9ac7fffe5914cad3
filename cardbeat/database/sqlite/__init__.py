"""SQLite, the default: one file in the data folder, written by one thread and read by others.

Begin with `database`, which says how a group is committed. `file` creates, checks, locks and opens
the file, and compares its schema with `010.sql`. `rows` copies the rows of a file into a new one:
that is how it is brought up to date, and how `restore` reads a backup.

May import the modules of `database` (not `postgresql`), `jobs`, `host`, `clock` and `errors`.
"""
