"""The key in a request's head, and what others are told."""

import pytest

from cardbeat.errors import Refusal
from cardbeat.keys.key import CARDS, CHECKS, READ
from cardbeat.keys.store import Bearer
from cardbeat.web.message import Request


def request(authorization):
    return Request(
        "GET",
        "/checks",
        "/checks",
        headers={"authorization": authorization},
    )


def test_a_known_key_is_found_however_the_scheme_is_written(keys):
    issued = keys.issue("a@b")
    asked = request(f"bearer  {issued.value} ")
    Bearer(keys).judge(asked)
    assert Bearer(keys, CHECKS).look_up(asked).id == issued.key.id


TOLD = {
    CARDS: "This is a cards key.* keys revoke",
    CHECKS: "This is a checks key, or one that reads checks; cards take",
    READ: "This is a read-only key, which changes nothing",
}


def test_others_are_told_why_they_are_refused(keys):
    issued = keys.issue("a@b")
    values = {
        CARDS: keys.issue().value,
        CHECKS: issued.value,
        READ: keys.issue_reader(issued.key),
        None: "sk_unknown",
    }
    wrong = [
        ((), None, 401, "not known here"),
        ((CHECKS,), CARDS, 403, TOLD[CARDS]),
        ((CHECKS, READ), CARDS, 403, TOLD[CARDS]),
        ((CHECKS,), READ, 403, TOLD[READ]),
        ((CARDS,), CHECKS, 403, TOLD[CHECKS]),
        ((CARDS,), READ, 403, TOLD[CHECKS]),
    ]
    for scopes, scope, status, told in wrong:
        with pytest.raises(Refusal, match=told) as refused:
            Bearer(keys, *scopes).look_up(
                request(f"Bearer {values[scope]}")
            )
        assert refused.value.status == status
