"""What schemathesis must know beyond the description: keys to use, good webhook URLs, and what no schema can say."""

import json
import os
import urllib.request

import schemathesis
from hypothesis import strategies as st
from schemathesis import openapi

URL = os.environ["CARDBEAT_URL"]

REFUSED_FOR_STATE = {
    "no_webhook",
    "precondition_failed",
    "range_not_satisfiable",
}
"""Codes of refusals that no form of a request can rule out."""


def new_key(email=None):
    request = urllib.request.Request(f"{URL}/register", method="POST")
    if email is not None:
        request.data = json.dumps({"email": email}).encode()
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["key"]


def description():
    with urllib.request.urlopen(f"{URL}/openapi.json") as answer:
        return json.load(answer)


DESCRIPTION = description()
OF_ANY_REQUEST = {400, 405, 408, 413, 414, 415, 417, 431, 500, 501}
"""The statuses for which `default` stands: an operation does not list them."""


class ChecksKey:
    def get(self, case, context):
        return new_key("ops@example.com")

    def set(self, case, key, context):
        case.headers = {
            **(case.headers or {}),
            "Authorization": f"Bearer {key}",
        }


class CardsKey:
    def get(self, case, context):
        return new_key()

    def set(self, case, key, context):
        case.query = {**(case.query or {}), "key": key}


schemathesis.auth().apply_to(path_regex="^/checks")(ChecksKey)
# Rotation and revocation end a key: each request has one of its own.
schemathesis.auth(refresh_interval=None).apply_to(path_regex="^/key")(
    ChecksKey
)
schemathesis.auth().apply_to(path="/og")(CardsKey)

labels = st.from_regex(r"[a-z]{1,20}", fullmatch=True)
paths = st.from_regex(r"[A-Za-z0-9/._~-]{0,60}", fullmatch=True)
schemathesis.openapi.format(
    "uri", st.builds("https://{}.example.com/{}".format, labels, paths)
)


@schemathesis.hook
def map_headers(context, headers):
    """Most versions named at random are wrong ones, and a PATCH would get no further."""
    return (
        {**headers, "If-Match": "*"}
        if headers and "If-Match" in headers
        else headers
    )


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure is one."""
    return not (
        isinstance(failure, openapi.checks.RejectedPositiveData)
        and refused_rightly(case, response)
    )


def refused_rightly(case, response):
    """For what the request finds, or for `60.0`, which JSON Schema takes for an integer and the service does not."""
    refusal = json.loads(response.content)
    floats = isinstance(case.body, dict) and any(
        isinstance(value, float) for value in case.body.values()
    )
    return (
        refusal["code"] in REFUSED_FOR_STATE
        or refusal.get("field") == "after"
        or floats
    )


@schemathesis.check
def refusals_have_a_status_of_the_operation_and_a_code_of_that_status(
    context, response, case
):
    status = response.status_code
    if status >= 400:
        listed = DESCRIPTION["paths"][case.operation.path].get(
            case.method.lower(), {"responses": {}}
        )
        assert (
            status in OF_ANY_REQUEST or str(status) in listed["responses"]
        )
    if status >= 400 and case.method != "HEAD":
        described = DESCRIPTION["components"]["responses"][str(status)]
        codes = described["content"]["application/json"]["examples"]
        assert json.loads(response.content)["code"] in codes
