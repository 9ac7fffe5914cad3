"""The documentation's configuration and dashboard, with a real Prometheus."""

import json
import subprocess
import urllib.parse
from types import SimpleNamespace

import pytest

from tests.kit.client import ask, cards_key, checks_key, new_check
from tests.kit.documentation import FOLDER, blocks
from tests.kit.lists import each
from tests.kit.support import free_port, wait_until

DASHBOARD = json.loads((FOLDER / "files" / "grafana.json").read_text())
PANELS = [
    panel for panel in DASHBOARD["panels"] if panel["type"] != "row"
]
TARGETS = [target for panel in PANELS for target in panel["targets"]]
QUERIES = each(TARGETS, "expr")


@pytest.fixture
def server(start):
    """A server that has done all it does."""
    server = start(
        "--sweep-seconds",
        "0.2",
        "--allow-private-webhooks",
        "--quiet-health",
    )
    ask(server, "GET", f"/og?title=a&key={cards_key(server)}")
    return server


@pytest.fixture
def key(server):
    """A checks key whose checks are in every state."""
    key = checks_key(server)
    pinged = new_check(server, key, name="pinged")
    new_check(server, key, name="new")
    nowhere = f"http://127.0.0.1:{free_port()}/"
    new_check(
        server, key, name="late", period_seconds=1, webhook_url=nowhere
    )
    ask(server, "GET", f"/ping/{pinged['id']}")
    return key


@pytest.fixture
def prometheus(server, key, tmp_path):
    """One that is set up as the documentation says, but scrapes each second.

    It asks the server by two names, as if it were two nodes with one database.
    """
    (text,) = blocks("watching", "yaml")
    reader = ask(server, "POST", "/key/read-only", key=key).json["key"]
    (tmp_path / "cardbeat-read-only.key").write_text(f"{reader}\n")
    nodes = f'"127.0.0.1:{server.port}", "localhost:{server.port}"'
    config = text.replace("/etc/prometheus", str(tmp_path)).replace(
        '"127.0.0.1:8080"', nodes
    )
    (tmp_path / "prometheus.yml").write_text(
        f"global: {{scrape_interval: 1s}}\n{config}"
    )
    port = free_port()
    options = (
        f"--web.listen-address=127.0.0.1:{port}",
        "--storage.tsdb.path=tsdb",
    )
    command = ["prometheus", "--config.file=prometheus.yml", *options]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    yield SimpleNamespace(port=port)
    process.kill()
    process.wait()


@pytest.fixture
def values(prometheus):
    """The values of an expression by a label; none before it listens."""

    def ask_for(expression, label="name"):
        quoted = urllib.parse.quote(
            expression.replace("$__rate_interval", "10s")
        )
        try:
            answer = ask(
                prometheus, "GET", f"/api/v1/query?query={quoted}"
            )
        except ConnectionError:
            return {}
        result = (
            answer.json["data"]["result"] if answer.status == 200 else []
        )
        return {
            sample["metric"].get(label): float(sample["value"][1])
            for sample in result
        }

    return ask_for


def test_every_query_of_the_dashboard_has_an_answer(server, values):
    wait_until(
        lambda: values("cardbeat_check_delivery_ok") == {"late": 0}
    )
    # Of a rate there are two scrapes at the least.
    for expression in QUERIES:
        wait_until(lambda expression=expression: values(expression))
    # On a busy machine a scrape may take longer than a second: it has failed.
    wait_until(lambda: are_shown(values))
    assert "metrics" not in server.log.read_text()


def are_shown(values):
    """Whether each panel shows what the server and its checks are like."""
    shown = (
        values("sum(up)", None),
        values("up", "job"),
        values("cardbeat_check_up"),
        [*values("cardbeat_check_last_ping_timestamp_seconds")],
        [values(first_query(panel), None) for panel in PANELS[:4]],
        [len(values(one)) for one in QUERIES if "by (name, id)" in one],
        [
            values(one, "status")
            for one in QUERIES
            if "cardbeat_checks" in one
        ],
    )
    return shown == (
        {None: 4},
        {"cardbeat": 1, "cardbeat-checks": 1},
        {"pinged": 1, "new": 1, "late": 0},
        ["pinged"],
        [{None: 3}, {None: 1}, {None: 2}, {None: 1}],
        [1, 1, 1, 1, 3, 1, 3, 1, 3],
        [{None: 1}, {"on_time": 2, "overdue": 1}],
    )


def first_query(panel):
    return panel["targets"][0]["expr"]


def test_the_dashboards_panels_name_their_data_source_and_are_one():
    numbers = set(each(DASHBOARD["panels"], "id"))
    assert len(numbers) == len(DASHBOARD["panels"])
    assert {target["datasource"]["uid"] for target in TARGETS} == {
        "${datasource}"
    }
