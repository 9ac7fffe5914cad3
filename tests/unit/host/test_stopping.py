import signal

import pytest

from cardbeat.errors import StartupError
from cardbeat.host.stopping import stop_signals_noted
from cardbeat.host.system import STOP_SIGNALS
from tests.systems import HANG_UPS


@pytest.fixture(autouse=True)
def _not_under_nohup():
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOP_SIGNALS if number.name == "SIGHUP"}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_stop_is_told_where_it_is_asked_for_and_nowhere_else(number):
    before = signal.getsignal(number)
    with stop_signals_noted("nothing was written") as require_going:
        require_going()
        signal.raise_signal(number)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(StartupError, match=rf"^stopped by {signal.Signals(number).name}; nothing was written$"):
            require_going()
    assert signal.getsignal(number) is before


def test_a_stop_at_once_is_told_by_the_signal_itself():
    with (
        pytest.raises(StartupError, match=r"^stopped by SIGTERM; nothing was read$"),
        stop_signals_noted("nothing was read", at_once=True),
    ):
        signal.raise_signal(signal.SIGTERM)


@HANG_UPS
def test_a_terminal_that_is_closed_stops_nothing_where_that_is_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_signals_noted("nothing was written") as require_going:
        signal.raise_signal(signal.SIGHUP)
        require_going()
