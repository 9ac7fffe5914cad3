"""nginx, Caddy, HAProxy and Apache with a configuration of the documentation, without TLS."""

import contextlib
import os
import re
import shutil
import subprocess
import urllib.request
from typing import NamedTuple

import pytest

from tests.kit.documentation import example
from tests.kit.support import free_port, wait_until

NGINX = """daemon off; pid {folder}/pid; error_log stderr; events {{}}
http {{ access_log off; client_body_buffer_size 8m; client_body_temp_path {folder}/1;
proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4;
scgi_temp_path {folder}/5; include {folder}/example; }}
"""
"""Its own user may not write into the folder of a test, so bodies stay in memory."""
CADDY = "{{\nadmin off\nservers {{\nprotocols h1 h2c\n}}\n}}\nimport {folder}/example\n"
APACHE = """ServerRoot {folder}\nServerName localhost\nPidFile {folder}/pid\nErrorLog {folder}/log
Listen {address}\nUser nobody\nGroup nogroup\nProtocols h2c http/1.1
"""
for module in (
    "authz_core",
    "headers",
    "http2",
    "mpm_event",
    "proxy",
    "proxy_http",
):
    APACHE += f"LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"
APACHE += "Include {folder}/example\n"


class Kind(NamedTuple):
    """A proxy: its command, the documentation's file, how that says where to listen, and what
    includes it."""

    command: str
    file: str
    listens: str
    listens_here: str
    head: str = ""


KINDS = {
    "nginx": Kind(
        "nginx -p {folder} -c",
        "nginx.conf",
        "443 ssl",
        "{address}; listen {http2} http2",
        NGINX,
    ),
    "caddy": Kind(
        "caddy run --adapter caddyfile --config",
        "Caddyfile",
        "cards.example.com",
        "http://{address}",
        CADDY,
    ),
    "haproxy": Kind(
        "haproxy -db -f", "haproxy.cfg", r"bind .*", "bind {address}"
    ),
    "apache": Kind(
        "apache2 -DFOREGROUND -f",
        "apache.conf",
        r"\*:443",
        "{address}",
        APACHE,
    ),
}


def found(program):
    """Its path. Without it the test is skipped, with CI=1 it fails."""
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        assert not os.environ.get("CI"), f"{program} is not installed"
        pytest.skip(f"{program} is not installed")
    return path


@contextlib.contextmanager
def running(name, folder, replaced, configuration=""):
    """The URLs of a proxy by HTTP/1.1 and by HTTP/2, with parts of its configuration replaced."""
    address = f"127.0.0.1:{free_port()}"
    http2 = f"127.0.0.1:{free_port()}" if name == "nginx" else address
    places = {"folder": folder, "address": address, "http2": http2}
    command = written(KINDS[name], places, replaced, configuration)
    variables = {
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env=os.environ | variables
    )
    try:
        wait_until(lambda: answers(f"http://{address}/healthz"))
        yield f"http://{address}", f"http://{http2}"
    finally:
        process.terminate()
        process.wait()


def written(kind, places, replaced, configuration):
    """The command of a proxy, whose files are written."""
    folder = places["folder"]
    text = configuration or example(kind.file)
    text = re.sub(r"(?m)^ *(ssl_|SSL).*\n", "", text)
    text = re.sub(kind.listens, kind.listens_here.format(**places), text)
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "example").write_text(text)
    (folder / "configuration").write_text(kind.head.format(**places))
    command = kind.command.format(**places).split()
    command[0] = found(command[0])
    return [
        *command,
        f"{folder}/{'configuration' if kind.head else 'example'}",
    ]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
