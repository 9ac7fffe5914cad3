"""The hosts that every test in this folder runs on."""

import pytest

from tests.artifact.hosts.host import darwin, plain, windows

HOSTS = {"here": plain, "as-darwin": darwin, "windows": windows}


@pytest.fixture(scope="module", params=HOSTS)
def host(request, python, pyz, tmp_path_factory):
    with HOSTS[request.param](
        python, pyz, tmp_path_factory.mktemp("host")
    ) as host:
        yield host


@pytest.fixture
def start(host, tmp_path):
    """Starts servers in the test's folder."""
    with host.servers(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def server(host, tmp_path_factory):
    """One for the tests that leave it as it is."""
    with host.servers(tmp_path_factory.mktemp("served")) as start:
        yield start("--sweep-seconds", "0.2")


@pytest.fixture
def run(host, tmp_path):
    """Runs a command in the test's folder."""
    return lambda *argv: host.run(tmp_path, *argv)
