"""SQLite, the default: one file in the data folder, written by one thread and read by others.

Begin with `database`, which implements the protocols. `file` creates, checks and opens the file; `007.sql` is its
schema. `lock_file` lets one process write at a time, and chooses the one that sends alerts. `room` keeps space on the
disk for pings and deletions. `backup` and `restore` are behind the commands of these names.

May import the modules of `database` (not `postgresql`), `concurrency`, `host`, `clock` and `errors`.
"""
