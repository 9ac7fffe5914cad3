"""Names that are looked up while the name server is silent."""

import ipaddress
import socket
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from cardbeat.heartbeat import resolver as module
from cardbeat.heartbeat.resolver import Resolver
from tests.support import wait_until

FOUND = [ipaddress.ip_address("8.8.8.8")]


class Names:
    """A name server that is silent for some names until it is told to answer."""

    def __init__(self):
        self.asked = []
        self.answering = threading.Event()
        self.resolver = Resolver(self.lookup)

    def lookup(self, host):
        self.asked.append(host)
        if host.startswith("silent"):
            assert self.answering.wait(30)
        return FOUND

    def ask_in_vain(self, *hosts, key="stranger"):
        """Ask for names that are silent, as a post that does not wait for long."""
        for host in hosts:
            with pytest.raises(TimeoutError):
                self.resolver.addresses(host, 0, key)


@pytest.fixture
def names():
    names = Names()
    yield names
    names.answering.set()
    wait_until(lambda: not any(names.resolver._running))


def silent(count, first=0):
    return [f"silent-{number}" for number in range(first, first + count)]


@pytest.mark.parametrize("keys", [1, 28, 100])
def test_a_thousand_silent_names_delay_nobody_elses_lookups(names, keys):
    for number, host in enumerate(silent(1000)):
        names.ask_in_vain(host, key=f"stranger-{number % keys}")
    assert names.resolver.addresses("good.example", 10, "victim") == FOUND
    assert sum(thread.name == "webhook-resolver" for thread in threading.enumerate()) <= module.LOOKUPS


def test_a_key_has_no_more_lookups_under_way_than_could_begin_for_others(names):
    names.ask_in_vain(*silent(1000), key="one")
    assert len(names.asked) == (module.LOOKUPS - module.LOOKUPS // module.KEPT_SHARE) // 2


def test_a_part_is_kept_for_names_that_were_found_before(names, monkeypatch):
    monkeypatch.setattr(module, "LOOKUPS", 4)
    assert names.resolver.addresses("good.example", 10, "victim") == FOUND
    for number, host in enumerate(silent(10)):
        names.ask_in_vain(host, key=f"stranger-{number}")
    names.ask_in_vain("new.example", key="somebody")
    assert names.resolver.addresses("good.example", 10, "victim") == FOUND


def test_names_that_were_found_once_and_are_silent_now_leave_room_too(names):
    names.answering.set()
    for number, host in enumerate(silent(1000)):
        names.resolver.addresses(host, 10, f"stranger-{number % 28}")
    names.answering.clear()
    for number, host in enumerate(silent(1000)):
        names.ask_in_vain(host, key=f"stranger-{number % 28}")
    assert names.resolver.addresses("new.example", 10, "victim") == FOUND
    assert names.resolver.addresses("new.example", 10, "victim") == FOUND


def test_a_name_that_is_not_found_any_more_loses_that(names):
    answers = [FOUND, socket.gaierror(socket.EAI_AGAIN, "silent"), FOUND]

    def lookup(_host):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    resolver = Resolver(lookup)
    assert resolver.addresses("a.example", 10) == FOUND
    assert "a.example" in resolver._found_before
    with pytest.raises(socket.gaierror):
        resolver.addresses("a.example", 10)
    assert "a.example" not in resolver._found_before


def test_only_so_many_names_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    resolver = Resolver(lambda _host: FOUND)
    for host in "abca":
        resolver.addresses(host, 10)
    assert list(resolver._found_before) == ["c", "a"]


def test_what_nobody_waits_for_any_more_is_not_asked(names, monkeypatch):
    monkeypatch.setattr(module, "LOOKUPS", 2)
    names.ask_in_vain(*silent(5))
    names.answering.set()
    assert names.resolver.addresses("good.example", 10) == FOUND
    assert set(names.asked) == {"silent-0", "good.example"}


def test_all_that_ask_for_a_name_share_one_lookup(names):
    with ThreadPoolExecutor(5) as pool:
        found = [pool.submit(names.resolver.addresses, "silent-1", 10, f"key-{number}") for number in range(5)]
        wait_until(lambda: names.asked)
        names.ask_in_vain("silent-1")
        names.answering.set()
        assert [one.result() for one in found] == [FOUND] * 5
    assert names.asked == ["silent-1"]


def test_all_that_ask_for_a_name_get_the_same_error(names):
    def lookup(_host):
        assert names.answering.wait(10)
        raise OSError("no such name")

    resolver = Resolver(lookup)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(resolver.addresses, "a.example", 10, key) for key in "xy"]
        wait_until(lambda: resolver._running[False])
        names.answering.set()
        assert [str(one.exception()) for one in asked] == ["no such name"] * 2


def test_a_name_that_a_stranger_waits_for_in_line_does_not_wait_there_for_others(names, monkeypatch):
    monkeypatch.setattr(module, "LOOKUPS", 8)
    names.ask_in_vain(*silent(3), key="stranger")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(names.resolver.addresses, "good.example", 10, "stranger")
        wait_until(lambda: names.resolver._waiting[False].waiting)
        assert names.resolver.addresses("good.example", 10, "victim") == FOUND
        names.answering.set()
        assert waiting.result() == FOUND


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_where_no_thread_can_start_who_asks_looks_up(monkeypatch, error):
    resolver = Resolver(lambda host: FOUND if host == "a.example" else [])
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=error))
    assert resolver.addresses("a.example", 10) == FOUND
    with pytest.raises(socket.gaierror, match="no address"):
        resolver.addresses("b.example", 10)
    assert resolver._running == ({}, {})


def test_where_no_thread_can_start_any_number_that_wait_are_looked_up_one_after_another(names, monkeypatch):
    monkeypatch.setattr(module, "LOOKUPS", 2)
    names.ask_in_vain("silent-1")
    waiting = 2 * sys.getrecursionlimit()
    done = []
    for number in range(waiting):
        # As those do that ask with time left.
        future = Future()
        future.add_done_callback(done.append)
        names.resolver._waiting[False].put("stranger", (f"a-{number}", future))

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        names.answering.set()
        wait_until(lambda: len(done) == waiting)
    assert all(future.result() == FOUND for future in done)
    assert names.resolver.addresses("good.example", 10) == FOUND
