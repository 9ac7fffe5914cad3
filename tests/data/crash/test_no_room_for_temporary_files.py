"""A container with a read-only root: only the data folder can be written, none of the folders for temporary files."""

import shlex
import subprocess

import pytest

from tests.kit.artifact import ran, starter
from tests.kit.client import ask, checks_key, new_check
from tests.kit.receiver import Receiver
from tests.kit.support import wait_until

READ_ONLY = """#!/bin/sh
exec unshare -rm sh -ec '
    mount --bind {data} {data}
    for folder in /tmp /var/tmp /dev/shm {folder}; do
        # Nothing that is mounted in it is concerned.
        mount --rbind $folder $folder
        mount -o remount,bind,ro $folder
    done
    cd {folder}
    exec "$@"' sh {python} "$@"
"""


@pytest.fixture
def read_only_python(python, tmp_path):
    """An interpreter for which nothing but `data` can be written."""
    data = tmp_path / "data"
    data.mkdir(0o700)
    wrapper = tmp_path / "python"
    names = {"data": data, "folder": tmp_path, "python": python}
    wrapper.write_text(
        READ_ONLY.format(
            **{
                name: shlex.quote(str(path))
                for name, path in names.items()
            }
        )
    )
    wrapper.chmod(0o755)
    look = "import os, tempfile; os.open('data', os.O_RDONLY); tempfile.gettempdir()"
    tried = subprocess.run(
        [wrapper, "-c", look], capture_output=True, text=True, check=False
    )
    if "No usable temporary directory" not in tried.stderr:
        pytest.skip(
            f"no folder can be made read-only here: {tried.stderr.strip()}"
        )
    return wrapper


def test_a_check_turns_overdue_is_told_and_recovers(
    read_only_python, pyz, tmp_path
):
    def run(*argv):
        ended = ran(
            read_only_python, pyz, *argv, "--data", "data", cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    with (
        Receiver() as receiver,
        starter(read_only_python, pyz, tmp_path) as start,
    ):
        server = start(
            "--data",
            "data",
            "--sweep-seconds",
            "1",
            "--allow-private-webhooks",
        )
        check = new_check(
            server,
            checks_key(server),
            webhook_url=receiver.url,
            period_seconds=1,
        )
        wait_until(lambda: receiver.received)
        assert ask(server, "GET", f"/ping/{check['id']}").json[
            "recovered"
        ]
        wait_until(lambda: len(receiver.received) > 1)
        run("backup", "data/copy.db")
        assert ask(server, "GET", "/healthz").status == 200
        assert "can't" not in server.log.read_text()
    assert "sound" in run("doctor")
    assert "checks: " in run("restore", "data/copy.db")
