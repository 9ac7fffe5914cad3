"""Data folders of other users, of groups, and of mounts without modes."""

import contextlib
import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from cardbeat.database import open_database
from cardbeat.errors import StartupError
from cardbeat.host import ownership
from cardbeat.host.system import rights_of_strangers
from tests.kit.systems import MODES
from tests.kit.systems import ROOT as AS_ROOT

USER = 54321
GROUP = 54322
SERVICE = (USER, GROUP)
SHARED = "which all users share; name another with --data"
GIVE = "give it to this user, or name another with --data"
MAKE = "must be a folder that is writable for this user"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def volume():
    """Makes a data folder with an owner, a group and a mode, in one that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        folder = Path(name, "data")

        def make(user, group, mode):
            folder.mkdir()
            os.chown(folder, user, group)
            folder.chmod(mode)
            return folder

        # What is imported late may not be readable for another user.
        open_database(Path(name, "first")).close()
        yield make


@contextlib.contextmanager
def acting_as(user, *groups):
    """Be another user in these groups."""
    before = os.getgroups()
    os.setgroups(groups[1:])
    os.setresgid(groups[0], groups[0], 0)
    os.setresuid(user, user, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(before)


@AS_ROOT
@pytest.mark.parametrize(
    ("owner", "folder_mode", "service"),
    [
        pytest.param(
            (0, GROUP), 0o2775, SERVICE, id="fsGroup of Kubernetes"
        ),
        pytest.param(
            (0, 0), 0o770, (USER, 0), id="any user of OpenShift"
        ),
        pytest.param(
            (0, GROUP),
            0o2775,
            (0, 0),
            id="that of a service, used by root",
        ),
    ],
)
def test_a_volume_of_a_container_platform_is_used_as_it_is(
    volume, caplog, owner, folder_mode, service
):
    folder = volume(*owner, folder_mode)
    with acting_as(*service):
        open_database(folder).close()
        assert rights_of_strangers(folder) == 0
    assert caplog.messages == []
    assert mode(folder) == folder_mode


@AS_ROOT
@pytest.mark.parametrize(
    ("owner", "folder_mode", "advice"),
    [
        ((0, 0), 0o777, GIVE),
        ((0, 0), 0o1777, SHARED),
        ((0, 0), 0o755, MAKE),
        ((0, GROUP + 1), 0o2775, MAKE),
        (SERVICE, 0o500, MAKE),
    ],
)
def test_a_folder_that_strangers_can_write_or_this_user_can_not_is_refused(
    volume, owner, folder_mode, advice
):
    folder = volume(*owner, folder_mode)
    with acting_as(*SERVICE), pytest.raises(StartupError) as refused:
        open_database(folder)
    assert str(refused.value).endswith(advice)
    assert mode(folder) == folder_mode
    assert not list(folder.iterdir())


@AS_ROOT
def test_a_folder_that_can_not_be_made_and_a_file_of_another_user_are_told(
    volume,
):
    folder = volume(*SERVICE, 0o700)
    with acting_as(*SERVICE), pytest.raises(StartupError, match=MAKE):
        open_database(folder.with_name("new"))
    open_database(folder).close()
    made = {path.name: path.stat().st_uid for path in folder.iterdir()}
    assert made.keys() >= {"cardbeat.db", "writer.lock"}
    assert set(made.values()) == {USER}, (
        "what root makes in the folder of a service is the service's"
    )
    os.chown(folder / "writer.lock", 0, 0)
    with acting_as(*SERVICE), pytest.raises(StartupError) as refused:
        open_database(folder)
    assert (
        str(refused.value)
        == f"can't use {folder}/writer.lock: it must be writable for this user"
    )


@MODES
@pytest.mark.parametrize(
    ("group", "before", "after"),
    [
        (None, 0o777, 0o775),
        pytest.param(GROUP, 0o770, 0o750, marks=AS_ROOT),
    ],
)
def test_strangers_are_kept_out_of_an_own_folder_and_that_is_said_once(
    tmp_path, caplog, group, before, after
):
    if group is not None:
        os.chown(tmp_path, -1, group)
    tmp_path.chmod(before)
    for _ in range(2):
        open_database(tmp_path).close()
    assert mode(tmp_path) == after
    assert caplog.messages == [
        f"others can write in the data folder {tmp_path}; that is taken from them now"
    ]


@AS_ROOT
@pytest.mark.parametrize("owner", [USER, 0])
def test_a_mount_that_refuses_a_mode_is_used_with_a_warning(
    volume, caplog, monkeypatch, owner
):
    folder = volume(owner, 0, 0o777)
    real_open = os.open

    def open_as_a_mount_does(*arguments, **options):
        descriptor = real_open(*arguments, **options)
        if arguments[1] & os.O_CREAT:
            os.fchmod(descriptor, 0o666)
        return descriptor

    def refuse(*_arguments, **_options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "open", open_as_a_mount_does)
    monkeypatch.setattr(os, "chmod", refuse)
    with acting_as(*SERVICE):
        open_database(folder).close()
    (told,) = caplog.messages
    assert (
        f"others can write in the data folder {folder}, and its file system"
        in told
    )
    assert mode(folder) == 0o777


def test_on_windows_modes_and_owners_say_nothing(
    tmp_path, monkeypatch, caplog
):
    tmp_path.chmod(0o777)
    monkeypatch.setattr(sys, "platform", "win32")
    ownership.prepare_folder(tmp_path)
    assert caplog.messages == []
