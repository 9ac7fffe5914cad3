"""Whether nginx in front and the server behind it ever see a request differently.

    apt-get install nginx-light
    python -m tests.bench.behind_nginx [STREAMS]

Sends the table of malformed requests and then STREAMS damaged ones (500), each with a good request behind it, through
nginx, which keeps its connections to the server. What nginx logged as passed on must be what the server answered, one
for one.
"""

import argparse
import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from cardbeat.config import HttpLimits
from cardbeat.web.message import Answered, Request, Response
from cardbeat.web.router import Route, Router
from tests.bench.running import free_port, parser_of, wait_for
from tests.http.fuzz import mangled
from tests.http.malformed import MALFORMED, get
from tests.http.sockets import server_of

MARKER = get(b"Connection: close", line=b"GET /marker HTTP/1.1")
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log crit;
events {{ worker_connections 256; }}
http {{
    log_format passed escape=none '$request_method $request_uri $upstream_status';
    access_log {folder}/access.log passed; client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    upstream server {{ server 127.0.0.1:{upstream}; keepalive 1; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""


class Recorder(Router):
    """Answers every path, and keeps what was asked and refused."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def find(self, request: Request) -> Route:
        return Route(request.method, request.path, lambda _: Response(200, b"seen"), in_loop=True)

    def note(self, answers: Sequence[Answered]) -> None:
        for request, response, _ in answers:
            asked = "refused" if request.method == "-" else f"{request.method} {request.target}"
            self.seen.append(f"{asked} {response.status}")


@contextlib.contextmanager
def proxied(recorder: Recorder) -> Iterator[tuple[int, Path]]:
    """nginx in front of a server: its port and its log."""
    server = server_of(recorder, limits=HttpLimits(idle_seconds=60), observe=recorder.note)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(NGINX.format(folder=folder, port=port, upstream=server.server_address[1]))
        nginx = subprocess.Popen(["nginx", "-c", configuration])
        try:
            wait_for(port)
            yield port, Path(folder) / "access.log"
        finally:
            nginx.terminate()
            nginx.wait()
            server.stop()
            thread.join()


def send(port: int, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client, contextlib.suppress(OSError):
        client.sendall(data)
        while client.recv(65536):
            pass


def agree(passed: list[str], seen: list[str]) -> bool:
    """Whether both saw the same requests; of one that the server refused, the status."""
    return len(passed) == len(seen) and all(
        ours == theirs or (ours.startswith("refused") and ours.split()[-1] == theirs.split()[-1])
        for ours, theirs in zip(seen, passed, strict=True)
    )


def lines_after(log: Path, at: int) -> list[str]:
    """What nginx has passed on since its log was `at` bytes long."""
    lines = log.read_bytes()[at:].decode("latin-1").split("\n")[:-1]
    return [line for line in lines if line.rpartition(" ")[2].isdigit()]


def main(arguments: argparse.Namespace) -> None:
    chance = random.Random(1)
    streams = [data for data, _ in MALFORMED.values()] + [mangled(chance) for _ in range(arguments.streams)]
    recorder = Recorder()
    total = differently = 0
    with proxied(recorder) as (port, log):
        for stream in streams:
            recorder.seen.clear()
            at = log.stat().st_size
            send(port, stream + MARKER)
            deadline = time.monotonic() + 1
            # nginx writes its line a moment after the answer.
            while not agree(passed := lines_after(log, at), recorder.seen) and time.monotonic() < deadline:
                time.sleep(0.005)
            total += len(passed)
            if not agree(passed, recorder.seen):
                differently += 1
                print(f"{stream!r}\n  nginx passed on {passed}\n  the server saw {recorder.seen}")
    print(f"{len(streams)} streams, {total} requests passed on, {differently} seen differently")
    sys.exit(bool(differently))


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("streams", metavar="STREAMS", nargs="?", type=int, default=500, help="damaged ones [500]")
    main(parser.parse_args())
