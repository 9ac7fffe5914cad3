"""Data folders and files of another user's, or that others may write to."""

import os
import stat
import subprocess
import sys

import pytest

from cardbeat import cli
from cardbeat.database import open_database
from cardbeat.database.sqlite.file import FILES
from cardbeat.errors import StartupError
from cardbeat.host import ownership, system
from cardbeat.host.ownership import check_writable
from tests.systems import LINKS, MODES, ROOT

SOMEBODY = 54321


@pytest.fixture
def folder(tmp_path):
    open_database(tmp_path / "data").close()
    return tmp_path / "data"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def as_somebody(folder, monkeypatch):
    """As a user without a name, whom nothing here belongs to."""
    monkeypatch.setattr(os, "geteuid", lambda: SOMEBODY)


@pytest.fixture
def nothing_writable(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)


@MODES
@pytest.mark.usefixtures("as_somebody", "nothing_writable")
def test_what_belongs_to_another_user_is_told_with_the_command_that_gives_it_back(folder):
    owner = system.user_name(folder.stat().st_uid)
    with pytest.raises(StartupError) as caught:
        check_writable(folder, FILES)
    assert str(caught.value).endswith(f"it belongs to {owner}, so run as root: chown -R {SOMEBODY} {folder}")


@MODES
@pytest.mark.usefixtures("as_somebody")
def test_so_is_a_single_file_in_an_own_folder(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, _mode: not str(path).endswith(".lock"))
    with pytest.raises(StartupError) as caught:
        check_writable(folder, FILES)
    assert str(caught.value).startswith(f"can't use {folder / 'writer.lock'}: ")
    assert f"chown -R {SOMEBODY} {folder}" in str(caught.value)


@MODES
@pytest.mark.usefixtures("as_somebody", "nothing_writable")
def test_a_folder_that_is_not_there_yet_is_to_be_made_by_root(tmp_path):
    with pytest.raises(StartupError) as caught:
        check_writable(tmp_path / "new folder")
    assert str(caught.value).endswith(f"run as root: install -d -m 700 -o {SOMEBODY} '{tmp_path / 'new folder'}'")


@MODES
@pytest.mark.usefixtures("nothing_writable")
def test_an_own_folder_needs_another_mode(folder):
    folder.chmod(0o500)
    with pytest.raises(StartupError) as caught:
        check_writable(folder, FILES)
    folder.chmod(0o700)
    assert str(caught.value).endswith(f"run: chmod u+rwX {folder}")


@pytest.mark.usefixtures("nothing_writable")
def test_on_a_read_only_disk_no_mode_and_no_owner_helps(folder):
    with pytest.raises(StartupError) as caught:
        check_writable(folder, FILES)
    assert str(caught.value).endswith("must be writable for this user")


@MODES
@pytest.mark.parametrize(("before", "after"), [(0o777, 0o755), (0o770, 0o750), (0o2775, 0o2755)])
def test_an_own_folder_that_others_may_write_to_is_mended_with_one_line(folder, before, after, caplog):
    folder.chmod(before)
    open_database(folder).close()
    assert mode(folder) == after
    (line,) = caplog.messages
    assert f"{folder}; they can't any more: its mode is now {after:o}" in line
    open_database(folder).close()
    assert len(caplog.messages) == 1


@MODES
@pytest.mark.usefixtures("as_somebody")
def test_one_that_is_not_ours_is_refused(folder):
    folder.chmod(0o777)
    with pytest.raises(StartupError, match="others may write to the data folder") as caught:
        open_database(folder)
    assert str(caught.value).endswith(f"such as {folder}/cardbeat, or run as root: chown {SOMEBODY} {folder}")
    assert mode(folder) == 0o777


@MODES
def test_a_folder_of_all_users_is_refused_even_when_it_is_ours(folder):
    folder.chmod(0o1777)
    with pytest.raises(StartupError, match=f"choose a folder of its own, such as {folder}/cardbeat"):
        open_database(folder)
    assert mode(folder) == 0o1777


def test_on_windows_modes_and_owners_say_nothing(folder, monkeypatch):
    folder.chmod(0o777)
    monkeypatch.setattr(sys, "platform", "win32")
    assert not ownership.others_may_write(folder)
    assert ownership.command_to_get_in(folder, folder) == ""
    assert ownership.foreign_file(folder, ["cardbeat.db"]) is None
    ownership.keep_others_out(folder)
    assert mode(folder) == 0o777


@LINKS
def test_a_new_private_file_never_comes_to_stand_behind_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        ownership.create_private(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()


@ROOT
def test_doctor_tells_root_of_what_keeps_the_service_out(folder, capsys):
    for path in (*folder.iterdir(), folder):
        os.chown(path, SOMEBODY, SOMEBODY)
    assert cli.main(["doctor", "--data", str(folder)]) == 0
    os.chown(folder / "writer.lock", 0, 0)
    assert cli.main(["doctor", "--data", str(folder)]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("problem")]
    assert line.endswith(
        f"folder: {folder}/writer.lock belongs to root, its folder to {SOMEBODY}; "
        f"run as root: chown -R {SOMEBODY} {folder}"
    )


@ROOT
def test_what_root_makes_in_a_services_folder_is_the_services(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(0o700)
    os.chown(folder, SOMEBODY, SOMEBODY)
    command = [sys.executable, "-m", "cardbeat", "keys", "create", "--data", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.PIPE)
    made = list(folder.iterdir())
    assert {path.name for path in made} >= {"cardbeat.db", "writer.lock"}
    assert {path.stat().st_uid for path in made} == {SOMEBODY}
