"""PostgreSQL servers that fail: a primary with a standby, and the nodes of cardbeat over both.

Every process here ends with the one that started it, however that ends.
"""

import contextlib
import itertools
import signal
import subprocess
import tempfile
from pathlib import Path

from tests.kit.artifact import ROOT, Running, clean_environment
from tests.kit.postgresql import ENDS_WITH_US, STARTED_SECONDS, Postgres
from tests.kit.support import free_port, wait_until


class Pair:
    """A primary and its standby."""

    def __init__(self, folder, programs):
        self.primary, self.standby = (
            Postgres(folder / name, programs) for name in ("one", "other")
        )
        self._ports = (
            f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        )
        self._schemas = itertools.count(1)
        self.primary.create()
        self.primary.start()
        self.add_standby()

    def new_schema(self):
        """The name of one without any table."""
        schema = f"test_{next(self._schemas)}"
        self.primary.execute(f"CREATE SCHEMA {schema}")
        return schema

    def url(self, schema):
        """It names both servers, so that it leads to the one that is primary."""
        return f"postgresql://cardbeat@{self._ports}/postgres?connect_timeout=2&options=-csearch_path%3D{schema}"

    def add_standby(self, *, is_synchronous=True):
        """From the data of the primary as it is now. At the end it is up to date, and each commit waits for it."""
        self.standby.kill()
        self._set_synchronous(is_synchronous=False)
        self.standby.copy(self.primary)
        self.standby.start()
        if is_synchronous:
            self._set_synchronous(is_synchronous=True)
        wait_until(
            lambda: (
                self._standbys()
                == [("streaming", "sync" if is_synchronous else "async")]
            )
        )

    def fail_over(self):
        """Kill the primary. The standby takes its place, and has none itself."""
        self.primary.kill()
        self.hand_over()

    def hand_over(self):
        """Promote the standby, whatever the primary does."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def close(self):
        self.primary.kill()
        self.standby.kill()

    def _set_synchronous(self, *, is_synchronous):
        # The copy of a primary that waits for nobody does not wait either when it is promoted.
        names = "*" if is_synchronous else ""
        self.primary.execute(
            f"ALTER SYSTEM SET synchronous_standby_names = '{names}'"
        )
        self.primary.execute("SELECT pg_reload_conf()")

    def _standbys(self):
        return self.primary.execute(
            "SELECT state, sync_state FROM pg_stat_replication"
        )


class Node(Running):
    """A server of cardbeat, with a data folder of its own. `command`, to which options are added, runs in this tree."""

    def __init__(
        self,
        folder,
        command,
        url,
        *options,
        host="127.0.0.1",
    ):
        folder.mkdir()
        super().__init__(None, free_port(), folder / "log")
        self.host = host
        self.folder = folder
        self._environment = clean_environment(CARDBEAT_DATABASE=url)
        self._command = [
            *(
                *ENDS_WITH_US,
                *command,
                "--host",
                host,
                "--port",
                str(self.port),
            ),
            *(
                "--data",
                folder / "data",
                "--allow-private-webhooks",
                "--register-per-minute",
                "1000",
                *options,
            ),
        ]

    def start(self):
        self.begin()
        wait_until(self.serves, STARTED_SECONDS)

    def begin(self):
        """Start it, without waiting until it serves."""
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, stderr=log, env=self._environment
            )

    def kill(self):
        if self.process:
            super().kill()

    @contextlib.contextmanager
    def suspended(self):
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def folder_for_all():
    """One that PostgreSQL can read, which runs as another user."""
    with tempfile.TemporaryDirectory(
        prefix="cardbeat-cluster-"
    ) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
