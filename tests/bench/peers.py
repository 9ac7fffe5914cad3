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
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.running import ROOT, Server
from tests.kit.support import free_port, wait_until

PEERS = ("uvicorn", "nginx")
NGINX = Path(__file__).with_name("nginx.conf")
OTHER_DESCRIPTORS = 1100
"""Connections, and the files that are open at the moment."""
FOLDER = "BENCH_FOLDER"


def application() -> Any:
    """What uvicorn serves: the folder that a variable names."""
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    bodies = {
        path.name: path.read_bytes()
        for path in Path(os.environ[FOLDER]).iterdir()
    }

    async def body(request: Any) -> Any:
        content = bodies[request.path_params["name"]]
        return Response(
            content, media_type="image/png", headers={"X-Cache": "HIT"}
        )

    return Starlette(routes=[Route("/{name}", body)])


def nginx_conf(folder: Path, port: int, scratch: str) -> Path:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    descriptors = most if most != resource.RLIM_INFINITY else 1_000_000
    files = min(len(list(folder.iterdir())), descriptors - OTHER_DESCRIPTORS)
    # Started by root it would read the files as somebody else.
    values = {
        "user": getpass.getuser(),
        "scratch": scratch,
        "folder": folder,
        "port": port,
    }
    text = NGINX.read_text().format(
        **values, files=files, descriptors=descriptors
    )
    configuration = Path(scratch) / "nginx.conf"
    configuration.write_text(text)
    return configuration


def copy_for_peers(files: list[Path], folder: Path) -> list[Path]:
    """Copies under short names, with the same endings."""
    folder.mkdir()
    names = [
        folder / f"{number}{file.suffix}" for number, file in enumerate(files)
    ]
    for file, name in zip(files, names, strict=True):
        shutil.copyfile(file, name)
    return names


def is_listening(port: int) -> bool:
    with (
        contextlib.suppress(OSError),
        socket.create_connection(("127.0.0.1", port)),
    ):
        return True
    return False


@contextlib.contextmanager
def serving_peer(name: str, folder: Path) -> Iterator[Server]:
    """One of them as a process of its own."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as scratch,
        tempfile.TemporaryFile() as log,
    ):
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--factory",
            "tests.bench.peers:application",
        ]
        command += ["--port", str(port)]
        if name == "nginx":
            command = ["nginx", "-c", str(nginx_conf(folder, port, scratch))]
        environment = os.environ | {FOLDER: str(folder)}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log
        )
        try:
            wait_until(lambda: is_listening(port), 60)
            yield Server(port, process.pid, folder)
        finally:
            process.terminate()
            process.wait(60)
