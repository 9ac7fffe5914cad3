"""Ours and the peers side by side: a small answer, a stored card, and one connection for each request.

Needs `pip install "uvicorn[standard]" starlette waitress pillow` and `apt-get install nginx-light wrk`. Run from the
top of the tree as `python -m tests.bench.peers [SECONDS [pinned]]`. Ours serves a card it has drawn and `/robots.txt`,
the peers the same bytes; every server is started as its documents say, wrk has the second CPU, and all but waitress,
which has none, write an access log. With `pinned` every server has the first CPU to itself: threads that share the
interpreter's lock, such as waitress's, are faster there.
On a shared machine the requests for each second of CPU are the fairer figure.
"""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.bench import cards
from tests.bench.running import cpu_seconds, free_port, wait_for

SMALL = "/robots.txt"
CARD = "/og?" + urllib.parse.urlencode({**cards.CARD, "template": "blog", "theme": "light"})
PEERS = ("uvicorn", "waitress", "nginx")
WORKLOADS = (
    ("small, kept", "small", ()),
    ("card, kept", "card", ()),
    ("small, closed", "small", ("Connection: close",)),
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


def uvicorn(port: int, folder: Path) -> None:
    import starlette.applications
    import starlette.requests
    import starlette.responses
    import starlette.routing
    import uvicorn

    bodies = {name: (folder / name).read_bytes() for name in ("small", "card")}

    async def small(_: starlette.requests.Request) -> starlette.responses.Response:
        return starlette.responses.Response(bodies["small"], media_type="text/plain")

    async def card(_: starlette.requests.Request) -> starlette.responses.Response:
        return starlette.responses.Response(bodies["card"], media_type="image/png", headers={"X-Cache": "HIT"})

    routes = [starlette.routing.Route("/small", small), starlette.routing.Route("/card", card)]
    uvicorn.run(starlette.applications.Starlette(routes=routes), port=port, log_level="info")


def waitress(port: int, folder: Path) -> None:
    import waitress

    bodies = {f"/{name}": (folder / name).read_bytes() for name in ("small", "card")}

    def app(environ, start_response):
        body = bodies[environ["PATH_INFO"]]
        start_response("200 OK", [("Content-Type", "image/png"), ("Content-Length", str(len(body)))])
        return [body]

    waitress.serve(app, host="127.0.0.1", port=port)


def nginx(port: int, folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port))
    process = subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf")])
    with contextlib.suppress(KeyboardInterrupt):
        process.wait()
    process.terminate()
    process.wait()


@contextlib.contextmanager
def running(*command: str, pinned: bool) -> Iterator[subprocess.Popen[bytes]]:
    pin = ["taskset", "-c", "0"] if pinned else []
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen([*pin, sys.executable, "-m", *command], stdout=log, stderr=log) as process,
    ):
        try:
            wait_for(int(command[-1]))
            yield process
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


def measure_all(port: int, pid: int, paths: dict[str, str], seconds: int) -> list[tuple[float, float]]:
    return [measure(port, pid, paths[name], headers, seconds) for _, name, headers in WORKLOADS]


def measure_ours(folder: Path, seconds: int, *, pinned: bool) -> list[tuple[float, float]]:
    """Leaves what it served in the folder, for the peers."""
    create = [sys.executable, "-m", "cardbeat", "keys", "create", "--data", str(folder / "data")]
    key = re.search(r"sk_\S+", subprocess.run(create, capture_output=True, text=True, check=True).stdout)[0]
    port = free_port()
    with running("cardbeat", "--data", str(folder / "data"), "--port", str(port), pinned=pinned) as process:
        paths = {"small": SMALL, "card": f"{CARD}&key={key}"}
        for name, path in paths.items():
            for _ in range(2):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    (folder / name).write_bytes(answer.read())
        return measure_all(port, process.pid, paths, seconds)


def compare(seconds: int, *, pinned: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_ours = measure_ours(folder, seconds, pinned=pinned)
        results = {}
        for peer in PEERS:
            port = free_port()
            with running("tests.bench.peers", peer, name, str(port), pinned=pinned) as process:
                paths = {"small": "/small", "card": "/card"}
                results[peer] = measure_all(port, process.pid, paths, seconds)
        print(f"card of {(folder / 'card').stat().st_size / 1000:.1f} KB, {'pinned' if pinned else 'as started'}")
    for number, (name, _, _) in enumerate(WORKLOADS):
        for unit, what in enumerate(("a second", "a CPU second")):
            ours = all_ours[number][unit]
            ratios = (f"{ours / results[peer][number][unit]:6.2f} x {peer}" for peer in PEERS)
            print(f"{name:13} {ours:8.0f} {what:12}", *ratios)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        {"uvicorn": uvicorn, "waitress": waitress, "nginx": nginx}[sys.argv[1]](int(sys.argv[3]), Path(sys.argv[2]))
    else:
        compare(int(sys.argv[1]) if len(sys.argv) > 1 else 5, pinned="pinned" in sys.argv)
