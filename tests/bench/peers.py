"""Ours and the peers side by side: a small answer, a stored card, and one connection for each request.

Needs `pip install "uvicorn[standard]" starlette waitress` and `apt-get install nginx-light wrk`. Run from the
top of the tree as `python -m tests.bench.peers [SECONDS]`: every server on the first CPU, wrk on the second, all with
their access logs. On a shared machine the requests for each second of CPU are the fairer figure.
"""

import contextlib
import logging
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cardbeat.web.message import Request, Response
from cardbeat.web.router import Route, Router
from cardbeat.web.server import Server
from tests.bench.running import cpu_seconds, free_port, wait_for

CARD = bytes(range(256)) * 240
SMALL = b'{"status":"on_time","recovered":false}'
PEERS = ("cardbeat", "uvicorn", "waitress", "nginx")
WORKLOADS = (
    ("small, kept", "/small", ()),
    ("card, kept", "/card", ()),
    ("small, closed", "/small", ("Connection: close",)),
)

NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log; keepalive_requests 100000000; sendfile on; tcp_nopush on;
    open_file_cache max=100; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{
        listen 127.0.0.1:{port} backlog=1024; root {folder};
        location / {{ default_type application/json; add_header X-Request-Id $request_id; }}
    }}
}}
"""


def cardbeat(port: int) -> None:
    def small(_: Request) -> Response:
        return Response(200, SMALL, {"Content-Type": "application/json"})

    def card(_: Request) -> Response:
        return Response(200, CARD, {"Content-Type": "image/png", "X-Cache": "HIT"})

    logging.basicConfig(level=logging.INFO)
    router = Router([Route("GET", "/small", small, small), Route("GET", "/card", card, card)])
    Server(router, "127.0.0.1", port).serve_forever()


def uvicorn(port: int) -> None:
    import starlette.applications
    import starlette.requests
    import starlette.responses
    import starlette.routing
    import uvicorn

    async def small(_: starlette.requests.Request) -> starlette.responses.Response:
        return starlette.responses.Response(SMALL, media_type="application/json")

    async def card(_: starlette.requests.Request) -> starlette.responses.Response:
        return starlette.responses.Response(CARD, media_type="image/png", headers={"X-Cache": "HIT"})

    routes = [starlette.routing.Route("/small", small), starlette.routing.Route("/card", card)]
    uvicorn.run(starlette.applications.Starlette(routes=routes), port=port, log_level="info")


def waitress(port: int) -> None:
    import waitress

    def app(environ, start_response):
        body = SMALL if environ["PATH_INFO"] == "/small" else CARD
        start_response("200 OK", [("Content-Type", "image/png"), ("Content-Length", str(len(body)))])
        return [body]

    waitress.serve(app, host="127.0.0.1", port=port)


def nginx(port: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "small").write_bytes(SMALL)
        (folder / "card").write_bytes(CARD)
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
        process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")])
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
        process.terminate()
        process.wait()


@contextlib.contextmanager
def running(peer: str) -> Iterator[tuple[int, int]]:
    """A peer on the first CPU: its port and process id."""
    port = free_port()
    command = ["taskset", "-c", "0", sys.executable, "-m", "tests.bench.peers", peer, str(port)]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_for(port)
            yield port, process.pid
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)


def measure(port: int, pid: int, path: str, headers: tuple[str, ...], seconds: int) -> tuple[float, float]:
    """Requests a second, and requests for each second of the server's CPU."""
    options = [option for header in headers for option in ("-H", header)]
    command = ["taskset", "-c", "1", "wrk", "-t1", "-c16", f"-d{seconds}s", *options, f"http://127.0.0.1:{port}{path}"]
    before = cpu_seconds(pid)
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    used = cpu_seconds(pid) - before
    if errors := re.search(r"(Socket errors|Non-2xx).*", output):
        print(f"    {path} {errors[0]}")
    done = int(re.search(r"(\d+) requests in", output)[1])
    return float(re.search(r"Requests/sec:\s*([\d.]+)", output)[1]), done / used


def compare(seconds: int) -> None:
    results = {}
    for peer in PEERS:
        with running(peer) as (port, pid):
            results[peer] = [measure(port, pid, path, headers, seconds) for _, path, headers in WORKLOADS]
    for number, (name, _, _) in enumerate(WORKLOADS):
        for unit, what in enumerate(("a second", "a CPU second")):
            ours = results["cardbeat"][number][unit]
            ratios = (f"{ours / results[peer][number][unit]:6.2f} x {peer}" for peer in PEERS[1:])
            print(f"{name:13} {ours:8.0f} {what:12}", *ratios)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"cardbeat": cardbeat, "uvicorn": uvicorn, "waitress": waitress, "nginx": nginx}[sys.argv[1]](int(sys.argv[2]))
    else:
        compare(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
