"""Starting the threads that the program can't do without, and waiting a while for their end."""

import threading

from cardbeat.errors import StartupError


def start(thread: threading.Thread) -> None:
    """Start it. Raises `StartupError` where the system grants no more threads."""
    try:
        thread.start()
    except RuntimeError:
        raise StartupError(
            f"the system grants no thread for {thread.name}; raise its limit (ulimit -u, a service's TasksMax=, "
            "a container's --pids-limit) or end other programs"
        ) from None


def has_ended(thread: threading.Thread, seconds: float | None) -> bool:
    """Whether the thread does not run, or has ended within these seconds; None waits for its end however long."""
    if thread.is_alive():
        thread.join(seconds)
    return not thread.is_alive()
