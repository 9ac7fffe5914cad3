"""A PostgreSQL server for the tests, from Debian's package, and the fixtures of tests that both engines must pass."""

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cardbeat.database import Database, open_database
from cardbeat.database.sqlite.file import FILE_NAME
from tests.systems import IS_ROOT

BOTH_ENGINES = pytest.mark.engines("sqlite", "postgresql")
"""For a module, or a test, that uses a `database`: it runs on each of them. The mark of a test goes before."""
SQLITE = pytest.mark.engines("sqlite")
POSTGRESQL = pytest.mark.engines("postgresql")

AS_NOBODY: dict[str, Any] = {"user": "nobody", "group": "nogroup", "extra_groups": []} if IS_ROOT else {}
# No autovacuum: it may count the rows of a table just when a test has emptied it, and then each plan is for one row.
SETTINGS = ("fsync=off", "listen_addresses=127.0.0.1", "max_connections=200", "deadlock_timeout=50ms", "autovacuum=off")

# Not by DELETE: without a vacuum the rows of all earlier tests would stay in the files, and be read by each scan.
EMPTY = """
    SET search_path TO emptied;
    TRUNCATE keys, monitor, leases RESTART IDENTITY CASCADE;
    UPDATE totals_by_status SET checks = 0
"""

REMOVE = 'read -r _; "$1/pg_ctl" --pgdata="$2/data" --mode=immediate stop; rm -rf "$2"'


class Cluster:
    """A server with its data in a folder of its own. PostgreSQL does not run as root, so then it runs as nobody."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self.port = free_port()
        self._schemas = itertools.count(1)
        self._used = ""
        if IS_ROOT:
            shutil.chown(folder, "nobody")
        self._run("initdb", "--no-sync", "--auth=trust", "--username=cardbeat", "--encoding=UTF8", "--locale=C.UTF-8")

    def start(self) -> None:
        options = " ".join(f"-c {setting}" for setting in (*SETTINGS, f"port={self.port}"))
        options += f" -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "--wait", f"--log={self.folder}/log", f"--options={options}", "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "--wait", f"--mode={mode}", "stop")

    def url(self, **options: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in {"host": str(self.folder), **options}.items())
        return f"postgresql://cardbeat@:{self.port}/postgres?{query}"

    def new_schema(self, name: str | None = None) -> str:
        """The URL of a database without any table, as far as who uses it can tell."""
        name = name or f"test_{next(self._schemas)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(options=f"-csearch_path%3D{name}")

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, in a session of its own."""
        import psycopg

        with contextlib.closing(psycopg.connect(self.url(), autocommit=True)) as connection:
            ran = connection.execute(sql)
            return ran.fetchall() if ran.description else []

    def emptied(self, folder: Path) -> str:
        """The URL of a database of the newest schema, without rows. To make one for each test would take long."""
        if not self._used:
            self._used = self.new_schema("emptied")
            open_database(folder, self._used).close()
        else:
            self.execute(EMPTY)
        return self._used

    @contextlib.contextmanager
    def removed_afterwards(self) -> Iterator[None]:
        """Stop the server and remove its folder behind this block, also where these tests are killed in it."""
        # In a session of its own, so that Ctrl-C does not end it.
        command = ["sh", "-c", REMOVE, "sh", self._programs, self.folder]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet, **AS_NOBODY):
            yield

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, f"--pgdata={self.folder}/data", *arguments]
        # Its output is not read to the end: the server would inherit a pipe.
        with (self.folder / "output").open("w+") as output:
            ran = subprocess.run(command, cwd=self.folder, stdout=output, stderr=output, check=False, **AS_NOBODY)
            output.seek(0)
            assert ran.returncode == 0, output.read()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """A server that runs, for all tests together."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if not found:
        assert not os.environ.get("CI"), "PostgreSQL is not installed"
        pytest.skip("PostgreSQL is not installed")
    cluster = Cluster(Path(tempfile.mkdtemp(prefix="cardbeat-postgresql-")), found[-1])
    with cluster.removed_afterwards():
        cluster.start()
        yield cluster


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "engines(*names): of the database that the test runs on, by default sqlite")
    config.addinivalue_line("markers", "sqlite: a test that can run on several engines, on SQLite")
    config.addinivalue_line("markers", "postgresql: a test that needs PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("engines")
    if mark and "engine" in metafunc.fixturenames:
        on_each = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in mark.args]
        metafunc.parametrize("engine", on_each, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "postgresql" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.postgresql)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def database_url(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """None for a file."""
    return None if engine == "sqlite" else request.getfixturevalue("postgresql").emptied(tmp_path)


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An SQLite database of the newest schema, without rows. To make one for each test would take long."""
    folder = tmp_path_factory.mktemp("sqlite")
    open_database(folder).close()
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def put_new_file(engine: str, new_file: bytes) -> Callable[[Path], None]:
    """Puts that database into a folder, as a server leaves it; does nothing for a test on PostgreSQL."""

    def put(folder: Path) -> None:
        if engine == "sqlite":
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / FILE_NAME).touch(0o600, exist_ok=False)
            (folder / FILE_NAME).write_bytes(new_file)

    return put


@pytest.fixture
def open_again(
    tmp_path: Path, database_url: str | None, put_new_file: Callable[[Path], None]
) -> Iterator[Callable[[], Database]]:
    """Opens the same database once more, as a second process or a second host does."""
    put_new_file(tmp_path)
    with contextlib.ExitStack() as opened:

        def open_() -> Database:
            database = open_database(tmp_path, database_url)
            opened.callback(database.close)
            return database

        yield open_


@pytest.fixture
def database(open_again: Callable[[], Database]) -> Database:
    return open_again()
