"""Fixtures for every kind of test."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cardbeat.config import Config
from tests.kit.support import App, FakeClock, service_of

HERE = Path(__file__).parent.as_posix()
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
ONLY_SLOW = (
    "artifact/browser",
    "artifact/hosts",
    "artifact/sites",
    "data/crash",
    "model",
)
"""Those without a test of the quick suite, which then imports nothing of them."""


def pytest_configure(config):
    """Without a path and without `-m`, pytest runs the quick suite."""
    if (
        config.args_source is not pytest.Config.ArgsSource.ARGS
        and not config.option.markexpr
    ):
        config.option.markexpr = "not slow"


def is_in(path, folders):
    """Whether a path is one of these folders of tests or in one."""
    return path.as_posix().startswith(
        tuple(f"{HERE}/{one}" for one in folders)
    )


def pytest_ignore_collect(collection_path, config):
    if config.option.markexpr == "not slow":
        return is_in(collection_path, ONLY_SLOW) or None
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        in_slow_folder = is_in(item.path, SLOW_FOLDERS)
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
        service.database.fence.take()
    yield App(service, clock)
    service.close()
