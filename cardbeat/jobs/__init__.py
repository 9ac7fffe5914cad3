"""Work for other threads: a fair queue, threads that do jobs, a future, a thread that repeats.

Begin with `fair_queue`. `workers` does the jobs of such a queue in a few threads, which may block.
`future` is a result that another thread will set. `background` calls a function again and again.

May import `clock`, `errors` and other modules of this folder.
"""
