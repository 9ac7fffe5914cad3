"""Cards that a process of its own draws: also after it was killed, and where none can start."""

import os
import signal
import threading

import pytest

from cardbeat.cards.painter import Painter, renderer_of
from cardbeat.cards.request import card_from
from tests.kit.support import wait_until
from tests.kit.systems import WINDOWS

CARD = card_from(
    {"title": "Hello", "description": "World é ا", "theme": "dark"}
)
OTHER = CARD._replace(title="Other")
ACCENT = "#16a34a"
SIGNALS = pytest.mark.skipif(WINDOWS, reason="no signals to a process")


@pytest.fixture
def painter():
    painter = Painter(ACCENT)
    yield painter
    painter.close()


@pytest.fixture
def break_process(monkeypatch, tmp_path):
    """Lets the next processes run some code where they would import Pillow."""

    def do(code):
        (tmp_path / "PIL").mkdir(exist_ok=True)
        (tmp_path / "PIL/__init__.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))

    return do


def test_it_draws_as_the_renderer_does(painter):
    assert painter.draw(CARD) == renderer_of(ACCENT).render(CARD)


def test_after_a_kill_another_process_draws_the_card_and_the_log_says_so(
    painter, caplog
):
    process = painter.start()
    process.kill()
    assert painter.draw(CARD).png
    assert painter.start() is not process
    assert caplog.messages == [
        f"the process that draws ended with status {process.returncode}"
    ]


def test_an_answer_for_which_there_was_no_memory_does_not_pass_for_the_next(
    painter, monkeypatch
):
    def load(_file):
        monkeypatch.undo()
        raise MemoryError

    expected = painter.draw(OTHER)
    monkeypatch.setattr("marshal.load", load)
    painter.draw(CARD)
    assert painter.draw(OTHER) == expected


def test_a_process_that_always_ends_is_an_error(painter, break_process):
    break_process("raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="ended twice"):
        painter.draw(CARD)
    break_process(
        "import sys; sys.path.pop(0); del sys.modules['PIL']; import PIL"
    )
    assert painter.draw(CARD).png


def test_a_card_that_takes_too_long_is_an_error_at_once(
    break_process, caplog
):
    break_process("while True: pass")
    painter = Painter(seconds=0.2)
    with pytest.raises(RuntimeError, match=r"ended .* after 0\.2 s"):
        painter.draw(CARD)
    assert len(caplog.messages) == 1
    painter.close()


def test_a_card_that_cannot_be_drawn_is_an_error_with_its_trace_and_the_next_is_drawn(
    painter,
):
    process = painter.start()
    with pytest.raises(
        RuntimeError,
        match=r"drawing failed\nTraceback [^$]* line \d+[^$]*Error: ",
    ):
        painter.draw(CARD._replace(template="none"))
    assert painter.draw(CARD).png
    assert painter.start() is process


def test_where_no_process_can_be_started_cards_are_drawn_here(
    painter, monkeypatch, caplog
):
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/nowhere/python")
        assert painter.draw(CARD) == renderer_of(ACCENT).render(CARD)
    assert "no other process can be started" in caplog.text
    assert painter.start()


@SIGNALS
def test_a_close_ends_a_card_that_hangs_and_nothing_more_is_drawn(
    painter,
):
    process = painter.start()
    os.kill(process.pid, signal.SIGSTOP)
    closing = threading.Timer(0.1, painter.close)
    closing.start()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the program stops"):
            painter.draw(CARD)
    closing.join()
    assert process.returncode is not None


def test_it_ends_when_its_pipe_is_closed_as_by_a_server_that_is_killed(
    painter,
):
    process = painter.start()
    process.stdin.close()
    wait_until(lambda: process.poll() == 0)


@SIGNALS
def test_stop_signals_to_the_whole_group_do_not_end_it(painter):
    painter.draw(CARD)
    process = painter.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(process.pid, number)
    assert painter.draw(CARD).png
    assert painter.start() is process
