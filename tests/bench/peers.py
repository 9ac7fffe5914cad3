"""The servers that ours is measured beside. Each serves the files of a folder under their names.

    python -m tests.bench.peers uvicorn|waitress|nginx FOLDER PORT

Needs `pip install "uvicorn[standard]" starlette waitress` and `apt-get install nginx-light`. Each is started as its
documents say; uvicorn and waitress have all files in memory; nginx keeps as many of them open as the hard limit of
descriptors allows, and sends them by `sendfile`. uvicorn and nginx write an access log, waitress has none.
"""

import argparse
import contextlib
import getpass
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.running import ROOT, Server, free_port, parser_of, wait_for

NGINX = """
user {user}; daemon off; worker_processes 1; worker_rlimit_nofile {descriptors};
pid {scratch}/pid; error_log {scratch}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log {scratch}/access.log; keepalive_requests 100000000; sendfile on; tcp_nopush on;
    open_file_cache max={files} inactive=1h; open_file_cache_valid 1h;
    client_body_temp_path {scratch}; proxy_temp_path {scratch}; fastcgi_temp_path {scratch};
    uwsgi_temp_path {scratch}; scgi_temp_path {scratch};
    types {{ image/png png; text/plain txt; }}
    server {{
        listen 127.0.0.1:{port} backlog=1024; root {folder};
        location / {{ add_header X-Request-Id $request_id; }}
    }}
}}
"""
OTHER_DESCRIPTORS = 1100
"""Connections, and the files that are open at the moment."""
TYPES = {".png": "image/png", ".txt": "text/plain"}


def uvicorn(folder: Path, port: int) -> None:
    import starlette.applications
    import starlette.requests
    import starlette.responses
    import starlette.routing
    import uvicorn

    bodies = {path.name: (path.read_bytes(), TYPES[path.suffix]) for path in folder.iterdir()}

    async def body(request: starlette.requests.Request) -> starlette.responses.Response:
        content, media_type = bodies[request.path_params["name"]]
        return starlette.responses.Response(content, media_type=media_type, headers={"X-Cache": "HIT"})

    routes = [starlette.routing.Route("/{name}", body)]
    uvicorn.run(starlette.applications.Starlette(routes=routes), port=port, log_level="info")


def waitress(folder: Path, port: int) -> None:
    import waitress

    bodies = {f"/{path.name}": (path.read_bytes(), TYPES[path.suffix]) for path in folder.iterdir()}

    def app(environ, start_response):
        content, media_type = bodies[environ["PATH_INFO"]]
        start_response("200 OK", [("Content-Type", media_type), ("Content-Length", str(len(content)))])
        return [content]

    waitress.serve(app, host="127.0.0.1", port=port)


def nginx(folder: Path, port: int) -> None:
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    descriptors = hard_limit if hard_limit != resource.RLIM_INFINITY else 1_000_000
    files = min(len(list(folder.iterdir())), descriptors - OTHER_DESCRIPTORS)
    with tempfile.TemporaryDirectory() as scratch:
        configuration = Path(scratch) / "nginx.conf"
        # Started by root it would read the files as somebody else.
        values = {"user": getpass.getuser(), "scratch": scratch, "folder": folder, "port": port}
        configuration.write_text(NGINX.format(**values, files=files, descriptors=descriptors))
        with subprocess.Popen(["nginx", "-c", str(configuration)]) as process, contextlib.suppress(KeyboardInterrupt):
            try:
                process.wait()
            finally:
                process.terminate()


PEERS = {"uvicorn": uvicorn, "waitress": waitress, "nginx": nginx}


def copy_for_peers(files: list[Path], folder: Path) -> list[Path]:
    """Copies under short names, with the same endings."""
    folder.mkdir()
    return [Path(shutil.copyfile(file, folder / f"{number}{file.suffix}")) for number, file in enumerate(files)]


@contextlib.contextmanager
def serving_peer(name: str, folder: Path, *, pinned: bool = False) -> Iterator[Server]:
    """One of them as a process of its own, on the first CPU alone if `pinned`."""
    port = free_port()
    pin = ["taskset", "-c", "0"] if pinned else []
    command = [*pin, sys.executable, "-m", "tests.bench.peers", name, str(folder), str(port)]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as process,
    ):
        try:
            wait_for(port)
            yield Server(port, process.pid, folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def main(arguments: argparse.Namespace) -> None:
    PEERS[arguments.peer](arguments.folder, arguments.port)


if __name__ == "__main__":
    parser = parser_of(__doc__, trees=False)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("port", metavar="PORT", type=int)
    main(parser.parse_args())
