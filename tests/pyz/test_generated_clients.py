"""Clients that two generators make of `/openapi.json`, used against the running artifact."""

import importlib
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

TYPESCRIPT = Path(__file__).with_name("generated_client.ts")
PACKAGES = ("@hey-api/openapi-ts@0.95.0", "typescript@5.9.3")
TSC_OPTIONS = (
    "--target",
    "es2022",
    "--module",
    "commonjs",
    "--moduleResolution",
    "node10",
    "--lib",
    "es2022,dom,dom.iterable",
)
SETTINGS = """\
project_name_override: generated
content_type_overrides: {image/png: application/octet-stream}
post_hooks: []
"""
"""What the documentation says of PNGs; and no linters run over what is generated."""


def run(*command, cwd):
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def server(start):
    return start()


@pytest.fixture
def generated(server, tmp_path, monkeypatch):
    """The modules of the client that openapi-python-client makes, by their names in it."""
    (tmp_path / "settings.yaml").write_text(SETTINGS)
    generate = ("-m", "openapi_python_client", "generate", "--url", f"{server.url}/openapi.json")
    options = ("--config", "settings.yaml", "--output-path", "generated", "--meta", "none", "--fail-on-warning")
    run(sys.executable, *generate, *options, cwd=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name: importlib.import_module(f"generated.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "generated"]:
        del sys.modules[name]


@pytest.fixture
def drive(server, tmp_path):
    """Runs the program of `generated_client.ts` on the client that @hey-api/openapi-ts makes; gives what it prints."""
    shutil.copy(TYPESCRIPT, tmp_path)
    (tmp_path / "package.json").write_text("{}")
    run("npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefer-offline", *PACKAGES, cwd=tmp_path)
    commands = tmp_path / "node_modules" / ".bin"
    run(commands / "openapi-ts", "-i", f"{server.url}/openapi.json", "-o", "client", cwd=tmp_path)
    run(commands / "tsc", "--strict", *TSC_OPTIONS, "--outDir", "out", TYPESCRIPT.name, cwd=tmp_path)
    return lambda: json.loads(run("node", "out/generated_client.js", server.url, cwd=tmp_path))


def size_of(png):
    with Image.open(io.BytesIO(png)) as image:
        return image.format, image.size


def test_the_python_client_has_one_class_for_errors_and_registers_creates_changes_lists_and_draws(server, generated):
    models, client_module = generated("models"), generated("client")
    anybody = client_module.Client(base_url=server.url)
    with anybody:
        register = generated("api.keys.register").sync
        key = register(client=anybody, body=models.Registration(email="you@example.com"))
        cards_key = register(client=anybody)
        owner = client_module.AuthenticatedClient(base_url=server.url, token=key.key)
        with owner:
            new = models.NewCheck(name="Nightly backup", period_seconds=86400, grace_seconds=900)
            check = generated("api.checks.create_check").sync(client=owner, body=new).check
            update = generated("api.checks.update_check").sync_detailed
            changes = models.CheckChanges(grace_seconds=1800)
            answers = [update(check.id, client=owner, body=changes, if_match='"1"') for _ in range(2)]
            (listed,) = generated("api.checks.list_checks").sync(client=owner, limit=10).checks
        draw = generated("api.cards.read_card").sync
        card = draw(client=anybody, key=cards_key.key, title="Designing reliable jobs")
        refused = draw(client=anybody, key="sk_unknown", title="Designing reliable jobs")
    assert answers[0].parsed.check.grace_seconds == 1800
    assert (answers[1].status_code, answers[1].parsed.code) == (412, "precondition_failed")
    assert (listed.name, listed.version, listed.delivery) == ("Nightly backup", 2, None)
    assert size_of(card.payload.read()) == ("PNG", (1200, 630))
    assert isinstance(refused, models.Error)
    assert refused.code == "key_unknown"
    assert [name for name in models.__all__ if "Error" in name] == ["Error"]
    assert len(models.__all__) < 40


def test_the_typescript_client_registers_creates_changes_lists_and_draws(drive):
    got = drive()
    assert size_of(bytes(got.pop("card"))) == ("PNG", (1200, 630))
    assert got == {
        "scopes": ["checks", "cards"],
        "changed": 1800,
        "conflict": [412, "precondition_failed"],
        "listed": [["Nightly backup", 2]],
        "refused": [401, "key_unknown"],
    }
