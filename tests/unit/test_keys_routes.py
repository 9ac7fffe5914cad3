"""Which of the keys' endpoints wait, and who waits for them."""

from collections.abc import Callable

import pytest

from cardbeat.keys.routes import KeyRoutes
from cardbeat.later import Later
from cardbeat.web.message import Request, Response
from tests.support import App


@pytest.mark.parametrize(
    ("change", "status"), [(lambda routes, asked: routes.rotate(asked), 200), (lambda r, asked: r.revoke(asked), 204)]
)
def test_no_thread_waits_until_a_changed_key_is_known_everywhere(
    app: App, monkeypatch: pytest.MonkeyPatch, change: Callable[[KeyRoutes, Request], Later[Response]], status: int
) -> None:
    known_everywhere: Later[None] = Later()
    monkeypatch.setattr("cardbeat.keys.store.after", lambda _: known_everywhere)
    key = app.service.keys.issue("a@b").wait()
    route = app.service.server.router.find(Request("GET", "/key", "/key"))
    asked = Request("POST", "/key/rotate", "/key/rotate", key=key.key)
    answer = change(route.handler.__self__, asked)
    app.service.database.write(lambda _: None)
    assert app.service.keys.find(key.value) is None
    assert not answer.is_settled
    known_everywhere.succeed(None)
    assert answer.wait().status == status
