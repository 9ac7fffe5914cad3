"""PostgreSQL servers, and the fixtures of tests that both engines must pass."""

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from cardbeat.database import open_database
from cardbeat.database.sqlite.file import FILE_NAME
from tests.kit.proxy import Proxy
from tests.kit.support import free_port, wait_until
from tests.kit.systems import IS_ROOT

BOTH_ENGINES = pytest.mark.engines("sqlite", "postgresql")
"""For a module or a test that uses a `database`. The mark of a test goes before."""
SQLITE = pytest.mark.engines("sqlite")
POSTGRESQL = pytest.mark.engines("postgresql")

STARTED_SECONDS = 120
"""Within which any server is up, on a machine that has much else to do."""
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL")
"""In front of a command: it is killed as soon as the process that started it is gone."""
AS_NOBODY = (
    ("--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    if IS_ROOT
    else ()
)
"""PostgreSQL does not run as root."""
SETTINGS = {
    # A process that is killed loses nothing by it: what it has written is the system's.
    "fsync": "off",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "wal_keep_size": "64MB",
    "wal_retrieve_retry_interval": "100ms",
    "unix_socket_directories": "",
}

NEW_DATA = "--wal-segsize=1 --no-sync --auth=trust --username=cardbeat --encoding=UTF8 --locale=C.UTF-8"
COPIED_DATA = "--write-recovery-conf --checkpoint=fast --no-sync --wal-method=stream"

# Not by DELETE: without a vacuum the rows of all earlier tests would stay in the files.
EMPTY = """
    SET search_path TO emptied;
    TRUNCATE keys, monitor, leases RESTART IDENTITY CASCADE
"""


class Postgres:
    """A server with its data in a folder of its own, which ends with the process that started it."""

    def __init__(
        self, folder, programs, addresses="127.0.0.1", **settings
    ):
        self.folder = folder
        self.port = free_port()
        self._programs = programs
        self._settings = (
            SETTINGS | {"listen_addresses": addresses} | settings
        )
        self._process = None
        folder.mkdir(exist_ok=True)
        if IS_ROOT:
            shutil.chown(folder, "nobody")

    @property
    def data(self):
        return self.folder / "data"

    def create(self):
        self._run("initdb", f"--pgdata={self.data}", *NEW_DATA.split())

    def copy(self, primary):
        """Become a standby of a primary that runs."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"--dbname={primary.conninfo} application_name=standby"
        copied = (f"--pgdata={self.data}", source, *COPIED_DATA.split())
        self._run("pg_basebackup", *copied)

    def allow(self, addresses):
        """Let clients from these in, from the next start on. Those on this machine are let in anyway."""
        with (self.data / "pg_hba.conf").open("a") as allowed:
            allowed.write(f"host all all {addresses} trust\n")

    def start(self):
        self._begin()
        wait_until(self._answers, STARTED_SECONDS)

    def _begin(self):
        values = self._settings | {"port": str(self.port)}
        options = [f"--{name}={value}" for name, value in values.items()]
        command = self._command(
            "postgres", "-D", str(self.data), *options
        )
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log
            )

    def kill(self):
        """As a power cut would, but for what the system has in its memory."""
        if self._process is None:
            return
        segment = self._shared_memory()
        for pid in self._stopped():
            os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        if segment:
            subprocess.run(
                ["ipcrm", "-m", segment],
                check=False,
                stderr=subprocess.DEVNULL,
            )

    @contextlib.contextmanager
    def suspended(self):
        """Its connections stay open, and nothing is answered."""
        stopped = self._stopped()
        try:
            yield
        finally:
            # It may have been killed, and one of its processes may have been ending.
            for pid in stopped if self._process else ():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def promote(self):
        self.execute("SELECT pg_promote(true, 30)")
        assert self.execute("SELECT pg_is_in_recovery()") == [(False,)]

    @property
    def conninfo(self):
        return f"host=127.0.0.1 port={self.port} user=cardbeat dbname=postgres"

    def execute(self, sql):
        """The rows of a statement, in a session of its own."""
        connected = psycopg.connect(
            self.conninfo, autocommit=True, connect_timeout=60
        )
        with contextlib.closing(connected) as connection:
            ran = connection.execute(sql)
            return ran.fetchall() if ran.description else []

    def _answers(self):
        if self._process.poll() is not None:
            log = (self.folder / "log").read_text()
            # A process of the server that was killed may not have ended yet.
            assert "is still in use" in log[-500:], log
            self._begin()
            return False
        with contextlib.suppress(psycopg.OperationalError):
            return bool(self.execute("SELECT 1"))
        return False

    def _stopped(self):
        """Its processes, none of which goes on. The first starts no more of them then."""
        first = self._process.pid
        os.kill(first, signal.SIGSTOP)
        children = (
            Path(f"/proc/{first}/task/{first}/children")
            .read_text()
            .split()
        )
        for child in children:
            os.kill(int(child), signal.SIGSTOP)
        return [first, *map(int, children)]

    def _shared_memory(self):
        """The number of its segment in System V's shared memory, which outlives it."""
        lines = (self.data / "postmaster.pid").read_text().splitlines()
        numbers = " ".join(lines[6:7]).split()
        return numbers[1] if numbers else ""

    def _command(self, program, *arguments):
        return [
            *ENDS_WITH_US,
            *AS_NOBODY,
            str(self._programs / program),
            *arguments,
        ]

    def _run(self, program, *arguments):
        command = self._command(program, *arguments)
        done = subprocess.run(
            command, cwd=self.folder, stdout=-1, stderr=-2, check=False
        )
        assert done.returncode == 0, done.stdout.decode()


class Cluster(Postgres):
    """The one of most tests, each of which has a schema."""

    def __init__(self, folder, programs):
        # An autovacuum may count the rows of a table just when a test has emptied it, and then
        # each plan is for one row.
        settings = {"deadlock_timeout": "50ms", "autovacuum": "off"}
        super().__init__(
            folder,
            programs,
            unix_socket_directories=str(folder),
            **settings,
        )
        self._schemas = itertools.count(1)
        self._used = ""

    def stop(self):
        self.kill()

    def url(self, **options):
        url = f"postgresql://cardbeat@:{self.port}/postgres?host={self.folder}"
        for name, value in options.items():
            url += f"&{name}={value}"
        return url

    def new_schema(self, name=None):
        """The URL of a database without any table, as far as who uses it can tell."""
        name = name or f"test_{next(self._schemas)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(options=f"-csearch_path%3D{name}")

    def behind(self, proxy: Proxy, url: str) -> str:
        """A URL that leads to the same database through a proxy."""
        there = url.replace(f"@:{self.port}", f"@127.0.0.1:{proxy.port}")
        return re.sub("host=[^&]*&", "", there)

    def emptied(self, folder):
        """The URL of a database of the newest schema, without rows. To make one for each test would take long."""
        if not self._used:
            self._used = self.new_schema("emptied")
            open_database(folder, self._used).close()
        else:
            self.execute(EMPTY)
        return self._used


def installed():
    """The folder of PostgreSQL's programs, of the newest version that Debian has installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin")
    return max(
        found, key=lambda path: int(path.parent.name), default=None
    )


@pytest.fixture(scope="session")
def postgresql():
    """A server that runs, for all tests together."""
    programs = installed()
    if programs is None:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    with tempfile.TemporaryDirectory(
        prefix="cardbeat-postgresql-"
    ) as folder:
        cluster = Cluster(Path(folder), programs)
        cluster.create()
        cluster.start()
        yield cluster
        cluster.kill()


def pytest_generate_tests(metafunc):
    mark = metafunc.definition.get_closest_marker("engines")
    if mark and "engine" in metafunc.fixturenames:
        on_each = []
        for name in mark.args:
            marks = getattr(pytest.mark, name)
            on_each.append(pytest.param(name, marks=marks))
        metafunc.parametrize("engine", on_each, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if "postgresql" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgresql)


@pytest.fixture
def engine(request):
    return getattr(request, "param", "sqlite")


@pytest.fixture
def database_url(engine, request, tmp_path):
    """None for a file."""
    if engine == "postgresql":
        return request.getfixturevalue("postgresql").emptied(tmp_path)
    return None


@pytest.fixture(scope="session")
def new_file(tmp_path_factory):
    """An SQLite database of the newest schema, without rows. To make one for each test would take long."""
    folder = tmp_path_factory.mktemp("sqlite")
    open_database(folder).close()
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def put_new_file(engine, new_file):
    """Puts that database into a folder, as a server leaves it; does nothing for a test on PostgreSQL."""

    def put(folder):
        if engine == "sqlite":
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / FILE_NAME).touch(0o600, exist_ok=False)
            (folder / FILE_NAME).write_bytes(new_file)

    return put


@pytest.fixture
def open_again(tmp_path, database_url, put_new_file):
    """Opens the same database once more, as a second process or a second host does."""
    put_new_file(tmp_path)
    with contextlib.ExitStack() as opened:

        def open_():
            database = open_database(tmp_path, database_url)
            opened.callback(database.close)
            return database

        yield open_


@pytest.fixture
def database(open_again):
    return open_again()
