"""PostgreSQL servers that fail: a primary with a standby, and the nodes of cardbeat over both.

Every process here ends with the one that started it, however that ends.
"""

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.artifact import ROOT, clean_environment, free_port
from tests.support import wait_until

STARTED_SECONDS = 120
"""Within which any server is up, on a machine that has much else to do."""
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""In front of a command: it is killed as soon as the process that started it is gone."""
AS_NOBODY = ("--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
"""PostgreSQL does not run as root."""

SETTINGS = {
    # A process that is killed loses nothing by it: what it has written is the system's.
    "fsync": "off",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "wal_keep_size": "64MB",
    "wal_retrieve_retry_interval": "100ms",
    "unix_socket_directories": "",
}


class Postgres:
    """A server with its data in a folder of its own."""

    def __init__(self, folder: Path, programs: Path, addresses: str = "127.0.0.1") -> None:
        self.folder = folder
        self.port = free_port()
        self._programs = programs
        self._addresses = addresses
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        if os.getuid() == 0:
            shutil.chown(folder, "nobody")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def create(self) -> None:
        options = ("--no-sync", "--auth=trust", "--username=cardbeat", "--encoding=UTF8", "--locale=C.UTF-8")
        self._run("initdb", f"--pgdata={self.data}", "--wal-segsize=1", *options)

    def copy(self, primary: "Postgres") -> None:
        """Become a standby of a primary that runs."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"--dbname={primary.conninfo} application_name=standby"
        options = ("--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--wal-method=stream")
        self._run("pg_basebackup", f"--pgdata={self.data}", source, *options)

    def allow(self, addresses: str) -> None:
        """Let clients from these in, from the next start on. Those on this machine are let in anyway."""
        with (self.data / "pg_hba.conf").open("a") as allowed:
            allowed.write(f"host all all {addresses} trust\n")

    def start(self) -> None:
        values = {**SETTINGS, "listen_addresses": self._addresses, "port": str(self.port)}
        options = [part for name, value in values.items() for part in ("-c", f"{name}={value}")]
        command = self._command("postgres", "-D", str(self.data), *options)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        wait_until(self._answers, STARTED_SECONDS)

    def kill(self) -> None:
        """As a power cut would, but for what the system has in its memory."""
        if self._process is None:
            return
        segment = self._shared_memory()
        for pid in self._stopped():
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        if segment:
            subprocess.run(["ipcrm", "-m", segment], check=False, stderr=subprocess.DEVNULL)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """Its connections stay open, and nothing is answered."""
        stopped = self._stopped()
        try:
            yield
        finally:
            # It may have been killed meanwhile, and one of its processes was perhaps ending when it was stopped.
            for pid in stopped if self._process else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def promote(self) -> None:
        self.execute("SELECT pg_promote(true, 30)")
        assert self.execute("SELECT pg_is_in_recovery()") == [(False,)]

    @property
    def conninfo(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=cardbeat dbname=postgres"

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, in a session of its own."""
        with contextlib.closing(psycopg.connect(self.conninfo, autocommit=True, connect_timeout=5)) as connection:
            ran = connection.execute(sql)
            return ran.fetchall() if ran.description else []

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "log").read_text()
        with contextlib.suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False

    def _stopped(self) -> list[int]:
        """Its processes, none of which goes on. The first starts no more of them then."""
        first = self._process.pid
        os.kill(first, signal.SIGSTOP)
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGSTOP)
        return [first, *map(int, children)]

    def _shared_memory(self) -> str:
        """The number of its segment in System V's shared memory, which outlives it."""
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        return lines[6].split()[1] if len(lines) > 6 and lines[6].split() else ""

    def _command(self, program: str, *arguments: str) -> list[str]:
        as_nobody = AS_NOBODY if os.getuid() == 0 else ()
        return [*ENDS_WITH_US, *as_nobody, str(self._programs / program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        command = self._command(program, *arguments)
        ran = subprocess.run(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert ran.returncode == 0, ran.stdout.decode()


class Pair:
    """A primary and its standby."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.primary, self.standby = (Postgres(folder / name, programs) for name in ("one", "other"))
        self._ports = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        self._schemas = itertools.count(1)
        self.primary.create()
        self.primary.start()
        self.add_standby()

    def new_schema(self) -> str:
        """The name of one without any table."""
        schema = f"test_{next(self._schemas)}"
        self.primary.execute(f"CREATE SCHEMA {schema}")
        return schema

    def url(self, schema: str) -> str:
        """It names both servers, so that it leads to the one that is primary."""
        return f"postgresql://cardbeat@{self._ports}/postgres?connect_timeout=2&options=-csearch_path%3D{schema}"

    def add_standby(self, *, is_synchronous: bool = True) -> None:
        """From the data of the primary as it is now. At the end it is up to date, and each commit waits for it."""
        self.standby.kill()
        self._set_synchronous(is_synchronous=False)
        self.standby.copy(self.primary)
        self.standby.start()
        if is_synchronous:
            self._set_synchronous(is_synchronous=True)
        wait_until(lambda: self._standbys() == [("streaming", "sync" if is_synchronous else "async")])

    def fail_over(self) -> None:
        """Kill the primary. The standby takes its place, and has none itself."""
        self.primary.kill()
        self.hand_over()

    def hand_over(self) -> None:
        """Promote the standby, whatever the primary does."""
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def close(self) -> None:
        self.primary.kill()
        self.standby.kill()

    def _set_synchronous(self, *, is_synchronous: bool) -> None:
        # The copy of a primary that waits for nobody does not wait either when it is promoted.
        names = "*" if is_synchronous else ""
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
        self.primary.execute("SELECT pg_reload_conf()")

    def _standbys(self) -> list[tuple[Any, ...]]:
        return self.primary.execute("SELECT state, sync_state FROM pg_stat_replication")


class Node:
    """A server of cardbeat, with a data folder of its own. `command`, to which options are added, runs in this tree."""

    def __init__(self, folder: Path, command: Sequence[str], url: str, *options: str, host: str = "127.0.0.1") -> None:
        folder.mkdir()
        (folder / "url").write_text(url)
        self.folder = folder
        self.host, self.port = host, free_port()
        self._command = [
            *(*ENDS_WITH_US, *command, "--host", host, "--port", str(self.port), "--database", str(folder / "url")),
            *("--data", str(folder / "data"), "--allow-private-webhooks", "--register-per-minute", "1000", *options),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self) -> None:
        self.begin()
        self.wait()

    def begin(self) -> None:
        """Start it, without waiting until it serves."""
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(self._command, cwd=ROOT, stderr=log, env=clean_environment())

    def wait(self) -> None:
        wait_until(self._serves, STARTED_SECONDS)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(20) == 0

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log
        return " serves http" in self.log


def installed() -> Path | None:
    """The folder of PostgreSQL's programs, of the newest version that Debian's packages have installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return found[-1] if found else None


@contextlib.contextmanager
def folder_for_all() -> Iterator[Path]:
    """One that PostgreSQL can read, which runs as another user."""
    with tempfile.TemporaryDirectory(prefix="cardbeat-cluster-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
