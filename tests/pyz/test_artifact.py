import importlib.util
import json
import marshal
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.artifact import ROOT, clean_environment, starter
from tests.browser.api import Api
from tests.support import wait_until
from tests.systems import STOPS


@pytest.fixture
def run(python, pyz, tmp_path):
    def run_command(*argv, **options):
        return subprocess.run(
            [python, pyz, *argv],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **options,
        )

    return run_command


FAILING = """
import logging, sys
sys.path.insert(0, sys.argv[1])
from cardbeat.concurrency.later import Later
try:
    Later().result()
except RuntimeError:
    logging.exception("as the server logs it")
"""
BUSY_BUILD = """
import sys
for character in map(chr, range(256)):
    sys.intern(character)
import asyncio, json, sqlite3, cardbeat.service, build_zipapp
build_zipapp.build(build_zipapp.Path("again.pyz"))
"""


@pytest.mark.quick
def test_two_builds_have_the_same_bytes_in_any_folder_and_whatever_else_the_process_has_imported(pyz, tmp_path):
    tree = tmp_path / "-" / "a b"
    tree.mkdir(parents=True)
    for name in ("build_zipapp.py", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(ROOT / "cardbeat", tree / "cardbeat", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-c", BUSY_BUILD], cwd=tree, env=os.environ | {"PYTHONHASHSEED": "5"}, check=True)
    assert (tree / "again.pyz").read_bytes() == pyz.read_bytes()


@pytest.mark.quick
def test_bytecode_stands_beside_each_module_and_names_files_of_the_artifact_alone(pyz):
    with zipfile.ZipFile(pyz) as archive:
        names = {name for name in archive.namelist() if name.endswith(".py")}
        compiled = [name for name in archive.namelist() if name.endswith(".pyc")]
        assert {name[:-1] for name in compiled} == names - {"__main__.py", "cardbeat/__main__.py"}
        for name in compiled:
            code = archive.read(name)
            # Not compared with the source, whatever its time.
            assert code[:8] == importlib.util.MAGIC_NUMBER + b"\1\0\0\0"
            assert code[8:16] == importlib.util.source_hash(archive.read(name[:-1]))
            assert marshal.loads(code[16:]).co_filename == f"cardbeat.pyz/{name[:-1]}"
            assert str(ROOT).encode() not in code


@pytest.mark.parametrize("options", [(), ("-O",), ("-OO",), ("-I",), ("--check-hash-based-pycs", "always")])
def test_a_trace_shows_the_file_in_the_artifact_and_the_line(python, pyz, options):
    ran = subprocess.run([python, *options, "-c", FAILING, pyz], capture_output=True, text=True, check=True)
    assert re.search(r"cardbeat\.pyz/cardbeat/concurrency/later\.py\", line \d+, in result", ran.stderr), ran.stderr
    assert 'raise RuntimeError("not settled yet")' in ran.stderr


def test_nothing_is_compiled_at_a_start(python, pyz, tmp_path):
    ran = subprocess.run(
        [python, "-vv", pyz, "keys", "list"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "cardbeat/cli.pyc" in ran.stderr
    assert not re.findall(r"# trying .*cardbeat/(?!\S*__(?:main|init)__)\S*\.py$", ran.stderr, re.MULTILINE)


def other_pythons():
    """Every other version of Python from 3.11 on of this machine, each once."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [*pyenv.glob("versions/*/bin/python"), *Path("/usr/bin").glob("python3.[0-9]*")]
    found = {}
    for path in places:
        ran = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False)
        if ran.returncode == 0 and (version := tuple(map(int, ran.stdout.split()))) >= (3, 11):
            found.setdefault(version, path)
    found.pop(sys.version_info[:2], None)
    return list(found.values())


@pytest.mark.parametrize("other", other_pythons(), ids=lambda path: path.parts[-3])
def test_a_python_of_another_version_takes_the_source_and_serves(other, pyz, tmp_path):
    packages = tmp_path / "packages"
    # Pillow's compiled part is for one version of Python.
    pip = [sys.executable, "-m", "pip", "--python", other, "--disable-pip-version-check"]
    # A constraint on Pillow is for the Python that runs the tests: its old releases have no wheel for newer ones.
    environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    subprocess.run([*pip, "install", "-q", "--target", packages, "Pillow"], env=environment, check=True)
    launcher = tmp_path / "python"
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {other} "$@"\n')
    launcher.chmod(0o755)
    with starter(launcher, pyz, tmp_path) as start_one:
        server = start_one()
        key = Api(server.url)("POST", "register")["key"]
        with urllib.request.urlopen(f"{server.url}/og?title=A&key={key}") as card:
            assert card.read().startswith(b"\x89PNG")


@pytest.mark.quick
def test_the_artifact_is_small_and_holds_only_the_package(pyz):
    assert pyz.stat().st_size < 24_000_000
    names = zipfile.ZipFile(pyz).namelist()
    assert names == sorted(names)
    assert {name.split("/")[0] for name in names} == {"LICENSE", "__main__.py", "cardbeat"}
    assert not any("__pycache__" in name or "/build/" in name for name in names)


def test_the_build_says_when_it_cannot_write(tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "build_zipapp.py", "--output", tmp_path / "none" / "a.pyz"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1


@STOPS
@pytest.mark.quick
def test_it_serves_pages_cards_and_checks_until_a_stop_signal_ends_it_with_0(start):
    server = start()
    api = Api(server.url)
    with urllib.request.urlopen(f"{server.url}/") as page:
        assert b"</html>" in page.read()
    with urllib.request.urlopen(f"{server.url}/og?title=A%20card&key={api('POST', 'register')['key']}") as card:
        assert card.read().startswith(b"\x89PNG")
    key = api.checks_key()
    check = api.check(key)
    api("POST", f"ping/{check['id']}")
    assert api("GET", f"checks/{check['id']}", key=key)["check"]["ping_count"] == 1
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0


def test_the_other_stop_signal_ends_it_with_0_too(start):
    server = start()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(15) == 0


def test_what_is_stored_is_for_the_owner_alone(start, tmp_path):
    start()
    stored = list((tmp_path / "cardbeat-data").rglob("*"))
    assert stored
    assert all(path.stat().st_mode & 0o077 == 0 for path in stored)


def spoil(folder, content):
    (folder / "data").mkdir()
    (folder / "data" / "cardbeat.db").write_bytes(content)
    return "--data", "data"


def newer(folder):
    spoil(folder, b"")
    with sqlite3.connect(folder / "data" / "cardbeat.db") as connection:
        connection.execute(f"PRAGMA application_id = {0x43424541}")
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    return "--data", "data"


def port_in_use(folder):
    blocker = socket.create_server(("127.0.0.1", 0))
    return blocker, ("--port", str(blocker.getsockname()[1]))


def no_lock(folder, name):
    (folder / "data" / name).mkdir(parents=True)
    return "--port", "0", "--data", "data"


def unwritable(folder):
    (folder / "data").write_text("a file, not a folder")
    return "--data", "data"


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda folder: spoil(folder, b"no database " * 500), "damaged"),
        (lambda folder: spoil(folder, b""), "damaged"),
        (newer, "newer"),
        (unwritable, "data"),
        (lambda folder: no_lock(folder, "writer.lock"), "writer.lock"),
        (lambda folder: no_lock(folder, "delivery.lock"), "delivery.lock"),
        (lambda folder: ("--port", "70000"), "--port"),
        (lambda folder: ("--sweep-seconds", "0"), "--sweep-seconds"),
        (lambda folder: ("--tiers", "none.toml"), "none.toml"),
        (lambda folder: ("--host", "192.0.2.1"), "192.0.2.1"),
        (lambda folder: ("keys", "revoke", "key_none"), "no database"),
        (lambda folder: ("keys", "revoke"), "takes ID"),
        (lambda folder: ("keys", "create", "--data", "data", "--email", "nobody"), "@"),
        (lambda folder: ("keys", "create", "--tier", "gold"), "gold"),
        (lambda folder: ("backup", "copy.db"), "no database"),
        (lambda folder: ("card", "--title", " ", "--output", "a.png"), "title"),
        (lambda folder: ("card", "--title", "a", "--theme", "pink", "--output", "a.png"), "dark"),
        (lambda folder: ("nonsense",), "nonsense"),
    ],
)
def test_what_an_operator_must_change_is_one_line_and_status_2(run, tmp_path, prepare, words):
    ran = run(*prepare(tmp_path))
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert words in ran.stderr


def test_a_port_in_use_is_one_line_and_status_2(run, tmp_path):
    blocker, options = port_in_use(tmp_path)
    with blocker:
        ran = run(*options)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "in use" in ran.stderr


def test_without_pillow_it_says_how_to_get_it(pyz, python, tmp_path):
    ran = subprocess.run([python, "-S", pyz], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "Pillow" in ran.stderr


def test_keys_changed_on_the_command_line_count_at_once_while_serving(start, run):
    server = start("--data", "data")
    value = json.loads(run("keys", "create", "--email", "a@b", "--json", "--data", "data").stdout)["key"]

    def status():
        request = urllib.request.Request(f"{server.url}/key", headers={"Authorization": f"Bearer {value}"})
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)["tier"]
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, None

    assert status() == (200, "free")
    (key,) = json.loads(run("keys", "list", "--json", "--data", "data").stdout)
    key_id = key["id"]
    assert run("keys", "tier", key_id, "unlimited", "--data", "data").returncode == 0
    assert status() == (200, "unlimited")
    assert run("keys", "revoke", key_id, "--data", "data").returncode == 0
    assert status() == (401, None)


def test_doctor_reports_and_fails_only_on_problems(run, tmp_path):
    healthy = run("doctor", "--data", "data")
    assert healthy.returncode == 0, healthy.stdout
    for thing in ("python", "pillow", "raqm", "fonts", "database", "GB free", "clock"):
        assert thing in healthy.stdout
    spoil(tmp_path, b"no database " * 500)
    ill = run("doctor", "--data", "data")
    assert ill.returncode == 1
    assert "problem" in ill.stdout


@pytest.mark.quick
def test_version(run):
    from cardbeat import __version__

    assert run("--version").stdout == f"cardbeat {__version__}\n"


def test_healthz_turns_503_while_the_database_cannot_be_written(start, tmp_path):
    server = start("--data", "data")
    with urllib.request.urlopen(f"{server.url}/healthz") as answer:
        assert answer.status == 200
    with sqlite3.connect(tmp_path / "data" / "cardbeat.db", isolation_level=None) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{server.url}/healthz", timeout=30)
        assert refused.value.code == 503
        assert refused.value.headers["Retry-After"]
        refused.value.close()
        holder.execute("ROLLBACK")
    holder.close()
    with urllib.request.urlopen(f"{server.url}/healthz") as answer:
        assert answer.status == 200


def test_healthz_turns_503_when_the_database_is_removed_under_the_server(start, tmp_path):
    server = start("--data", "data")
    for path in (tmp_path / "data").glob("cardbeat.db*"):
        path.unlink()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.url}/healthz", timeout=30)
    assert refused.value.code == 503
    refused.value.close()
    wait_until(lambda: "data/cardbeat.db was removed" in server.log.read_text())


def test_two_servers_do_not_share_a_port_but_may_share_a_folder(start):
    first, second = start("--data", "data"), start("--data", "data")
    for server in (first, second):
        with urllib.request.urlopen(f"{server.url}/healthz") as answer:
            assert answer.status == 200
    wait_until(lambda: first.process.poll() is None)
