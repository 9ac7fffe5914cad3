"""SQLite, the default: one file in the data folder, written by one thread and read by others.

Begin with `database`, which says how a group is committed. `file` checks, locks and opens the file,
and compares its schema with the newest script. `copies` makes new files, with the rows of others:
that is how a file is brought up to date, backed up and restored.

May import the modules of `database` (not `postgresql`), `jobs`, `host`, `clock` and `errors`.
"""
