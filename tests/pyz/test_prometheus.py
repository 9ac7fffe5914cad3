"""The documentation's configuration and dashboard, with a real Prometheus that scrapes the running artifact."""

import contextlib
import itertools
import json
import subprocess
import urllib.parse
import urllib.request

import pytest

from tests.artifact import free_port
from tests.documentation import FOLDER, blocks
from tests.support import GOOD_CHECK, wait_until

DASHBOARD = json.loads((FOLDER / "files" / "grafana.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]


def ask(url, body=None, key=None, method=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=10) as answer:
        content = answer.read()
        return json.loads(content) if answer.headers["Content-Type"] == "application/json" else content


@pytest.fixture
def server(start):
    return start("--sweep-seconds", "0.2", "--allow-private-webhooks", "--quiet-health")


@pytest.fixture
def key(server):
    """A checks key whose checks are in every state, on a server that has done all it does."""
    key = ask(f"{server.url}/register", {"email": "you@example.com"})["key"]
    nobody = f"http://127.0.0.1:{free_port()}/"
    for name, period, url in (("pinged", 3600, None), ("new", 3600, None), ("late", 1, nobody)):
        settings = {**GOOD_CHECK, "name": name, "period_seconds": period, "grace_seconds": 0, "webhook_url": url}
        check = ask(f"{server.url}/checks", settings, key)["check"]
        if name == "pinged":
            ask(check["ping_url"])
    cards_key = ask(f"{server.url}/register", method="POST")["key"]
    ask(f"{server.url}/og?title=a&key={cards_key}")
    return key


@pytest.fixture
def query(server, key, tmp_path):
    """Asks a Prometheus that is set up as the documentation says, but scrapes each second.

    It asks the server by two names, as if it were two nodes with one database.
    """
    (text,) = blocks("watching", "yaml")
    reader = ask(f"{server.url}/key/read-only", key=key, method="POST")["key"]
    (tmp_path / "cardbeat-read-only.key").write_text(f"{reader}\n")
    nodes = f'"127.0.0.1:{server.port}", "localhost:{server.port}"'
    config = text.replace("/etc/prometheus", str(tmp_path)).replace('"127.0.0.1:8080"', nodes)
    (tmp_path / "prometheus.yml").write_text(f"global: {{scrape_interval: 1s}}\n{config}")
    url = f"127.0.0.1:{free_port()}"
    command = ["prometheus", "--config.file=prometheus.yml", f"--web.listen-address={url}", "--storage.tsdb.path=tsdb"]
    with (tmp_path / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stderr=log)

    def query(expression):
        assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
        expression = expression.replace("$__rate_interval", "10s")
        with contextlib.suppress(ConnectionError, urllib.error.URLError):
            found = ask(f"http://{url}/api/v1/query?query={urllib.parse.quote(expression)}")
            return found["data"]["result"]
        return []

    yield query
    process.kill()
    process.wait()


def values(result, label):
    return {sample["metric"].get(label): float(sample["value"][1]) for sample in result}


def test_every_query_of_the_dashboard_has_an_answer(server, query):
    wait_until(lambda: values(query("cardbeat_check_delivery_ok"), "name") == {"late": 0})
    # Of a rate there are two scrapes at the least.
    for expression in QUERIES:
        wait_until(lambda expression=expression: query(expression))
    assert {query(expression)[0]["value"][1] for expression in ("count(up)", "sum(up)")} == {"4"}
    assert values(query("cardbeat_check_up"), "name") == {"pinged": 1, "new": 1, "late": 0}
    assert set(values(query("cardbeat_check_last_ping_timestamp_seconds"), "name")) == {"pinged"}
    assert values(query("up"), "job") == {"cardbeat": 1, "cardbeat-checks": 1}
    counts = {panel["title"]: query(panel["targets"][0]["expr"])[0]["value"][1] for panel in PANELS[:4]}
    assert list(counts.values()) == ["3", "1", "2", "1"], counts
    assert [len(query(one)) for one in QUERIES if "by (name, id)" in one] == [1, 1, 1, 1, 3, 1, 3, 1, 3]
    assert [values(query(one), "status") for one in QUERIES if "cardbeat_checks" in one] == [
        {None: 1},
        {"on_time": 2, "overdue": 1},
    ]
    assert "metrics" not in server.log.read_text()


def test_the_dashboards_panels_overlap_nowhere_and_name_their_data_source():
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x, y in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        )
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]} == {"${datasource}"}
