"""Fixtures for every kind of test."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cardbeat.config import Config
from tests.kit.support import App, FakeClock, service_of

pytest_plugins = ["tests.kit.artifact", "tests.kit.postgresql"]

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")
"""The same examples each time; `--hypothesis-profile default` draws new ones."""

SLOW_FOLDERS = ("artifact", "data/crash", "model")


def pytest_configure(config):
    """Without a path and without `-m`, pytest runs the quick suite."""
    if (
        config.args_source is not pytest.Config.ArgsSource.ARGS
        and not config.option.markexpr
    ):
        config.option.markexpr = "not slow"


def pytest_collection_modifyitems(items):
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).as_posix()
        in_slow_folder = folder.startswith(SLOW_FOLDERS)
        if item.get_closest_marker("postgresql") or (
            in_slow_folder and not item.get_closest_marker("quick")
        ):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def usual_umask():
    """That of most hosts, where what a program makes is for all to read unless it says otherwise."""
    previous = os.umask(0o022)
    yield
    os.umask(previous)


@pytest.fixture
def config(tmp_path, database_url):
    return Config(
        data=tmp_path / "data",
        database=database_url,
        port=0,
        base_url="https://cards.example",
        register_per_minute=1000,
    )


@pytest.fixture
def app(config, clock, put_new_file):
    put_new_file(config.data)
    service = service_of(config, clock)
    if service.database.fence is not None:
        # No other node sweeps.
        service.database.lease().take()
    yield App(service, clock)
    service.close()
