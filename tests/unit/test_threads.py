"""What the program does where the system grants it no thread, whichever it is."""

import subprocess
import sys
import threading

import pytest

from cardbeat import threads
from cardbeat.errors import StartupError
from tests.artifact import ROOT, clean_environment, free_port

CHILD = """
import itertools, os, sys, threading

start, numbers, refused = threading.Thread.start, itertools.count(1), []

def refuse(thread):
    if next(numbers) == int(sys.argv[1]):
        refused.append(thread.name)
        raise RuntimeError("can't start new thread")
    start(thread)

threading.Thread.start = refuse
from cardbeat.cli import main
from cardbeat.web.server import Server

Server.serve_forever = lambda server: os.write(1, b"serves without" if refused else b"serves")
sys.exit(main(["serve", "--port", sys.argv[2], "--data", "data"]))
"""
MOST_THREADS = 20


def test_without_any_one_of_its_threads_it_does_not_start_and_says_so_in_one_line(tmp_path):
    named = set()
    for number in range(1, MOST_THREADS):
        child = [sys.executable, "-c", CHILD, str(number), str(free_port())]
        environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            child, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30, check=False
        )
        if done.stdout == "serves":
            assert done.returncode == 0
            break
        if done.stdout == "serves without":
            # That of a line which tells what is slow: nobody needs it.
            assert (done.returncode, number) == (0, 3)
            continue
        assert done.returncode == 2, done.stderr
        [line] = done.stderr.splitlines()
        assert line.startswith("cardbeat: the system grants no thread for ")
        named.add(line.split(";")[0].split()[-1])
    assert named >= {
        "stop-watchdog",
        "log",
        "database-writer",
        "card-store",
        "alerts",
        "sweep",
        "removal",
        "access-log",
    }


def test_a_thread_that_starts_is_waited_for_no_longer_than_asked():
    let_go = threading.Event()
    thread = threading.Thread(target=let_go.wait, daemon=True)
    assert threads.has_ended(thread, None)
    threads.start(thread)
    assert not threads.has_ended(thread, 0)
    let_go.set()
    assert threads.has_ended(thread, 10)


def test_a_thread_that_is_not_granted_is_a_matter_for_the_operator(monkeypatch):
    def refuse():
        raise RuntimeError("can't start new thread")

    thread = threading.Thread(name="sweep")
    monkeypatch.setattr(thread, "start", refuse)
    with pytest.raises(StartupError, match="no thread for sweep; raise its limit"):
        threads.start(thread)
    assert threads.has_ended(thread, 0)
