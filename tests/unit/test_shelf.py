"""Bodies that the kernel sends by itself."""

import gc
import os
import socket

import pytest

from cardbeat.web import shelf
from cardbeat.web.shelf import SHELVED, shelved

BODY = bytes(range(256)) * 240


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def empty():
    shelved.cache_clear()
    yield
    shelved.cache_clear()


def test_a_shelved_body_arrives_behind_its_head() -> None:
    near, far = socket.socketpair()
    with near, far:
        sent = shelved(BODY).send(near, b"head")
        assert sent == 4 + len(BODY)
        assert far.recv(sent, socket.MSG_WAITALL) == b"head" + BODY


def test_what_the_kernel_does_not_take_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as far:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        far.connect(listener.getsockname())
        near, _ = listener.accept()
        with near:
            near.setblocking(False)
            near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            sent = shelved(BODY).send(near, b"head")
            assert 4 <= sent < 4 + len(BODY)
            assert far.recv(sent, socket.MSG_WAITALL) == (b"head" + BODY)[:sent]


class Halving(socket.socket):
    """Takes half of what it is given, as a kernel may."""

    def send(self, data: bytes, flags: int = 0) -> int:
        return super().send(data[: len(data) // 2], flags)


def test_no_body_follows_half_a_head() -> None:
    near, far = socket.socketpair()
    with Halving(fileno=near.detach()) as halving, far:
        assert shelved(BODY).send(halving, b"head") == 2
        halving.close()
        assert far.recv(100) == b"he"


def test_a_client_that_has_left_is_told_of_by_the_head() -> None:
    near, far = socket.socketpair()
    with near:
        far.close()
        with pytest.raises(BrokenPipeError):
            shelved(BODY).send(near, b"head")


def test_only_the_newest_keep_a_descriptor() -> None:
    before = descriptors()
    for number in range(3 * SHELVED):
        shelved(BODY + bytes([number]))
    gc.collect()
    assert descriptors() == before + SHELVED


def test_a_descriptor_is_closed_even_while_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()
    shelved(BODY)
    monkeypatch.setattr(shelf, "os", None)
    shelved.cache_clear()
    gc.collect()
    assert descriptors() == before


def test_without_descriptors_there_is_no_shelf(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_name: str) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", full)
    assert shelved(BODY) is None
    monkeypatch.delattr(os, "memfd_create")
    assert shelved(BODY + b"x") is None
