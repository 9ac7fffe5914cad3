"""Every command of the README, in its order, on the built artifact."""

import os
import re
import shutil
import subprocess

import pytest
from PIL import Image

from cardbeat import cli
from tests.artifact import ROOT, clean_environment, free_port

README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def tour(start, python, pyz, tmp_path):
    """Runs commands of the README in one shell after another, sharing variables, with free ports for its fixed ones."""
    server, receiver = free_port(), free_port()
    shutil.copy(pyz, tmp_path / "cardbeat.pyz")
    environment = {**clean_environment(), "PATH": f"{python.parent}:{os.environ['PATH']}"}

    def adapt(text):
        return text.replace("8080", str(server)).replace("9000", str(receiver))

    def run(*commands):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", adapt("\n".join(("trap 'kill $(jobs -p)' EXIT", *commands)))],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout

    command = next(block for block in blocks("sh") if "--sweep-seconds" in block).split()
    assert command[:2] == ["python", "cardbeat.pyz"]
    start(*command[2:], port=server)
    return run


def test_the_tour_ends_with_a_card_and_two_alerts(tour, tmp_path):
    steps = blocks("sh")[3:]
    crontab = blocks("crontab")[0].split(maxsplit=5)[5]
    (cron_command,) = [part.strip() for part in crontab.split("&&")[1:]]
    after_alerts = next(number for number, step in enumerate(steps) if "check.recovered" in step) + 1
    printed = tour(
        *steps[:after_alerts], cron_command.replace("http://127.0.0.1:8080/ping/ID", "$PING_URL"), *steps[after_alerts:]
    )
    assert re.findall(r"^X-Cache: (\w+)", printed, re.MULTILINE) == ["MISS", "HIT"]
    for name in ("card.png", "blog.png"):
        with Image.open(tmp_path / name) as image:
            assert (image.format, image.size) == ("PNG", (1200, 630))
    alerts = (tmp_path / "alerts.log").read_text()
    assert alerts.index('"check.overdue"') < alerts.index('"check.recovered"')
    assert '"name":"Nightly backup"' in printed
    assert (tmp_path / "cardbeat-backup.db").stat().st_size > 0
    assert "ok" in printed


def test_the_options_are_those_of_the_program(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert blocks("text") == [capsys.readouterr().out]


def test_the_tiers_shown_are_valid_and_frees_own(tmp_path):
    from cardbeat.config import FREE
    from cardbeat.keys.tiers import load_tiers

    (tmp_path / "tiers.toml").write_text(blocks("toml")[0])
    tiers = load_tiers(tmp_path / "tiers.toml")
    assert tiers["free"] == FREE
    assert tiers["plus"].max_checks == 1000
