"""Threads and queues, without knowledge of HTTP, cards or checks.

`later` has `Later`, a result that another thread will set, and `Workers`, a few threads that take jobs from a
`fair_queue` round robin by key or client. `fair_lock` is held by one of each name's threads in turn. `threads` starts a
thread, and has the loop of background threads. `watchdog` ends the process if a stop takes too long.

May import `clock`, `errors`, `host` and other modules of this folder. Begin with `later`.
"""
