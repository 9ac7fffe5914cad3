"""A client that a generator makes of `/openapi.json`, used against the running artifact."""

import importlib
import io
import sys

import pytest
from PIL import Image

from tests.kit.artifact import ran

SETTINGS = """\
project_name_override: generated
content_type_overrides: {image/png: application/octet-stream}
post_hooks: []
"""
"""What the documentation says of PNGs; and no linters run over what is generated."""


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    """The modules of the client that openapi-python-client makes, by their names in it."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "settings.yaml").write_text(SETTINGS)
    options = "--config settings.yaml --output-path generated --meta none --fail-on-warning"
    url = f"{server.url}/openapi.json"
    generate = ("-m", "openapi_python_client", "generate", "--url", url)
    done = ran(
        sys.executable, *generate, *options.split(), cwd=folder, env=None
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield lambda name: importlib.import_module(f"generated.{name}")


def size_of(png):
    with Image.open(io.BytesIO(png)) as image:
        return image.format, image.size


@pytest.fixture
def anybody(server, generated):
    with generated("client").Client(base_url=server.url) as client:
        yield client


def test_the_python_client_registers_creates_changes_and_lists(
    server, generated, anybody
):
    models = generated("models")
    body = models.Registration(email="you@example.com")
    key = generated("api.keys.register").sync(client=anybody, body=body)
    with generated("client").AuthenticatedClient(
        base_url=server.url, token=key.key
    ) as owner:
        new = models.NewCheck(
            name="Nightly backup", period_seconds=86400, grace_seconds=900
        )
        check = (
            generated("api.checks.create_check")
            .sync(client=owner, body=new)
            .check
        )
        update = generated("api.checks.update_check").sync_detailed
        changes = models.CheckChanges(grace_seconds=1800)
        changed = update(
            check.id, client=owner, body=changes, if_match='"1"'
        )
        assert changed.parsed.check.grace_seconds == 1800
        refused = update(
            check.id, client=owner, body=changes, if_match='"1"'
        )
        assert refused.status_code == 412
        assert refused.parsed.code == "precondition_failed"
        (listed,) = (
            generated("api.checks.list_checks")
            .sync(client=owner, limit=10)
            .checks
        )
    assert listed.name == "Nightly backup"
    assert listed.version == 2
    assert listed.delivery is None


def test_the_python_client_draws_and_has_one_class_for_errors(
    generated, anybody
):
    models = generated("models")
    key = generated("api.keys.register").sync(client=anybody)
    draw = generated("api.cards.read_card").sync
    card = draw(
        client=anybody, key=key.key, title="Designing reliable jobs"
    )
    assert size_of(card.payload.read()) == ("PNG", (1200, 630))
    refused = draw(
        client=anybody, key="sk_unknown", title="Designing reliable jobs"
    )
    assert isinstance(refused, models.Error)
    assert refused.code == "key_unknown"
    assert [name for name in models.__all__ if "Error" in name] == [
        "Error"
    ]
    assert len(models.__all__) < 40
