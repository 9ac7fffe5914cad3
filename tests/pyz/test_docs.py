"""The commands of the documentation, on the built artifact and, where both can, on the installed package.

What needs a real service manager or container engine is run with stand-ins for those programs.
"""

import base64
import hmac
import html
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml
from PIL import Image

from cardbeat import cli
from cardbeat.commands import advice, serve
from cardbeat.commands.options import SERVE_OPTIONS, values_of
from cardbeat.heartbeat.outbox.alert import signed_headers
from cardbeat.keys.webhook_secrets import new_webhook_secret
from tests.artifact import clean_environment, free_port, starter
from tests.documentation import DOCS, README, block, blocks
from tests.http.test_import import ID, SIMPLE
from tests.pyz.proxies import answers, caddy, nginx

AFTER_THE_TOUR = ("cards", "checks", "troubleshooting", "keys", "watching", "backup")
"""Pages whose commands for a shell run in this order, with the tour's keys, in the folder of its server."""
ON_A_HOST = ("running", "backup")
"""Pages with commands for a service of the host."""


@pytest.fixture(params=["artifact", "installed"])
def program(request):
    """A Python, the file that it runs, and how the tour names the two together."""
    if request.param == "artifact":
        return request.getfixturevalue("python"), request.getfixturevalue("pyz"), "python cardbeat.pyz"
    installed = request.getfixturevalue("installed")
    return installed.with_name("python"), installed, "cardbeat"


@pytest.fixture
def tour(program, tmp_path):
    """Runs commands of the documentation in one shell, one after another, with free ports for its fixed ones."""
    python, file, command = program
    server, receiver = free_port(), free_port()
    shutil.copy(file, tmp_path / "cardbeat.pyz")
    environment = {**clean_environment(), "PATH": f"{python.parent}:{os.environ['PATH']}"}
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").touch()

    def adapt(text):
        text = text.replace("python cardbeat.pyz", command)
        return text.replace("8080", str(server)).replace("9000", str(receiver))

    def run(*commands):
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", adapt("\n".join(("trap 'kill $(jobs -p) || true' EXIT", *commands)))],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr
        return ran.stdout

    activate, started = blocks("tour", "sh")[0].splitlines()
    assert activate == ". .venv/bin/activate"
    first = started.split()
    assert first[:2] == ["python", "cardbeat.pyz"]
    with starter(python, file, tmp_path) as start:
        start(*first[2:], port=server)
        yield run


def cron_command():
    """What the crontab line runs after the job itself."""
    (command,) = {block(page, "crontab").partition("&& ")[2].strip() for page in ("README", "checks")}
    return command


def test_the_tour_ends_with_a_card_and_two_alerts(tour, tmp_path):
    *steps, end = blocks("tour", "sh")[1:]
    (tmp_path / "checks.toml").write_text(block("checks", "toml"))
    printed = tour(
        *steps,
        cron_command().replace("http://127.0.0.1:8080/ping/ID", "$PING_URL"),
        end,
        # The example's webhook is of no receiver.
        *(
            code.replace('checks test "db1: backup"', 'checks test "db1: backup" || true')
            for page in AFTER_THE_TOUR
            for code in blocks(page, "sh")
        ),
        # For ever, unless it ended what it started.
        "wait",
    )
    assert re.findall(r"^X-Cache: (\w+)", printed, re.MULTILINE) == ["MISS", "HIT"]
    for name in ("card.png", "blog.png"):
        with Image.open(tmp_path / name) as image:
            assert (image.format, image.size) == ("PNG", (1200, 630))
    alerts = (tmp_path / "alerts.log").read_text()
    assert alerts.index('"check.overdue"') < alerts.index('"check.recovered"')
    assert '"name":"A job on this tour"' in printed
    assert "200 image/png\n" in printed
    assert "not delivered: " in printed
    assert "2 created, 0 changed, 0 deleted, 0 unchanged" in printed
    assert re.search("^db1: backup +on time +never", printed, re.MULTILINE)
    assert (tmp_path / "cardbeat-backup.db").stat().st_size > 0
    assert "ok" in printed


