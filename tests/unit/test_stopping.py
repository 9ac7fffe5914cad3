import os
import signal

import pytest

from cardbeat.errors import StartupError
from cardbeat.stopping import stop_signals_noted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_is_told_where_it_is_asked_for_and_nowhere_else(number):
    before = signal.getsignal(number)
    with stop_signals_noted("nothing was written") as require_going:
        require_going()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StartupError, match=rf"^stopped by {signal.Signals(number).name}; nothing was written$"):
            require_going()
    assert signal.getsignal(number) is before
