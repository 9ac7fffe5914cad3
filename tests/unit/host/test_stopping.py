import os
import signal

import pytest

from cardbeat.errors import StartupError
from cardbeat.host.stopping import stop_signals_noted


@pytest.fixture(autouse=True)
def _not_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_is_told_where_it_is_asked_for_and_nowhere_else(number):
    before = signal.getsignal(number)
    with stop_signals_noted("nothing was written") as require_going:
        require_going()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StartupError, match=rf"^stopped by {signal.Signals(number).name}; nothing was written$"):
            require_going()
    assert signal.getsignal(number) is before


def test_a_terminal_that_is_closed_stops_nothing_where_that_is_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_signals_noted("nothing was written") as require_going:
        os.kill(os.getpid(), signal.SIGHUP)
        require_going()
