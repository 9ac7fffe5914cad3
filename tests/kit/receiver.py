"""Webhook receivers on loopback, good and bad."""

import contextlib
import json
import socket
import socketserver
import ssl
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.kit.lists import each

PEM = Path(__file__).with_name("receiver.pem")
"""Key and certificate of `receiver.test`, signed by itself."""

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Received:
    head: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def id(self):
        return self.headers["webhook-id"]


class Receiver:
    """Serves each connection with the next of its behaviours, and with the last of them for ever."""

    def __init__(self, *behaviours, host="127.0.0.1", port=0):
        self.behaviours = list(behaviours) or [answer()]
        self.received = []
        self.connections = 0
        self.released = threading.Event()
        self.lock = threading.Lock()
        self._server = _Server((host, port), self._serve)
        self.port = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}/hook"
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.02},
        )
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _serve(self, connection, _address, _server):
        with self.lock:
            self.connections += 1
            behaviour = self.behaviours[0]
            if len(self.behaviours) > 1:
                self.behaviours.pop(0)
        # The sender may go at any moment: that is what is tested.
        with contextlib.suppress(OSError):
            behaviour(self, connection)

    def read(self, connection):
        with connection.makefile("rb") as stream:
            head = _line(stream)
            headers = {}
            while line := _line(stream):
                name, _, value = line.partition(": ")
                headers[name.lower()] = value
            length = int(headers.get("content-length", 0))
            body = stream.read(length)
        if len(body) < length:
            raise ConnectionError("the sender went away")
        received = Received(head, body, headers)
        with self.lock:
            self.received.append(received)
        return received

    @property
    def ids(self):
        return each(self.received, "id")


class Unlimited:
    """An attempt that may go to any address but the `crowded` ones, and is ended after so many seconds."""

    def __init__(self, seconds=None, *crowded):
        self.seconds = seconds
        self.crowded = crowded
        self.is_late = False

    def enter(self, address):
        return address not in self.crowded

    def connected(self, connection):
        if self.seconds is not None:
            threading.Timer(
                self.seconds, self._shut_down, [connection.dup()]
            ).start()

    def _shut_down(self, connection):
        self.is_late = True
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


def _line(stream):
    line = stream.readline().decode("latin-1")
    if not line.endswith("\n"):
        raise ConnectionError("the sender went away")
    return line.rstrip("\r\n")


def answer(status=204, headers=""):
    return say(
        f"HTTP/1.1 {status} x\r\nContent-Length: 0\r\n{headers}\r\n".encode()
    )


def say(data):
    def behave(receiver, connection):
        receiver.read(connection)
        connection.sendall(data)

    return behave


def hang(receiver, connection):
    receiver.read(connection)
    receiver.released.wait(60)


def reset(receiver, connection):
    receiver.read(connection)
    connection.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    connection.close()


def repeat(piece, first=b"", pause_seconds=0.05, read=True):
    """Say something small again and again until the other side has had enough."""

    def behave(receiver, connection):
        if read:
            receiver.read(connection)
        connection.sendall(first)
        while not receiver.released.wait(pause_seconds):
            connection.sendall(piece)

    return behave


def over_tls(inner, least=ssl.TLSVersion.TLSv1_2):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = least
    context.load_cert_chain(PEM)

    def behave(receiver, connection):
        names = []
        context.sni_callback = lambda _connection, name, _context: (
            names.append(name)
        )
        with context.wrap_socket(connection, server_side=True) as secured:
            inner(receiver, secured)
        receiver.received[-1].headers["sni"] = str(names[0])

    return behave


class _Server(socketserver.ThreadingTCPServer):
    request_queue_size = 500
    allow_reuse_address = True
