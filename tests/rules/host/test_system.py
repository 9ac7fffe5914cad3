"""What differs by system; `tests/artifact/hosts` runs the whole service where it does."""

import contextlib
import os
import signal
import socket
import sys

import pytest

from cardbeat.errors import StartupError
from cardbeat.host import system
from cardbeat.host.system import stop_signals_noted
from tests.kit.systems import HANG_UPS, LIMITS, UNLIMITED


def test_one_at_a_time_holds_a_lock_which_goes_with_its_descriptor(tmp_path):
    first, second, third = (
        os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(3)
    )
    assert system.try_lock(first)
    assert not system.try_lock(second)
    system.unlock(first)
    assert system.try_lock(second)
    os.close(second)
    assert system.try_lock(third)
    os.close(first)
    os.close(third)


@pytest.mark.parametrize(
    ("platform", "failures", "tries"),
    [("win32", 3, 4), ("linux", 1, 1), ("linux", 0, 1)],
)
def test_windows_is_asked_again_while_somebody_reads_the_file(
    monkeypatch, tmp_path, platform, failures, tries
):
    asked = []
    real = os.replace

    def fail_first(*paths):
        asked.append(paths)
        if len(asked) <= failures:
            raise PermissionError(13, "Permission denied")
        real(*paths)

    (tmp_path / "new").write_text("new")
    monkeypatch.setattr(os, "replace", fail_first)
    monkeypatch.setattr(sys, "platform", platform)
    with contextlib.suppress(PermissionError):
        system.replace(tmp_path / "new", tmp_path / "old")
    assert (len(asked), (tmp_path / "old").exists()) == (
        tries,
        failures < tries,
    )


@pytest.fixture
def limits(monkeypatch):
    """Sets the limits of descriptors and the most that is granted; returns the soft limits that were asked for."""

    def set_limits(soft, hard, granted=1 << 30):
        asked = []

        def set_soft(_, wanted):
            if wanted[0] > granted:
                raise ValueError("current limit exceeds maximum limit")
            asked.append(wanted[0])

        monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr("resource.setrlimit", set_soft)
        return asked

    return set_limits


@LIMITS
@pytest.mark.parametrize(
    ("soft", "hard", "raised", "limit"),
    [
        (256, 4096, [1000], 1000),
        (256, 512, [512], 512),
        (1024, 4096, [], 1000),
        (256, UNLIMITED, [1000], 1000),
        (UNLIMITED, UNLIMITED, [], 1000),
    ],
)
def test_the_limit_of_descriptors_is_raised_as_far_as_wanted_and_allowed(
    limits, soft, hard, raised, limit
):
    asked = limits(soft, hard)
    assert (system.descriptor_limit(1000), asked) == (limit, raised)


@LIMITS
def test_a_limit_that_is_not_granted_stays_or_is_that_of_an_old_macos(limits):
    limits(256, UNLIMITED, granted=0)
    assert system.descriptor_limit(11_000) == 256
    limits(256, UNLIMITED, granted=10_240)
    assert system.descriptor_limit(11_000) == 10_240


@LIMITS
@pytest.mark.parametrize(("needed", "least"), [(18, 24), (128, 171)])
def test_whatever_the_limit_no_part_takes_what_others_need(
    limits, needed, least
):
    """Serving needs 24, of which 18 are open from the start."""
    for hard in range(least, 10_385):
        limits(24, hard)
        clients, senders = system.clients_and_senders()
        assert clients > 0 < senders
        assert clients + 2 * senders <= hard - needed
    assert (clients, senders) == (10_000, 128)


def test_on_windows_one_call_waits_for_few_sockets(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert system.clients_and_senders() == (510, 128)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_pieces_are_sent_as_one_and_a_reader_that_is_gone_is_known_everywhere(
    monkeypatch, platform
):
    monkeypatch.setattr(sys, "platform", platform)
    near, far = socket.socketpair()
    with near, far:
        assert system.send_together(near, [b"head ", memoryview(b"body")]) == 9
        assert far.recv(100) == b"head body"
    assert system.reader_is_gone(BrokenPipeError(32, "Broken pipe"))
    assert system.reader_is_gone(OSError(22, "Invalid argument")) == (
        platform == "win32"
    )


@pytest.fixture
def hang_ups():
    """Sets what a hang-up does: pytest may run under nohup."""
    number = getattr(signal, "SIGHUP", signal.SIGTERM)
    before = signal.getsignal(number)
    yield lambda handler: signal.signal(number, handler)
    signal.signal(number, before)


@pytest.mark.parametrize("number", system.STOP_SIGNALS)
def test_a_stop_is_told_where_it_is_asked_for_and_nowhere_else(
    hang_ups, number
):
    hang_ups(signal.SIG_DFL)
    before = signal.getsignal(number)
    told = rf"^stopped by {signal.Signals(number).name}; nothing was written$"
    with stop_signals_noted("nothing was written") as require_going:
        require_going()
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(StartupError, match=told):
            require_going()
    assert signal.getsignal(number) is before
    with (
        pytest.raises(StartupError, match=told),
        stop_signals_noted("nothing was written", at_once=True),
    ):
        signal.raise_signal(number)


@HANG_UPS
def test_a_terminal_that_is_closed_stops_nothing_where_that_is_ignored(
    hang_ups,
):
    hang_ups(signal.SIG_IGN)
    with stop_signals_noted("nothing was written") as require_going:
        signal.raise_signal(signal.SIGHUP)
        require_going()
