"""The files of `.docker`, as the documentation shows them: built into an image, and run from it.

The base image can't be fetched everywhere. In its place stands one of Debian's packages, with Debian's own Python.
"""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

from tests.artifact import ROOT, free_port
from tests.documentation import block
from tests.support import wait_until
from tests.systems import WINDOWS

FILES = ROOT / ".docker"
BASE = "docker.io/library/python:3.13-slim"
CERTIFICATES = "/etc/ssl/certs"
UNTIL_ASKED = '"$@" & read -r _; kill $!; wait $!'
"""Runs a command until stdin ends, then stops it, and ends with its status."""
SMALL = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
PACKAGES = "--include=python3-pip,python-is-python3,ca-certificates"


@pytest.mark.quick
@pytest.mark.parametrize(("name", "language"), [("Dockerfile", "dockerfile"), ("compose.yaml", "yaml")])
def test_the_documentation_shows_the_files(name, language):
    start = {"Dockerfile": "FROM ", "compose.yaml": "services:"}[name]
    assert (FILES / name).read_text() == block("running", language, start)


def test_compose_takes_its_file():
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("docker-compose is not here")
    ran = subprocess.run([compose, "-f", FILES / "compose.yaml", "config", "-q"], stderr=subprocess.PIPE, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.fixture(scope="module")
def buildah(tmp_path_factory):
    """Gives a command of buildah, on a store of its own."""
    if WINDOWS or os.geteuid() != 0 or not (shutil.which("buildah") and shutil.which("mmdebstrap")):
        pytest.skip("buildah and mmdebstrap are not here, or this is not root")
    store = tmp_path_factory.mktemp("images")
    places = ("--root", store / "root", "--runroot", store / "run", "--storage-driver", "vfs")

    def command(action, *arguments):
        isolation = ("--isolation", "chroot") if action in ("build", "run") else ()
        return ["buildah", *places, action, *isolation, *arguments]

    yield command
    subprocess.run(command("rm", "--all"), stdout=subprocess.DEVNULL, check=False)
    # Whole systems, of which pytest would keep those of three runs.
    shutil.rmtree(store)


def done(command):
    """What the command prints."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def image(buildah, pyz, tmp_path_factory):
    """The name of the image that is built from the Dockerfile, with the artifact beside it."""
    folder = tmp_path_factory.mktemp("context")
    system = folder.with_name("system.tar")
    done(
        ["mmdebstrap", "--quiet", "--variant=apt", PACKAGES, *SMALL, "bookworm", system, "http://deb.debian.org/debian"]
    )
    container = done(buildah("from", "scratch"))
    done(buildah("add", "--quiet", container, system, "/"))
    system.unlink()
    # Debian lets pip install nothing for the system's Python without this.
    done(buildah("config", "--env", "PIP_BREAK_SYSTEM_PACKAGES=1", container))
    done(buildah("commit", "--quiet", "--rm", container, BASE))
    for file in (FILES / "Dockerfile", pyz):
        shutil.copy(file, folder)
    # This host's pip and certificates, if it reaches the registries through a proxy.
    variables = [f"--env={name}={value}" for name, value in os.environ.items() if name in ("PIP_CERT", "PIP_INDEX_URL")]
    volumes = [f"--volume={CERTIFICATES}:{CERTIFICATES}:ro"] if os.path.isdir(CERTIFICATES) else []
    done(buildah("build", "--pull-never", "--format", "docker", *variables, *volumes, "--tag", "cardbeat", folder))
    return "localhost/cardbeat"


@contextlib.contextmanager
def running(command):
    """Runs a command until the end of the block, which is the end of its stdin. It must end with 0."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield
        process.stdin.close()
        assert process.wait(30) == 0


def test_an_image_is_built_and_serves_as_a_user_without_rights(buildah, image):
    about = json.loads(done(buildah("inspect", "--type", "image", image)))["Docker"]["config"]
    container, port = done(buildah("from", "--pull-never", image)), free_port()
    variables = ("--env", f"CARDBEAT_PORT={port}", "--env", "CARDBEAT_HOST=127.0.0.1")

    def inside(*command):
        return buildah("run", *variables, container, "--", *command)

    def is_healthy():
        healthy = [word.replace("8080", str(port)) for word in about["Healthcheck"]["Test"][1:]]
        return subprocess.run(inside(*healthy), stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert (about["User"], list(about["Volumes"])) == ("1000", ["/data"])
    assert not is_healthy()
    with running(inside("sh", "-c", UNTIL_ASKED, "sh", *about["Cmd"])):
        wait_until(is_healthy)
        assert "cardbeat.db" in done(inside("ls", "/data"))
        created = json.loads(done(inside("python", "/cardbeat.pyz", "keys", "create", "--json")))
        assert created["key"].startswith("sk_")
    assert done(inside("id", "-u")) == "1000"
