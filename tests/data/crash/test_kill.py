"""`kill -9` in the middle of work: what was answered is there after the restart."""

from cardbeat.database.sqlite.copies import require_sound
from cardbeat.database.sqlite.file import FILE_NAME
from tests.data.crash.cluster import Node
from tests.data.crash.load import File, Load

CLIENTS, KILLS = 8, 6


def test_what_was_answered_survives_kills_and_each_outage_is_told_once(
    python, pyz, tmp_path
):
    node = Node(
        tmp_path / "node", (python, pyz), "", "--sweep-seconds", "0.2"
    )
    data = node.folder / "data"
    node.start()
    try:
        with Load([node], CLIENTS) as load:
            for number in range(KILLS):
                # Some of the kills are in the middle of an alert.
                load.wait_for_outages(1 + number % 2)
                node.kill()
                require_sound(data / FILE_NAME)
                node.start()
                load.wait()
            load.settle(File(data), "main")
            assert load.missing(File(data), "main") == []
            assert load.totals()["recoveries"] > 0
    finally:
        node.kill()
