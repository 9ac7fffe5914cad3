"""What a read-only key sees and may do, and when it ends."""

import json
import re

import pytest

from tests.kit.lists import each
from tests.kit.postgresql import BOTH_ENGINES
from tests.kit.support import GOOD_CHECK
from tests.service.test_every_endpoint import READS

pytestmark = BOTH_ENGINES

SECRET_URL = "https://hooks.example:8443/services/T0/B0/token?also=secret"


@pytest.fixture
def check(app, key):
    body = {**GOOD_CHECK, "webhook_url": SECRET_URL}
    return app.json("POST", "/checks", body, key=key)["check"]


@pytest.fixture
def reader(app, key):
    return reader_of(app, key)


def reader_of(app, key):
    return app.json("POST", "/key/read-only", key=key)["key"]


def checks_of(app, key, count):
    return [
        app.json("POST", "/checks", GOOD_CHECK, key=key)["check"]["id"]
        for _ in range(count)
    ]


def change(app, sql, *values):
    app.service.database.write(
        lambda it: it.execute(sql, values).rowcount
    )


def test_a_checks_key_says_whether_it_has_one_which_names_no_address(
    app, key
):
    assert app.json("GET", "/key", key=key)["read_only_prefix"] is None
    answer = app("POST", "/key/read-only", key=key)
    issued = json.loads(answer.body)
    assert answer.status == 201
    assert list(issued) == ["key", "scope"]
    assert issued["scope"] == "read"
    assert re.fullmatch("sk_[A-Za-z0-9_-]{32,}", issued["key"])
    prefix = issued["key"][:8]
    assert app.json("GET", "/key", key=key)["read_only_prefix"] == prefix
    own = app.json("GET", "/key", key=issued["key"])
    assert own["scope"] == "read"
    assert own["prefix"] == prefix
    assert not own.keys() & {"email", "read_only_prefix", "key"}
    for _ in range(2):
        assert app("DELETE", "/key/read-only", key=key).status == 204
    assert app.json("GET", "/key", key=key)["read_only_prefix"] is None


def test_it_reads_everything_and_learns_neither_ping_ids_nor_webhook_urls(
    app, clock, key, check, reader
):
    clock.advance(3700)
    app.service.sweep.sweep_once()
    short = check["id"][:12]
    told = {}
    for call in sorted(READS):
        answer = app(*call.format(id=short).split(), key=reader)
        assert answer.status == 200, call
        text = answer.body.decode() + repr(answer.headers)
        hidden = (
            check["id"],
            short + check["id"][12],
            check["id"][12:],
            "/ping/",
            "@",
        )
        for secret in (*hidden, "8443", "services", "token"):
            assert secret not in text, call
        told[call] = answer
    (listed,) = json.loads(told["GET /checks"].body)["checks"]
    whole = app.json("GET", f"/checks/{check['id']}", key=key)["check"]
    hidden = {
        "id": short,
        "ping_url": None,
        "webhook_url": "https://hooks.example",
    }
    assert (
        json.loads(told["GET /checks/{id}"].body)["check"]
        == listed
        == {**whole, **hidden}
    )


def test_it_can_not_find_the_rest_of_an_id_by_trying_longer_and_longer_ones(
    app, check, reader
):
    whole = check["id"]
    ids = [whole[:length] for length in (1, 11, 13, 31, 32)]
    for other in (*ids, "0" * 12, "%00" * 12, "%25" * 12, "_" * 12):
        assert app("GET", f"/checks/{other}", key=reader).status == 404
        assert (
            app("GET", f"/checks?after={other}", key=reader).status == 400
        )
    assert app("GET", f"/ping/{whole[:12]}").status == 404


def test_of_a_check_of_others_that_begins_alike_it_sees_its_own(
    app, check
):
    stranger = app.checks_key()
    reader = reader_of(app, stranger)
    (own,) = checks_of(app, stranger, 1)
    change(
        app,
        "UPDATE checks SET id = ? WHERE id = ?",
        check["id"][:12] + own[12:],
        own,
    )
    seen = app.json("GET", f"/checks/{check['id'][:12]}", key=reader)[
        "check"
    ]
    assert seen["api_key_id"] != check["api_key_id"]


def test_it_turns_pages_by_short_ids(app, key, reader):
    ids = checks_of(app, key, 3)
    made = [check[:12] for check in ids]
    app("PATCH", f"/checks/{ids[2]}", {"webhook_url": None}, key=key)
    first = app.json("GET", "/checks?limit=2", key=reader)
    second = app.json(
        "GET", f"/checks?limit=2&after={first['next']}", key=reader
    )
    assert first["next"] == made[1]
    assert second["next"] is None
    assert second["checks"][0]["webhook_url"] is None
    assert each(first["checks"] + second["checks"], "id") == made


def test_a_short_id_of_two_checks_is_none_of_them(app, key, reader):
    """The pages after the second one began again with it, without end."""
    first, second, third = checks_of(app, key, 3)
    change(
        app,
        "UPDATE checks SET id = ? WHERE id = ?",
        first[:12] + second[12:],
        second,
    )
    for path in (f"/checks/{first[:12]}", f"/checks/{first[:12]}/alerts"):
        assert app("GET", path, key=reader).status == 404
    assert (
        app("GET", f"/checks?after={first[:12]}", key=reader).status
        == 400
    )
    assert app("GET", f"/checks/{third[:12]}", key=reader).status == 200
