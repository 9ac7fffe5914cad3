"""What differs by system; `tests/hosts` runs the whole service where it does."""

import os
import socket
import sys
import time

import pytest

from cardbeat.host import system
from tests.systems import LIMITS, MODES, UNLIMITED


@pytest.fixture
def windows(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")


@pytest.fixture
def lock_files(tmp_path):
    """Two descriptors of one file, as two processes would have them."""
    descriptors = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def test_one_at_a_time_holds_a_lock(lock_files):
    first, second = lock_files
    assert system.try_lock(first)
    assert not system.try_lock(second)
    system.unlock(first)
    assert system.try_lock(second)


def test_a_lock_goes_with_its_descriptor(tmp_path):
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert system.try_lock(first)
    os.close(first)
    assert system.try_lock(second)
    os.close(second)


def in_use(monkeypatch, name, times):
    """Let a function of `os` fail as on Windows where somebody has the file open; returns how often it was called."""
    calls = []
    real = getattr(os, name)

    def act(*arguments):
        calls.append(arguments)
        if len(calls) <= times:
            raise PermissionError(13, "Permission denied")
        real(*arguments)

    monkeypatch.setattr(os, name, act)
    return calls


def test_windows_is_asked_again_while_somebody_reads_the_file_to_replace(tmp_path, monkeypatch, windows):
    (tmp_path / "new").write_text("new")
    (tmp_path / "old").write_text("old")
    calls = in_use(monkeypatch, "replace", 3)
    system.replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "new"
    assert len(calls) == 4


def test_windows_is_asked_again_while_somebody_reads_the_file_to_delete(tmp_path, monkeypatch, windows):
    (tmp_path / "old").write_text("old")
    in_use(monkeypatch, "unlink", 3)
    system.remove(tmp_path / "old")
    assert not (tmp_path / "old").exists()


def test_a_file_in_use_for_long_is_given_up(tmp_path, monkeypatch, windows):
    (tmp_path / "new").write_text("new")
    in_use(monkeypatch, "replace", 1000)
    began = time.monotonic()
    with pytest.raises(PermissionError):
        system.replace(tmp_path / "new", tmp_path / "old")
    assert system.IN_USE_SECONDS <= time.monotonic() - began < system.IN_USE_SECONDS + 1


def test_elsewhere_what_is_forbidden_is_not_asked_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    calls = in_use(monkeypatch, "replace", 1)
    with pytest.raises(PermissionError):
        system.replace(tmp_path / "new", tmp_path / "old")
    assert len(calls) == 1


@MODES
def test_a_user_without_a_name_is_called_by_the_number():
    assert system.user_name(0) == "root"
    assert system.user_name(54321) == "54321"


def test_on_windows_users_have_no_numbers_and_files_no_owner_to_change(tmp_path, windows):
    assert system.current_user() is None
    file = tmp_path / "file"
    file.touch()
    before = file.stat()
    descriptor = os.open(file, os.O_RDONLY)
    system.change_owner(descriptor, 54321, 54321)
    os.close(descriptor)
    assert file.stat().st_uid == before.st_uid


@LIMITS
@pytest.mark.parametrize(
    ("soft", "hard", "raised_to", "limit"),
    [
        (256, 4096, 1000, 1000),
        (256, 512, 512, 512),
        (1024, 4096, None, 1000),
        (256, UNLIMITED, 1000, 1000),
        (UNLIMITED, UNLIMITED, None, 1000),
    ],
)
def test_the_limit_of_descriptors_is_raised_as_far_as_wanted_and_allowed(monkeypatch, soft, hard, raised_to, limit):
    raised = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    assert system.descriptor_limit(1000) == limit
    assert raised == ([] if raised_to is None else [(raised_to, hard)])


@LIMITS
def test_a_limit_that_can_not_be_raised_stays(monkeypatch):
    def refuse(*_):
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr("resource.getrlimit", lambda _: (256, UNLIMITED))
    monkeypatch.setattr("resource.setrlimit", refuse)
    assert system.descriptor_limit(1000) == 256


@LIMITS
def test_where_more_is_not_granted_the_limit_of_an_old_macos_is_used(monkeypatch):
    def set_limit(_, limits):
        if limits[0] > 10_240:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr("resource.getrlimit", lambda _: (256, UNLIMITED))
    monkeypatch.setattr("resource.setrlimit", set_limit)
    assert system.descriptor_limit(11_000) == 10_240


def test_pieces_are_sent_as_one_everywhere(monkeypatch):
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        near, far = socket.socketpair()
        with near, far:
            assert system.send_together(near, [b"head ", memoryview(b"body")]) == 9
            assert far.recv(100) == b"head body"


def test_a_reader_that_is_gone_is_known_by_each_systems_error(monkeypatch):
    invalid = OSError(22, "Invalid argument")
    monkeypatch.setattr(sys, "platform", "linux")
    assert system.reader_is_gone(BrokenPipeError(32, "Broken pipe"))
    assert not system.reader_is_gone(invalid)
    monkeypatch.setattr(sys, "platform", "win32")
    assert system.reader_is_gone(invalid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux drops requests to connect")
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_listener_that_ends_handshakes_keeps_those_that_are_done(family, host):
    with socket.create_server((host, 0), family=family) as listener, socket.socket(family) as late:
        with socket.create_connection(listener.getsockname()[:2]) as early:
            system.end_handshakes(listener)
            late.settimeout(0.3)
            with pytest.raises(TimeoutError):
                late.connect(listener.getsockname())
            early.sendall(b"x")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(1) == b"x"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_listener_takes_connections_where_the_kernel_knows_no_filters(monkeypatch):
    monkeypatch.setattr(system, "SO_ATTACH_FILTER", 9999)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        system.end_handshakes(listener)
        socket.create_connection(listener.getsockname()).close()
