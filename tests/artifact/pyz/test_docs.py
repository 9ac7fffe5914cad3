"""The commands of the documentation, on the artifact.

What needs a real service manager or container engine is run with stand-ins for those programs.
"""

import base64
import hmac
import html
import json
import os
import re
import shutil

import pytest
import yaml
from PIL import Image

from cardbeat.commands import serve
from cardbeat.commands.options import SERVE_OPTIONS
from cardbeat.config import FREE
from cardbeat.heartbeat.alerts.message import signed_headers
from cardbeat.keys.store import new_webhook_secret
from cardbeat.keys.tiers import tiers_from
from tests.kit.artifact import ran, shell, starter
from tests.kit.client import ask
from tests.kit.documentation import (
    DOCS,
    FOLDER,
    README,
    block,
    blocks,
    example,
)
from tests.kit.lists import each
from tests.kit.support import free_port
from tests.service.test_import import ID, SIMPLE

AFTER_THE_TOUR = (
    "cards",
    "checks",
    "troubleshooting",
    "keys",
    "watching",
    "backup",
)
"""Pages whose commands run in this order, with the tour's keys, in the folder of its server."""
ON_A_HOST = ("README", "running", "backup")
"""Pages with commands for a service of the host."""
CARD_SIZE = (1200, 630)


def size_of(png):
    with Image.open(png) as image:
        return image.size


def path_with(*folders):
    return ":".join([*map(str, folders), os.environ["PATH"]])


@pytest.fixture
def tour(python, pyz, tmp_path):
    """Runs the documentation's commands in one shell, with free ports for its fixed ones."""
    ports = {"8080": free_port(), "9000": free_port()}
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").touch()

    def run(*commands):
        text = "\n".join(
            ("trap 'kill $(jobs -p) || true' EXIT", *commands)
        )
        for fixed, port in ports.items():
            text = text.replace(fixed, str(port))
        return shell(text, tmp_path, PATH=path_with(python.parent))

    activate, started = blocks("tour", "sh")[0].splitlines()
    assert activate == ". .venv/bin/activate"
    assert started.startswith("python cardbeat.pyz")
    with starter(python, pyz, tmp_path) as start:
        start(*started.split()[2:], port=ports["8080"])
        yield run


def cron_command():
    """What the crontab line runs after the job itself."""
    command = block("checks", "crontab").partition("&& ")[2].strip()
    return command.replace("http://127.0.0.1:8080/ping/ID", "$PING_URL")


def test_the_tour_ends_with_a_card_and_two_alerts(tour, tmp_path):
    *steps, end = blocks("tour", "sh")[1:]
    (tmp_path / "checks.toml").write_text(block("checks", "toml"))
    later = "".join(
        "".join(blocks(page, "sh")) for page in AFTER_THE_TOUR
    )
    # The example's webhook is of no receiver.
    test = 'checks test "db1: backup"'
    later = later.replace(test, f"{test} || true")
    # The wait lasts for ever, unless the commands ended what they started.
    printed = tour(*steps, cron_command(), end, later, "wait")
    caches = re.findall(r"^X-Cache: (\w+)", printed, re.MULTILINE)
    assert caches == ["MISS", "HIT"]
    for name in ("card.png", "blog.png"):
        assert size_of(tmp_path / name) == CARD_SIZE
    alerts = (tmp_path / "alerts.log").read_text()
    assert alerts.index('"check.overdue"') < alerts.index(
        '"check.recovered"'
    )
    for words in (
        '"name":"A job on this tour"',
        "200 image/png\n",
        "last_error: ",
        "created  db1: vacuum",
    ):
        assert words in printed
    assert re.search("^db1: backup +on_time +-", printed, re.MULTILINE)
    assert (tmp_path / "cardbeat-backup.db").stat().st_size > 0


def test_checks_of_healthchecks_are_imported_as_it_says(
    start, python, pyz, tmp_path
):
    server = start()
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    (tmp_path / "answer.json").write_text(
        json.dumps({"checks": [SIMPLE]})
    )
    create = "python cardbeat.pyz keys create --email you@example.com --json >key.json\n"
    read_id = 'import json; print(json.load(open("key.json"))["id"])'
    (script,) = blocks("checks", "shell-script")
    script = script.replace(
        "https://healthchecks.io/api/v3/checks/",
        f"file://{tmp_path}/answer.json",
    ).replace("key_ID", f"$(python -c '{read_id}')")
    variables = {
        "PATH": path_with(python.parent),
        "CHAT_WEBHOOK": "https://chat.example/hooks/abc",
    }
    printed = shell(create + script, tmp_path, **variables)
    assert re.search(
        "^imported +Filesystem Backup$", printed, re.MULTILINE
    )
    assert ask(server, "GET", f"/ping/{ID}").status == 200


