"""The servers that ours is measured beside. Each serves the files of a folder under their names.

Needs `pip install "uvicorn[standard]" starlette` and `apt-get install nginx-light`. Each is started
as its documents say and writes an access log. uvicorn has all files in memory; nginx keeps as many
of them open as the hard limit of descriptors allows, and sends them by `sendfile`.
"""

import contextlib
import getpass
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.running import ROOT, Server
from tests.kit.support import free_port, wait_until

PEERS = ("uvicorn", "nginx")
NGINX = Path(__file__).with_name("nginx.conf")
OTHER_DESCRIPTORS = 1100
"""Connections, and the files that are open at the moment."""
FOLDER = "BENCH_FOLDER"
UVICORN = "-m uvicorn --factory tests.bench.peers:application"


def application():
    """What uvicorn serves: the folder that a variable names."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    bodies = {}
    for path in Path(os.environ[FOLDER]).iterdir():
        bodies[path.name] = path.read_bytes()
    headers = {"X-Cache": "HIT"}

    async def body(request):
        content = bodies[request.path_params["name"]]
        return Response(content, 200, headers, "image/png")

    return Starlette(routes=[Route("/{name}", body)])


def nginx_conf(folder, port, scratch):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    descriptors = most if most != resource.RLIM_INFINITY else 1_000_000
    text = NGINX.read_text().format(
        # Started by root it would read the files as somebody else.
        user=getpass.getuser(),
        scratch=scratch,
        folder=folder,
        port=port,
        files=min(
            len(os.listdir(folder)), descriptors - OTHER_DESCRIPTORS
        ),
        descriptors=descriptors,
    )
    configuration = scratch / "nginx.conf"
    configuration.write_text(text)
    return configuration


def copy_for_peers(files, folder):
    """Copies under short names, with the same endings."""
    folder.mkdir()
    copies = []
    for number, file in enumerate(files):
        copy = folder / f"{number}{file.suffix}"
        copies.append(Path(shutil.copyfile(file, copy)))
    return copies


@contextlib.contextmanager
def serving_peer(name, folder):
    """One of them as a process of its own."""
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch:
        if name == "nginx":
            configuration = nginx_conf(folder, port, Path(scratch))
            command = ["nginx", "-c", configuration]
        else:
            command = [sys.executable, *UVICORN.split(), f"--port={port}"]
        environment = os.environ | {FOLDER: str(folder)}
        with (Path(scratch) / "log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log
            )
        server = Server(port, process.pid, folder)
        try:
            wait_until(server.answers)
            yield server
        finally:
            process.terminate()
            process.wait(60)
