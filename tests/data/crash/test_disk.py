"""A disk that fails, is full or loses its power: a ping is acknowledged only when it is on disk, and all heals."""

import shutil

import pytest

from cardbeat.database.sqlite.copies import require_sound
from cardbeat.database.sqlite.file import FILE_NAME
from tests.data.crash.client import Busy, go_on, require_kept, stop
from tests.data.crash.conftest import SEEDS
from tests.kit.client import ask, checks_key
from tests.kit.lists import each, times
from tests.kit.support import wait_until

CLIENTS = 4


@pytest.fixture
def busy(start, tmp_path):
    """Starts a server on a data folder, and its clients."""

    def begin(data):
        server = start("--data", str(data))
        key = checks_key(server)
        clients = times(CLIENTS, Busy, server, key)
        go_on(clients)
        return server, clients

    return begin


@pytest.fixture(params=["syncs", "quota", "full"])
def trouble(request, faults, tmp_path):
    """A data folder, and what lets each write to its disk fail for the time of a block."""
    data = tmp_path / "data"
    if request.param == "syncs":
        return data, faults.failing_syncs
    if request.param == "quota":
        # Of quotas neither SQLite nor the system tells.
        return data, lambda: faults.used_up_quota(data)
    disk = request.getfixturevalue("disk")
    return disk.folder / "data", disk.filled


def test_nothing_is_acknowledged_that_is_not_on_disk_and_all_heals_by_itself(
    trouble, start, busy
):
    data, begin = trouble
    server, clients = busy(data)
    card = f"/og?title=full&key={ask(server, 'POST', '/register').json['key']}"

    def is_refused(fill):
        if fill:
            # A checkpoint may have made room again, until the pings or the ballast take that too.
            fill()
        return ask(server, "GET", "/healthz").status == 503

    with begin() as fill:
        wait_until(lambda: is_refused(fill), 120)
        go_on(clients, 503, 5)
        drawn = ask(server, "GET", card)
        assert drawn.status == 200
        assert drawn.body[:4] == b"\x89PNG"
    go_on(clients)
    assert ask(server, "GET", "/healthz").status == 200
    wait_until(
        lambda: ask(server, "GET", card).headers["X-Cache"] == "HIT"
    )
    stop(clients, 200, 503)
    require_kept(clients, server)
    server.kill()
    require_sound(data / FILE_NAME)
    require_kept(clients, start("--data", str(data)))


def test_no_acknowledged_ping_is_lost_by_a_disk_that_fails_at_random(
    start, busy, faults, tmp_path
):
    data = tmp_path / "data"
    for seed in SEEDS:
        server, clients = busy(data)
        with faults.failing_disk(data, seed, every=1 + 7 * (seed % 5)):
            before = sum(sum(client.pings.values()) for client in clients)
            wait_until(
                lambda: (
                    sum(sum(client.pings.values()) for client in clients)
                    > before + 40
                )
            )
        go_on(clients)
        wait_until(lambda: ask(server, "GET", "/healthz").status == 200)
        if seed % 2:
            server.kill()
        stop(clients, 200, 503)
        if not seed % 2:
            server.stop()
        require_sound(data / FILE_NAME)
        again = start("--data", str(data))
        for client in clients:
            # A commit that failed late may be there too, and one whose answer was cut off.
            assert (
                client.stored(again)["ping_count"]
                <= sum(client.pings.values()) + 1
            )
        again.stop()


def test_a_power_cut_loses_nothing_acknowledged(
    start, busy, faults, monkeypatch, tmp_path
):
    start("--data", "data").stop()
    faults.synced.mkdir()
    synced = faults.synced / FILE_NAME
    shutil.copy(tmp_path / "data" / FILE_NAME, synced)
    with monkeypatch.context() as patch:
        patch.setenv("SYNCED_FOLDER", str(faults.synced))
        server, clients = busy("data")
    created = synced.stat().st_mtime_ns
    # The log has been written into the database at least once.
    wait_until(lambda: synced.stat().st_mtime_ns > created, 60)
    go_on(clients)
    server.kill()
    for client in clients:
        client.join()
    require_sound(synced)
    again = start("--data", str(faults.synced))
    for client in clients:
        # The cut may have taken the answer to one more ping.
        assert client.stored(again)["ping_count"] - client.pings[200] in (
            0,
            1,
        )


def test_a_card_is_whole_or_not_stored(start, faults, tmp_path):
    data = tmp_path / "data"
    server = start("--data", str(data))
    key = ask(server, "POST", "/register").json["key"]
    for seed in SEEDS:
        urls = [
            f"/og?title={seed}-{number}&key={key}" for number in range(6)
        ]
        with faults.failing_disk(data, seed, every=1 + seed % 4):
            drawn = {
                url: times(2, ask, server, "GET", url) for url in urls
            }
        for url, answers in drawn.items():
            first, again = (
                ask(server, "GET", url),
                ask(server, "GET", url),
            )
            assert first.status == 200
            assert again.headers["X-Cache"] == "HIT"
            assert set(each(answers, "status")) <= {200, 503}
            assert {
                answer.body
                for answer in (*answers, first, again)
                if answer.status == 200
            } == {first.body}
