"""Names that are looked up while the name server is silent."""

import contextlib
import errno
import ipaddress
import socket
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from cardbeat.errors import Unavailable
from cardbeat.heartbeat.webhooks import resolver as module
from cardbeat.heartbeat.webhooks.resolver import Resolver
from cardbeat.host.descriptors import Shares
from tests.support import wait_until

LOOKUPS = Shares().lookups
FOUND = [ipaddress.ip_address("8.8.8.8")]


class Names:
    """A name server that is silent for some names until it is told to answer."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch
        self.asked = []
        self.answered = []
        self.answering = threading.Event()
        self.gone = set()
        self.new_resolver()

    def new_resolver(self, lookups=LOOKUPS, remembered=module.REMEMBERED):
        self.monkeypatch.setattr(module, "REMEMBERED", remembered)
        self.resolver = Resolver(self.lookup, lookups)

    def lookup(self, host):
        self.asked.append(host)
        try:
            if host.startswith("silent"):
                assert self.answering.wait(30)
            if host in self.gone:
                raise socket.gaierror(socket.EAI_AGAIN, "silent")
            return FOUND
        finally:
            self.answered.append(host)

    def ask_in_vain(self, *hosts, key="stranger"):
        """Ask for names that are silent, as a post that does not wait for long."""
        for host in hosts:
            with pytest.raises(TimeoutError):
                self.resolver.addresses(host, 0, key)

    def take_all_slots(self):
        """Have silent names looked up wherever there is room for names that were not found before."""
        for number, host in enumerate(silent(10)):
            self.ask_in_vain(host, key=f"stranger-{number}")

    def has_room_for(self, host):
        """Whether a name is looked up now."""
        before = len(self.asked)
        with contextlib.suppress(TimeoutError):
            assert self.resolver.addresses(host, 0.5, "victim") == FOUND
        return self.asked[before:] == [host]


@pytest.fixture
def names(monkeypatch):
    names = Names(monkeypatch)
    yield names
    names.answering.set()
    wait_until(lambda: len(names.answered) == len(names.asked))


def silent(count, first=0):
    return [f"silent-{number}" for number in range(first, first + count)]


def test_of_thousands_of_addresses_only_the_first_are_looked_at(monkeypatch):
    """To vet 4,000 took 0.1 s for each post, of which hundreds run at once."""
    entries = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"8.8.{n // 250}.{n % 250}", 0)) for n in range(4000)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: entries)
    found = Resolver().addresses("many.example", 10)
    assert [str(address) for address in found] == [entry[4][0] for entry in entries[: module.ADDRESSES]]


@pytest.mark.parametrize("keys", [1, 28, 100])
def test_a_thousand_silent_names_delay_nobody_elses_lookups(names, keys):
    for number, host in enumerate(silent(1000)):
        names.ask_in_vain(host, key=f"stranger-{number % keys}")
    assert names.resolver.addresses("good.example", 10, "victim") == FOUND
    assert sum(thread.name == "webhook-resolver" for thread in threading.enumerate()) <= LOOKUPS


@pytest.mark.parametrize(
    "answer",
    [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        OSError(errno.EINVAL, "Invalid argument"),
    ],
)
def test_a_lookup_that_failed_for_lack_of_descriptors_says_so_whatever_the_resolver_says(monkeypatch, answer):
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=answer))
    with pytest.raises(type(answer), match=str(answer.strerror)):
        Resolver().addresses("a.example", 10)
    monkeypatch.setattr(socket, "socket", Mock(side_effect=OSError(errno.EMFILE, "Too many open files")))
    with pytest.raises(Unavailable):
        Resolver().addresses("a.example", 10)


def test_a_key_has_no_more_lookups_under_way_than_could_begin_for_others(names):
    names.ask_in_vain(*silent(1000), key="one")
    assert len(names.asked) == (LOOKUPS - LOOKUPS // module.KEPT_SHARE) // 2


def test_a_part_is_kept_for_names_that_were_found_before(names):
    names.new_resolver(lookups=4)
    assert names.resolver.addresses("good.example", 10, "victim") == FOUND
    names.take_all_slots()
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
    names.new_resolver(lookups=4)
    for host in ("gone.example", "good.example"):
        assert names.resolver.addresses(host, 10) == FOUND
    names.gone.add("gone.example")
    with pytest.raises(socket.gaierror):
        names.resolver.addresses("gone.example", 10)
    names.gone.clear()
    names.take_all_slots()
    assert names.has_room_for("good.example")
    assert not names.has_room_for("gone.example")


def test_only_so_many_names_are_remembered(names):
    names.new_resolver(lookups=4, remembered=2)
    for host in "abca":
        assert names.resolver.addresses(host, 10) == FOUND
    names.take_all_slots()
    assert [host for host in "abc" if names.has_room_for(host)] == ["a", "c"]


def test_what_nobody_waits_for_any_more_is_not_asked(names):
    names.new_resolver(lookups=2)
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
    names.gone.add("silent-1")
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(names.resolver.addresses, "silent-1", 10, key) for key in "xy"]
        wait_until(lambda: names.asked)
        names.answering.set()
        assert [str(one.exception()) for one in asked] == [str(socket.gaierror(socket.EAI_AGAIN, "silent"))] * 2


def test_a_name_that_a_stranger_waits_for_in_line_does_not_wait_there_for_others(names):
    names.new_resolver(lookups=8)
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
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", Mock(side_effect=error))
        assert resolver.addresses("a.example", 10) == FOUND
        with pytest.raises(socket.gaierror, match="no address"):
            resolver.addresses("b.example", 10)
    # Each has ended: it is looked up again.
    assert resolver.addresses("a.example", 10) == FOUND
    with pytest.raises(socket.gaierror, match="no address"):
        resolver.addresses("b.example", 10)


def test_where_no_thread_can_start_any_number_that_wait_are_looked_up_one_after_another(names, monkeypatch):
    names.new_resolver(lookups=2)
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
