"""The key in a request's head, and what others are told."""

import pytest

from cardbeat.errors import Refusal
from cardbeat.keys.key import CARDS, CHECKS, READ
from cardbeat.keys.store import Bearer
from cardbeat.web.message import Request


def request(authorization):
    return Request("GET", "/checks", "/checks", headers={"authorization": authorization})


def test_a_known_key_is_found_however_the_scheme_is_written(keys):
    issued = keys.issue("a@b")
    asked = request(f"bearer  {issued.value} ")
    Bearer(keys).judge(asked)
    assert Bearer(keys, CHECKS).look_up(asked).id == issued.key.id


@pytest.mark.parametrize(
    ("scopes", "scope", "told"),
    [
        ((), None, "not known here"),
        ((CHECKS,), CARDS, "This is a cards key.* keys revoke"),
        ((CHECKS, READ), CARDS, "This is a cards key.* keys revoke"),
        ((CHECKS,), READ, "This is a read-only key, which changes nothing"),
        ((CARDS,), CHECKS, "This is a checks key, or one that reads checks; cards take"),
        ((CARDS,), READ, "This is a checks key, or one that reads checks; cards take"),
    ],
)
def test_others_are_told_why_they_are_refused(keys, scopes, scope, told):
    checks_key = keys.issue("a@b")
    values = {
        None: "sk_unknown",
        CARDS: keys.issue().value,
        CHECKS: checks_key.value,
        READ: keys.issue_reader(checks_key.key),
    }
    with pytest.raises(Refusal, match=told) as refused:
        Bearer(keys, *scopes).look_up(request(f"Bearer {values[scope]}"))
    assert refused.value.status == (403 if scope else 401)
