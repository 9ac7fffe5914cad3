"""A TCP proxy that fails in the ways in which networks and load balancers do."""

import contextlib
import socket
import threading
import time


class Proxy:
    """Passes bytes between clients and a server of this machine.

    `delay_seconds` holds back each piece in both directions. A direction that is in `dropped` ("there", "back") loses
    what it is given, and both ends keep their connections: they are half open.
    """

    def __init__(self, port):
        self.delay_seconds = 0.0
        self.dropped = set()
        self._server_port = port
        self._ends = []
        self._threads = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._start(self._accept)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        self._listening.close()
        self.cut()
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _start(self, work, *arguments):
        self._threads.append(
            threading.Thread(target=work, args=arguments, daemon=True)
        )
        self._threads[-1].start()

    def cut(self):
        """End all connections of now."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                try:
                    server = socket.create_connection(
                        ("127.0.0.1", self._server_port)
                    )
                except OSError:
                    client.close()
                    continue
                self._ends += [client, server]
                # What is half open stays so for the connections of that time.
                for source, target, way in (
                    (client, server, "there"),
                    (server, client, "back"),
                ):
                    self._start(self._carry, source, target, way)

    def _carry(self, source, target, way):
        is_lost = False
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                if self.delay_seconds:
                    time.sleep(self.delay_seconds)
                is_lost |= way in self.dropped
                if not is_lost:
                    target.sendall(piece)
        with contextlib.suppress(OSError):
            if not is_lost:
                target.shutdown(socket.SHUT_RDWR)
