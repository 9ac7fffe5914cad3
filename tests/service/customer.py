"""Somebody with a key, checks and a receiver."""

from standardwebhooks.webhooks import Webhook

from tests.kit.lists import each
from tests.kit.support import App, service_of

PERIOD_SECONDS = 60


class One:
    """A check of a key, and what is asked about it."""

    def __init__(self, app, key, check):
        self.app = app
        self.key = key
        self.check = check
        self.path = f"/checks/{check['id']}"

    def __call__(self, method, path="", body=None, **options):
        return self.app(
            method, self.path + path, body, key=self.key, **options
        )

    def read(self):
        return self.app.json("GET", self.path, key=self.key)["check"]

    def alerts(self):
        """Newest first."""
        answer = self.app.json("GET", f"{self.path}/alerts", key=self.key)
        return answer["alerts"]

    def types(self):
        """Of its alerts, oldest first."""
        return each(reversed(self.alerts()), "type")

    def states(self):
        return each(self.alerts(), "state")

    def ping(self, signal="", method="GET"):
        return self.app(method, f"/ping/{self.check['id']}{signal}")


class Customer:
    """Somebody with a key, checks and a receiver, at an application whose alerts are delivered."""

    def __init__(self, app):
        self.app = app
        issued = app.json(
            "POST", "/register", {"email": "ops@example.com"}
        )
        self.key = issued["key"]
        self.secret = issued["webhook_secret"]

    def check(self, webhook_url, name="nightly backup"):
        body = {
            "name": name,
            "period_seconds": PERIOD_SECONDS,
            "grace_seconds": 0,
            "webhook_url": webhook_url,
        }
        made = self.app.json("POST", "/checks", body, key=self.key)
        return One(self.app, self.key, made["check"])

    def goes_overdue(self):
        self.app.clock.advance(PERIOD_SECONDS + 1)
        self.app.service.sweep.sweep_once()

    def verified(self, received):
        """The body, if an independent verifier accepts it under this key's secret."""
        return Webhook(self.secret).verify(
            received.body, received.headers
        )


def delivering(config, clock):
    service = service_of(
        config._replace(allow_private_webhooks=True), clock
    )
    service.delivery.start()
    return App(service, clock)
