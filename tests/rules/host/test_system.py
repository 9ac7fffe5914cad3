"""What differs by system; `tests/artifact/hosts` runs the whole service where it does."""

import contextlib
import os
import signal
import socket
import sys

import pytest

from cardbeat.cli import main
from cardbeat.host import system
from tests.kit.systems import HANG_UPS, LIMITS, UNLIMITED


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
    is_there = (tmp_path / "old").exists()
    assert len(asked) == tries
    assert is_there == (failures < tries)


@pytest.fixture
def limits(monkeypatch):
    """Sets the limits of descriptors, and the most that the system grants."""

    def set_limits(soft, hard, granted=1 << 30):
        def set_soft(_, wanted):
            is_over = hard not in (UNLIMITED, max(hard, wanted[0]))
            if is_over or wanted[0] > granted or wanted[0] == UNLIMITED:
                raise ValueError("current limit exceeds maximum limit")

        monkeypatch.setattr("resource.getrlimit", lambda _: (soft, hard))
        monkeypatch.setattr("resource.setrlimit", set_soft)

    return set_limits


@LIMITS
@pytest.mark.parametrize(
    ("hard", "granted", "limit"),
    [
        (4096, 1 << 30, 1000),
        (512, 1 << 30, 512),
        (UNLIMITED, 1 << 30, 1000),
        (UNLIMITED, 0, 256),
    ],
)
def test_as_many_descriptors_are_had_as_are_wanted_and_granted(
    limits, hard, granted, limit
):
    limits(256, hard, granted)
    assert system.descriptor_limit(1000) == limit


@LIMITS
def test_an_old_macos_grants_fewer_than_it_says(limits):
    limits(256, 1 << 63, granted=10_240)
    assert system.descriptor_limit(11_000) == 10_240


@LIMITS
@pytest.mark.parametrize(("needed", "least"), [(18, 24), (128, 171)])
def test_whatever_the_limit_no_part_takes_what_others_need(
    limits, needed, least
):
    """Serving needs 24, of which 18 are open from the start."""
    for hard in (*range(least, 600), 4_000, 10_384):
        limits(24, hard)
        clients, senders = system.clients_and_senders()
        assert clients > 0 < senders
        assert clients + 2 * senders <= hard - needed
    assert clients == 10_000
    assert senders == 128


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
        assert (
            system.send_together(near, [b"head ", memoryview(b"body")])
            == 9
        )
        assert far.recv(100) == b"head body"
    assert system.reader_is_gone(BrokenPipeError(32, "Broken pipe"))
    is_gone = system.reader_is_gone(OSError(22, "Invalid argument"))
    assert is_gone == (platform == "win32")


@pytest.fixture
def handlers():
    """Puts the handlers of stop signals back: pytest may run under nohup."""
    before = {it: signal.getsignal(it) for it in system.STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", system.STOP_SIGNALS)
def test_a_stop_signal_ends_a_command_with_one_line(
    monkeypatch, capsys, number
):
    signal.signal(number, signal.SIG_DFL)
    monkeypatch.setattr(
        "cardbeat.commands.doctor.run",
        lambda _: signal.raise_signal(number),
    )
    assert main(["doctor"]) == 130
    told = "cardbeat: stopped; what was done before is whole\n"
    assert capsys.readouterr() == ("", told)


@HANG_UPS
@pytest.mark.usefixtures("handlers")
def test_a_terminal_that_is_closed_stops_nothing_where_that_is_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    system.on_stop_signals(signal.default_int_handler)
    signal.raise_signal(signal.SIGHUP)