def test_a_list_of_cards_is_drawn_as_it_says(run, tmp_path):
    line = block("cards", "json")
    (tmp_path / "cards.jsonl").write_text(line)
    assert run("cards", "cards.jsonl", "--output", "out").returncode == 0
    assert (
        size_of(tmp_path / "out" / json.loads(line)["output"])
        == CARD_SIZE
    )


@pytest.mark.quick
def test_the_tiers_shown_are_valid_and_frees_own(tmp_path):
    (tmp_path / "tiers.toml").write_text(block("keys", "toml"))
    tiers = tiers_from(tmp_path / "tiers.toml")
    assert tiers["free"] == FREE
    assert tiers["plus"].max_checks == 1000


@pytest.mark.quick
def test_a_signature_is_verified_as_it_says():
    secret = new_webhook_secret()
    headers = signed_headers("msg_1", 1772419567, b"{}", secret)
    (signed,) = re.findall("HMAC-SHA256 over `(.+?)`", DOCS["alerts"])
    signed = re.sub(
        "{(.+?)}",
        lambda found: {**headers, "body": "{}"}[found[1]],
        signed,
    )
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(
        hmac.digest(key, signed.encode(), "sha256")
    ).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


STAND_INS = {
    "sudo": 'exec "$@"',
    **dict.fromkeys(
        ("systemctl", "journalctl", "docker", "scp", "ssh", "apt"),
        'echo "${0##*/} $*" >> "$CALLS"',
    ),
}


@pytest.fixture
def host(python, pyz, tmp_path):
    """Runs commands for a host, with folders of the test for the host's."""
    (tmp_path / "bin").mkdir()
    for name, line in STAND_INS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "root").mkdir()
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    for name in ("cardbeat.service", "Caddyfile"):
        (tmp_path / name).write_text(example(name))
    variables = {
        "PATH": path_with(tmp_path / "bin", python.parent),
        "CALLS": str(tmp_path / "calls"),
    }

    def run(commands):
        commands = re.sub(
            r"/(opt|root|var/lib|etc)/", rf"{tmp_path}/\1/", commands
        )
        return shell(commands, tmp_path, **variables)

    return run


def test_a_host_is_run_upgraded_and_rolled_back_as_it_says(
    host, tmp_path
):
    printed = [
        host(code) for page in ON_A_HOST for code in blocks(page, "bash")
    ]
    _, issued, _, used, _, rolled_back, _, moved = printed
    assert issued.count("sk_") == 2
    for words in ("whsec_", "you@example.com", "sound"):
        assert words in used
    assert "problem" not in used
    for restored in (rolled_back, moved):
        assert "keys: 3\nchecks: 0\n" in restored
        assert "kept: " in restored
    artifact = tmp_path / "opt" / "cardbeat" / "cardbeat.pyz"
    assert artifact.stat().st_mode & 0o777 == 0o644
    calls = (tmp_path / "calls").read_text()
    assert "systemctl enable --now cardbeat\n" in calls
    stop = calls.index("systemctl stop cardbeat")
    assert stop < calls.index("systemctl start cardbeat")


def test_a_trial_becomes_a_service(host):
    """Its keys move along. The way in by `ssh` is only looked at."""
    for command in ("keys create", "backup trial.db"):
        host(f"python3 cardbeat.pyz {command} --data trial")
    host("install -D cardbeat.pyz /opt/cardbeat/cardbeat.pyz")
    printed = host(block("service", "bash"))
    assert "keys: 1\nchecks: 0\n" in printed
    assert "key_" in printed
    forward = "ssh -N -L 8080:127.0.0.1:8080 "
    assert block("service", "console").startswith(forward)


def unit_blocks():
    """The service's unit, and what a node adds to it."""
    return [example("cardbeat.service"), *blocks("nodes", "ini")]


