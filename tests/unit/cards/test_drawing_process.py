"""Cards that a process of its own draws: as here, also after it was killed, and where none can be started."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from cardbeat.cards import drawing_process
from cardbeat.cards.drawing.render import Renderer
from cardbeat.cards.drawing_process import DrawingProcess
from cardbeat.cards.request import card_from
from cardbeat.typeset.faces.fonts import Fonts
from tests.support import wait_until

CARD = card_from({"title": "Hello", "description": "World é ا", "theme": "dark"})
ACCENT = "#16a34a"


@pytest.fixture
def drawing():
    drawing = DrawingProcess(ACCENT)
    yield drawing
    drawing.close()


def process_of(drawing):
    drawing.start()
    return drawing._process


def test_it_draws_as_the_renderer_does(drawing):
    assert drawing.render(CARD) == Renderer(Fonts(), ACCENT).render(CARD)


def test_the_same_process_draws_all(drawing):
    process = process_of(drawing)
    for _ in range(2):
        drawing.render(CARD)
    assert process_of(drawing) is process
    assert process.poll() is None


def test_after_a_kill_another_one_draws_the_card_which_is_told(drawing, caplog):
    process = process_of(drawing)
    process.kill()
    process.wait(10)
    assert drawing.render(CARD).png
    assert process_of(drawing) is not process
    assert caplog.messages == ["the process that draws ended with status -9"]


def test_one_that_memory_runs_out_for_is_not_replaced_by_the_server(drawing, monkeypatch):
    monkeypatch.setattr(drawing_process, "_WORK", "import os; os.kill(os.getpid(), 9)")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="ended twice, with status -9; -9 mostly means that memory ran out"):
            drawing.render(CARD)
    monkeypatch.undo()
    assert drawing.render(CARD).png
    assert process_of(drawing)


def test_one_that_is_killed_while_it_draws_is_replaced_too(drawing):
    process = process_of(drawing)
    drawing.render(CARD)
    os.kill(process.pid, signal.SIGSTOP)
    drawn = []
    thread = threading.Thread(target=lambda: drawn.append(drawing.render(CARD)))
    thread.start()
    process.kill()
    thread.join(30)
    assert drawn


def test_an_answer_that_there_was_no_memory_for_does_not_pass_for_the_next(drawing, monkeypatch):
    def load(file):
        monkeypatch.undo()
        raise MemoryError

    other = CARD._replace(title="Other")
    expected = drawing.render(other)
    monkeypatch.setattr("marshal.load", load)
    drawing.render(CARD)
    assert drawing.render(other) == expected


def test_one_that_ends_again_and_again_is_an_error(drawing, monkeypatch):
    drawing.render(CARD)
    monkeypatch.setattr(drawing_process, "_WORK", "raise SystemExit")
    process_of(drawing).kill()
    with pytest.raises(RuntimeError, match="ended twice"):
        drawing.render(CARD)
    monkeypatch.undo()
    assert drawing.render(CARD).png


def test_where_one_ends_before_it_has_drawn_any_cards_are_drawn_here(drawing, monkeypatch, caplog):
    monkeypatch.setattr(drawing_process, "_WORK", "raise SystemExit")
    for _ in range(2):
        assert drawing.render(CARD) == Renderer(Fonts(), ACCENT).render(CARD)
    assert "the server draws cards itself" in caplog.text
    assert process_of(drawing) is None


def test_a_text_that_can_not_be_drawn_is_an_error_with_its_lines_and_the_next_is_drawn(drawing):
    process = process_of(drawing)
    with pytest.raises(RuntimeError, match=r"drawing failed\nTraceback [^$]* line \d+[^$]*Error: "):
        drawing.render(CARD._replace(template="none"))
    assert drawing.render(CARD).png
    assert process_of(drawing) is process


def test_where_no_process_can_be_started_cards_are_drawn_here(drawing, monkeypatch, caplog):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert drawing.render(CARD) == Renderer(Fonts(), ACCENT).render(CARD)
    assert "the server draws cards itself" in caplog.text


def test_where_one_could_not_be_started_another_is_tried_a_minute_later(drawing, monkeypatch, caplog):
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    for _ in range(2):
        drawing.render(CARD)
        clock[0] += 61
    assert caplog.text.count("the server draws cards itself") == 1
    drawing.render(CARD)
    monkeypatch.undo()
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    clock[0] += 59
    drawing.render(CARD)
    assert process_of(drawing) is None
    clock[0] += 1
    drawing.render(CARD)
    assert process_of(drawing).poll() is None


HANGS = """
import sys
sys.path[:] = sys.argv[2:]
from cardbeat.cards import drawing_process
class Hanging:
    def render(self, card):
        while True:
            pass
drawing_process.DRAWING_SECONDS = 0.05
drawing_process._renderer = lambda accent: Hanging()
drawing_process.work()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timer that ends a process")
@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_card_that_hangs_is_an_error_and_the_next_is_drawn(drawing, monkeypatch, handler):
    before = signal.signal(signal.SIGALRM, handler)
    try:
        monkeypatch.setattr(drawing_process, "_WORK", HANGS)
        with pytest.raises(RuntimeError, match=r"ended twice, with status -14; .* -14 that a card took 20 s"):
            drawing.render(CARD)
    finally:
        signal.signal(signal.SIGALRM, before)
    monkeypatch.undo()
    assert drawing.render(CARD).png
    assert process_of(drawing)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has scores")
def test_where_memory_runs_out_it_is_killed_rather_than_the_server(drawing):
    drawing.render(CARD)
    own, score = (int(Path(f"/proc/{one}/oom_score_adj").read_text()) for one in ("self", process_of(drawing).pid))
    assert score == min(1000, own + 500)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows it")
def test_it_knows_no_settings(drawing, monkeypatch):
    monkeypatch.setenv("CARDBEAT_DATABASE", "postgresql://user:secret@host/name")
    monkeypatch.setenv("OTHER", "stays")
    drawing.render(CARD)
    environment = Path(f"/proc/{process_of(drawing).pid}/environ").read_bytes()
    assert b"CARDBEAT" not in environment
    assert b"OTHER=stays" in environment


def test_nor_where_the_working_folder_was_removed(drawing, monkeypatch, tmp_path):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    monkeypatch.syspath_prepend("")
    (tmp_path / "gone").rmdir()
    assert drawing.render(CARD).png


def test_it_ends_at_the_close_and_draws_nothing_more(drawing):
    process = process_of(drawing)
    drawing.close()
    assert process.poll() == -signal.SIGKILL
    with pytest.raises(RuntimeError, match="the server stops"):
        drawing.render(CARD)


def test_a_close_does_not_wait_for_one_that_hangs(drawing):
    process = process_of(drawing)
    os.kill(process.pid, signal.SIGSTOP)
    drawing.close()
    assert process.poll() == -signal.SIGKILL


def test_it_ends_when_the_pipe_is_closed_as_by_a_server_that_is_killed(drawing):
    process = process_of(drawing)
    process.stdin.close()
    wait_until(lambda: process.poll() == 0)


def test_stop_signals_of_the_whole_group_do_not_end_it(drawing):
    process = process_of(drawing)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(process.pid, number)
    assert drawing.render(CARD).png
    assert process_of(drawing) is process
