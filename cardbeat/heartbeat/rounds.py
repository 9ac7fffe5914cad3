"""When some work was last done, by whichever process has the database open."""

from contextlib import suppress

from cardbeat import monitor
from cardbeat.clock import Clock
from cardbeat.database import Database, Transaction


class Rounds:
    """Counted in the table `monitor` under `name` by who works, and timed by `elapsed`, a clock that only goes forward.

    The others look whether the number has changed, each by its own clock: wall clocks may differ or be set, and none is
    trusted with this. One thread calls what changes it, and any may ask for the age.
    """

    def __init__(self, database: Database, name: str, elapsed: Clock) -> None:
        self._database = database
        self._name = name
        self._elapsed = elapsed
        # A single value, whole at any time.
        self._ended_at = elapsed()
        self._seen: int | None = None

    def end(self) -> None:
        """A round has ended here just now; also to be called when the first one is to begin."""
        self._ended_at = self._elapsed()

    def count(self, transaction: Transaction) -> None:
        """Tell the others of a round."""
        monitor.increment(transaction, self._name)

    def look(self) -> None:
        """See whether another process has counted one since the last look."""
        # The database logs what keeps it from being read, such as a table that is gone while a backup is restored.
        with suppress(Exception), self._database.read() as connection:
            counted = monitor.values(connection).get(self._name, 0)
            if counted != self._seen:
                self._seen = counted
                self.end()

    def age_seconds(self) -> float:
        return max(0.0, self._elapsed() - self._ended_at)
