"""A data folder that can't be used: serving is refused, and doctor gives the same reason."""

import os
import re
import shutil

import pytest

from tests.kit.artifact import is_refused, ran, starter
from tests.kit.client import checks_key, new_check
from tests.kit.systems import IS_ROOT

POWERLESS = (
    "setpriv",
    "--bounding-set",
    "-dac_override,-dac_read_search",
) * IS_ROOT
"""Root does what it may not, unless it gives that up."""


@pytest.fixture(scope="module")
def filled(python, pyz, tmp_path_factory):
    """A data folder with 40 checks."""
    folder = tmp_path_factory.mktemp("filled")
    with starter(python, pyz, folder) as start:
        server = start("--data", "data")
        key = checks_key(server)
        for _ in range(40):
            new_check(server, key, name="x" * 100)
        assert server.stop() == 0
    return folder / "data"


@pytest.fixture
def database(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "data")
    return tmp_path / "data" / "cardbeat.db"


@pytest.fixture
def refusal(python, pyz, tmp_path):
    """What serving says before it gives up, which is also what doctor finds wrong."""

    def refusal(data="data"):
        command = (*POWERLESS, python, pyz)
        served = ran(
            *command, "serve", "--port", "0", "--data", data, cwd=tmp_path
        )
        examined = ran(*command, "doctor", "--data", data, cwd=tmp_path)
        assert is_refused(served), served.stderr
        assert examined.returncode == 1
        sentence = served.stderr.removeprefix("cardbeat: ").rstrip()
        assert re.search(
            rf"^problem +\w+ +{re.escape(sentence)}$",
            examined.stdout,
            re.MULTILINE,
        )
        return sentence

    return refusal


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_damaged_file_is_refused_and_left_as_it_is(
    refusal, database, is_cut
):
    middle = database.stat().st_size // 2 // 4096 * 4096
    if is_cut:
        os.truncate(database, middle)
    else:
        with database.open("r+b") as file:
            file.seek(middle)
            file.write(bytes(4096))
    before = database.read_bytes()
    assert "restore a backup" in refusal()
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("locked", "mode"),
    [
        (".", 0o500),
        ("cardbeat.db", 0o000),
        ("writer.lock", 0o500),
        ("delivery.lock", 0o000),
    ],
)
def test_what_may_not_be_read_or_written_is_to_be_made_writable(
    refusal, database, locked, mode
):
    before = database.read_bytes()
    (database.parent / locked).chmod(mode)
    sentence = refusal()
    (database.parent / locked).chmod(0o700)
    assert "this user" in sentence
    assert "backup" not in sentence
    assert database.read_bytes() == before


def test_a_link_to_nothing_is_refused(refusal, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cardbeat.db").symlink_to("nowhere")
    assert "is a link, " in refusal()


def test_what_can_be_no_folder_is_refused(refusal, tmp_path):
    (tmp_path / "file").touch()
    assert "can't write in the data folder file/data: " in refusal(
        "file/data"
    )
