"""nginx and Caddy with a configuration of the documentation, but on a free port and without TLS."""

import contextlib
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.artifact import free_port
from tests.support import wait_until

_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


@contextlib.contextmanager
def nginx(configuration: str, folder: Path, replaced: Mapping[str, str]) -> Iterator[str]:
    """The URL of one whose servers have other addresses than in the configuration."""
    port = free_port()
    adapted = re.sub(r"^ *ssl_.*\n", "", configuration, flags=re.MULTILINE)
    adapted = _with({**replaced, "443 ssl": f"127.0.0.1:{port}"}, adapted)
    folders = "".join(f"{name}_temp_path {folder}/{name};\n" for name in _TEMPORARY)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}} http {{ access_log off;\n"
        # Its own user may not write into the folder of a test.
        f"client_body_buffer_size 8m;\n{folders}{adapted}}}"
    )
    with _running([_installed("nginx"), "-p", folder, "-c", folder / "nginx.conf"], f"http://127.0.0.1:{port}") as url:
        yield url


@contextlib.contextmanager
def caddy(configuration: str, folder: Path, replaced: Mapping[str, str]) -> Iterator[str]:
    """The same with Caddy."""
    url = f"http://127.0.0.1:{free_port()}"
    (folder / "Caddyfile").write_text(
        f"{{\nadmin off\n}}\n{_with({**replaced, 'cards.example.com': url}, configuration)}"
    )
    command = [_installed("caddy"), "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]
    with _running(command, url, XDG_CONFIG_HOME=str(folder), XDG_DATA_HOME=str(folder)) as url:
        yield url


def _with(replaced: Mapping[str, str], text: str) -> str:
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return text


def _installed(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        assert not os.environ.get("CI"), f"{name} is not installed"
        pytest.skip(f"{name} is not installed")
    return found


@contextlib.contextmanager
def _running(command: list[str | Path], url: str, **environment: str) -> Iterator[str]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | environment)
    try:
        wait_until(lambda: answers(f"{url}/healthz"))
        yield url
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