def test_the_units_are_ones_that_systemd_takes(python, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    names = ("cardbeat.service", "cardbeat.service.d/override.conf")
    (tmp_path / "cardbeat.service.d").mkdir()
    for name, unit in zip(names, unit_blocks(), strict=True):
        (tmp_path / name).write_text(
            re.sub(r"=\S+/bin/python3?", f"={python}", unit)
        )
    verified = ran(
        analyze, "verify", "--man=no", tmp_path / "cardbeat.service"
    )
    assert verified.returncode == 0
    assert verified.stderr == ""


def config_from(monkeypatch, pairs):
    """The configuration that variables give, each of which must be known and valid."""
    variables = dict(pair.split("=", 1) for pair in pairs)
    assert variables
    known = each(SERVE_OPTIONS, "variable")
    assert {*variables} <= {*known, "CARDBEAT_DATABASE"}
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return serve.config_of(serve.parser().read([]))


@pytest.mark.quick
def test_every_variable_of_a_unit_is_one_of_the_program(monkeypatch):
    lines = re.findall(
        r"^Environment=(.+)$", "".join(unit_blocks()), re.MULTILINE
    )
    assert config_from(monkeypatch, " ".join(lines).split())


def of_docker_run():
    """The variables of the command that runs the image."""
    commands = "".join(blocks("running", "bash")).replace("\\\n", "")
    (run,) = re.findall(r"^docker run .+$", commands, re.MULTILINE)
    return re.findall(r" -e (\S+)", run)


def manifests():
    """Those of Kubernetes, by their kind, and the container of the pod."""
    read = yaml.safe_load_all(example("kubernetes.yaml"))
    found = {one["kind"]: one for one in read}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return found, container


@pytest.mark.quick
def test_every_variable_of_a_container_is_one_of_the_program(monkeypatch):
    compose = yaml.safe_load(example("compose.yaml"))
    variables = compose["services"]["cardbeat"]["environment"]
    (in_image,) = re.findall(
        r"^ENV (.+)$", example("Dockerfile"), re.MULTILINE
    )
    in_pod = [
        f"{one['name']}={one['value']}" for one in manifests()[1]["env"]
    ]
    in_compose = [f"{name}={value}" for name, value in variables.items()]
    for where in (of_docker_run(), in_compose, in_pod):
        config = config_from(monkeypatch, [*in_image.split(), *where])
        assert "--base-url" not in " ".join(serve.mistakes(config))
        assert config.trusted_proxies
    (subnet,) = compose["networks"]["default"]["ipam"]["config"]
    assert variables["CARDBEAT_TRUSTED_PROXY"] == subnet["subnet"]


@pytest.mark.quick
def test_a_pod_is_one_that_serves_from_its_volume(app):
    found, container = manifests()
    pod = found["Deployment"]["spec"]["template"]
    (volume,) = pod["spec"]["volumes"]
    claim = found["PersistentVolumeClaim"]["metadata"]["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim
    assert each(container["volumeMounts"], "mountPath") == ["/data"]
    assert (
        found["Service"]["spec"]["selector"] == pod["metadata"]["labels"]
    )
    for probe in ("readinessProbe", "livenessProbe"):
        assert (
            app("GET", container[probe]["httpGet"]["path"]).status == 200
        )


@pytest.mark.quick
def test_an_ingress_has_every_path_but_the_servers_numbers(app):
    (rule,) = manifests()[0]["Ingress"]["spec"]["rules"]
    exact = each(rule["http"]["paths"], "path")
    prefixes = [
        f"{one['path']}/"
        for one in rule["http"]["paths"]
        if one["pathType"] != "Exact"
    ]
    pages = "/ /dashboard /docs /docs/api /pages/shared/style.css".split()
    for path in (*app.json("GET", "/openapi.json")["paths"], *pages):
        is_public = path in exact or f"{path}/".startswith(
            tuple(prefixes)
        )
        assert is_public == (path != "/metrics"), path


def test_the_containers_health_check_tells_a_server_that_answers(
    start, python
):
    said = dict(
        re.findall(
            r"^(HEALTHCHECK CMD|CMD|VOLUME|ENV) (.+)$",
            example("Dockerfile"),
            re.MULTILINE,
        )
    )
    assert json.loads(said["CMD"]) == ["python", "/cardbeat.pyz"]
    assert f"CARDBEAT_DATA={said['VOLUME']}" in said["ENV"].split()
    server = start()
    words = json.loads(
        said["HEALTHCHECK CMD"].replace("8080", str(server.port))
    )
    assert ran(python, *words[1:]).returncode == 0
    server.stop()
    assert ran(python, *words[1:]).returncode == 1


def test_compose_takes_its_file():
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not here")
    file = FOLDER / "files" / "compose.yaml"
    done = ran("docker-compose", "-f", file, "config", "-q")
    assert done.returncode == 0
    assert done.stdout == ""


def test_the_commands_of_the_api_are_answered(start, tmp_path):
    server = start("--register-per-minute", "1000")
    page = ask(server, "GET", "/docs/api").body.decode()
    code = "".join(blocks("api", "sh"))
    code = code.replace("http://127.0.0.1:8080", server.url)
    found = re.findall(
        r'<pre class="code"><code>(.*?)</code>', page, re.DOTALL
    )
    assert html.unescape("".join(found)) == code
    shell(code, tmp_path)


def test_the_readme_says_how_large_the_artifact_is(pyz):
    (said,) = re.findall(r"one file of (\d+) MB", README)
    assert abs(int(said) - pyz.stat().st_size / 1e6) < 1