def test_checks_of_healthchecks_are_imported_as_it_says(start, python, pyz, tmp_path):
    server = start()
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    (tmp_path / "answer.json").write_text(json.dumps({"checks": [SIMPLE]}))
    (script,) = blocks("checks", "shell-script")
    script = script.replace("https://healthchecks.io/api/v3/checks/", f"file://{tmp_path}/answer.json")
    create = "python cardbeat.pyz keys create --email you@example.com --json >key.json\n"
    key_id = '$(python -c \'import json; print(json.load(open("key.json"))["id"])\')'
    path = f"{python.parent}:{os.environ['PATH']}"
    environment = {**clean_environment(), "PATH": path, "CHAT_WEBHOOK": "https://chat.example/hooks/abc"}
    ran = subprocess.run(
        ["bash", "-euc", create + script.replace("key_ID", key_id)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    told = "Filesystem Backup, without its channels, tags, desc"
    assert ran.stdout.splitlines()[::2] == [f"would import {told}", f"imported {told}"]
    with urllib.request.urlopen(f"{server.url}/ping/{ID}") as answer:
        assert answer.status == 200


def test_a_list_of_cards_is_drawn_as_it_says(python, pyz, tmp_path):
    (tmp_path / "cards.jsonl").write_text(block("cards", "json"))
    subprocess.run([python, pyz, "cards", "cards.jsonl", "--output", "out"], cwd=tmp_path, check=True, timeout=60)
    with Image.open(tmp_path / "out" / json.loads(block("cards", "json"))["output"]) as image:
        assert image.size == (1200, 630)


@pytest.mark.quick
def test_the_options_are_those_of_the_program(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert blocks("options", "text") == [capsys.readouterr().out]


@pytest.mark.quick
def test_the_tiers_shown_are_valid_and_frees_own(tmp_path):
    from cardbeat.config import FREE
    from cardbeat.keys.tiers import tiers_from

    (tmp_path / "tiers.toml").write_text(block("keys", "toml"))
    tiers = tiers_from(tmp_path / "tiers.toml")
    assert tiers["free"] == FREE
    assert tiers["plus"].max_checks == 1000


@pytest.mark.quick
def test_a_signature_is_verified_as_it_says():
    secret = new_webhook_secret()
    headers = signed_headers("msg_1", 1772419567, b"{}", secret)
    (signed,) = re.findall("HMAC-SHA256 over `(.+?)`", DOCS["alerts"])
    for name, value in {**headers, "body": "{}"}.items():
        signed = signed.replace(f"{{{name}}}", value)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, signed.encode(), "sha256")).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"


STAND_IN = """#!/bin/sh
echo "${0##*/} $*" >> "$CALLS"
"""
SUDO = """#!/bin/sh
exec "$@"
"""


@pytest.fixture
def host(python, pyz, tmp_path):
    """Runs the documentation's commands for a host, with folders of the test for the host's; gives what they print."""
    stand_ins = tmp_path / "bin"
    stand_ins.mkdir()
    for name in ("sudo", "systemctl", "journalctl", "docker"):
        (stand_ins / name).write_text(SUDO if name == "sudo" else STAND_IN)
        (stand_ins / name).chmod(0o755)
    (tmp_path / "root").mkdir()
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    path = f"{stand_ins}:{python.parent}:{os.environ['PATH']}"
    environment = {**clean_environment(), "PATH": path, "CALLS": str(tmp_path / "calls")}

    def run(commands):
        commands = re.sub(r"/(opt|root|var/lib)/", rf"{tmp_path}/\1/", commands)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    return run


def test_a_host_is_run_upgraded_and_rolled_back_as_it_says(host, tmp_path):
    printed = [host(code) for page in ON_A_HOST for code in blocks(page, "bash")]
    _installed, used, _upgraded, rolled_back, _container, moved = printed
    assert "whsec_" in used
    assert "you@example.com" in used
    assert "sound" in used
    assert "problem" not in used
    for restored in (rolled_back, moved):
        assert "keys 1, checks 0" in restored
        assert "now start the server" in restored
    assert (tmp_path / "opt" / "cardbeat" / "cardbeat.pyz").stat().st_mode & 0o777 == 0o644
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "systemctl enable --now cardbeat" in calls
    assert calls.index("systemctl stop cardbeat") < calls.index("systemctl start cardbeat")


def test_the_units_are_ones_that_systemd_takes(python, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not here")
    names = ("cardbeat.service", "cardbeat.socket", "cardbeat.service.d/override.conf")
    (tmp_path / "cardbeat.service.d").mkdir()
    for name, unit in zip(names, [*blocks("running", "ini"), *blocks("nodes", "ini")], strict=True):
        (tmp_path / name).write_text(re.sub(r"=\S+/bin/python3?", f"={python}", unit))
    command = [analyze, "verify", "--man=no", *sorted(map(str, tmp_path.glob("cardbeat.*[et]")))]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def options_from(monkeypatch, *pairs):
    """The options that variables give, each of which must be known and valid."""
    variables = dict(pair.split("=", 1) for pair in pairs)
    assert variables
    assert list(advice.unknown_variables(variables)) == []
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return values_of(SERVE_OPTIONS, serve.parser().parse_args([]))


@pytest.mark.quick
def test_every_variable_is_one_of_the_program(monkeypatch, tmp_path):
    (dockerfile,) = blocks("running", "dockerfile")
    (compose,) = blocks("running", "yaml")
    (in_image,) = re.findall(r"^ENV (.+)$", dockerfile, re.MULTILINE)
    host_commands = "".join(blocks("running", "bash")).replace("\\\n", "").splitlines()
    (run,) = [line for line in host_commands if line.startswith("docker run")]
    service = yaml.safe_load(compose)["services"]["cardbeat"]
    words = shlex.split(run)
    in_run = [value for name, value in itertools.pairwise(words) if name == "-e"]
    in_compose = [f"{name}={value}" for name, value in service["environment"].items()]
    units = "".join([*blocks("running", "ini"), *blocks("nodes", "ini")])
    in_unit, in_node = re.findall(r"^Environment=(.+)$", units, re.MULTILINE)
    for where in (in_run, in_compose):
        with monkeypatch.context() as patch:
            options = options_from(patch, *in_image.split(), *where)
            assert list(advice.unreachable_base_url(options["host"], options["base_url"])) == []
            assert options["trusted_proxy"]
    (tmp_path / "database-url").write_text("postgresql:///cardbeat")
    options_from(monkeypatch, *in_unit.split(), *in_node.replace("%d", str(tmp_path)).split())
    (subnet,) = yaml.safe_load(compose)["networks"]["default"]["ipam"]["config"]
    assert service["environment"]["CARDBEAT_TRUSTED_PROXY"] == subnet["subnet"]


def test_the_containers_health_check_tells_a_server_that_answers(start, python):
    (text,) = re.findall(r"^HEALTHCHECK CMD (.+)$", block("running", "dockerfile"), re.MULTILINE)
    command = json.loads(text)
    server = start()
    assert command[0] == "python"
    healthy = [python, *(word.replace("8080", str(server.port)) for word in command[1:])]
    assert subprocess.run(healthy, check=False).returncode == 0
    server.process.terminate()
    server.process.wait()
    assert subprocess.run(healthy, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_the_commands_of_the_api_are_answered(start, tmp_path):
    server = start("--register-per-minute", "1000")
    with urllib.request.urlopen(f"{server.url}/docs/api") as answer:
        page = answer.read().decode()
    found = [html.unescape(code) for code in re.findall(r'<pre class="code"><code>(.*?)</code>', page, re.DOTALL)]
    keys, *commands = [code for code in found if "curl " in code]
    assert len(commands) > 25
    for command in commands:
        assert f"{server.url}/" in command
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{keys}\n{command}"],
            cwd=tmp_path,
            env=clean_environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, command + ran.stderr


@pytest.mark.parametrize(("proxy", "language"), [(nginx, "nginx"), (caddy, "caddyfile")])
def test_a_proxy_tells_the_server_who_its_client_is(start, tmp_path, proxy, language):
    server = start("--trusted-proxy", "127.0.0.1", "--base-url", "https://cards.example.com")
    with proxy(block("running", language), tmp_path, {"127.0.0.1:8080": f"127.0.0.1:{server.port}"}) as url:
        assert answers(f"{url}/healthz")
        # A job may post its log with its ping, and no limit of the proxy's own must keep that from the server.
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{url}/ping/{'0' * 32}/fail", data=bytes(3_000_000), timeout=30)
        assert "`--data-binary @-` sends what a pipe holds,\nand `-T -` is answered 501." in DOCS["running"]
        given = ["curl", "-sS", "-X", "POST", "-w", "%{http_code}", "-o", "/dev/null", f"{url}/ping/{'0' * 32}"]
        for option, answered in (("--data-binary @-", b"404"), ("-T -", b"501")):
            assert subprocess.check_output([*given, *option.split()], input=b"log") == answered
    # The proxy's own client has the same address: that it was told shows in a log without complaint.
    assert "forwarded" not in server.log.read_text().lower()


def test_the_readme_says_how_large_the_artifact_is(pyz):
    (said,) = re.findall(r"one file of (\d+) MB", README)
    assert abs(int(said) - pyz.stat().st_size / 1e6) < 1


def test_pipx_and_uvx_are_given_the_wheel_that_is_built(wheel):
    commands = [shlex.split(line) for line in block("running", "console", "pipx").splitlines()]
    assert commands == [
        ["pipx", "install", f"./dist/{wheel.name}"],
        ["uvx", "--from", f"./dist/{wheel.name}", "cardbeat"],
    ]
