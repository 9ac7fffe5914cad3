"""Somebody with a key, checks and a receiver."""

from standardwebhooks.webhooks import Webhook

from tests.kit.support import App, service_of

PERIOD_SECONDS = 60


class Customer:
    """Somebody with a key, checks and a receiver, at an application whose alerts are delivered."""

    def __init__(self, app):
        self.app = app
        issued = app.json("POST", "/register", {"email": "ops@example.com"})
        self.key = issued["key"]
        self.secret = issued["webhook_secret"]

    def check(self, webhook_url, name="nightly backup"):
        body = {
            "name": name,
            "period_seconds": PERIOD_SECONDS,
            "grace_seconds": 0,
            "webhook_url": webhook_url,
        }
        return self.app.json("POST", "/checks", body, key=self.key)["check"]

    def goes_overdue(self):
        self.app.clock.advance(PERIOD_SECONDS + 1)
        self.app.service.sweep.sweep_once()

    def test_alert(self, check):
        assert (
            self.app(
                "POST", f"/checks/{check['id']}/test-alert", key=self.key
            ).status
            == 202
        )

    def alerts(self, check):
        return self.app.json(
            "GET", f"/checks/{check['id']}/alerts", key=self.key
        )["alerts"]

    def read(self, check):
        return self.app.json("GET", f"/checks/{check['id']}", key=self.key)[
            "check"
        ]

    def states(self, check):
        return [alert["state"] for alert in self.alerts(check)]

    def verified(self, received):
        """The body, if an independent verifier accepts it under this key's secret."""
        return Webhook(self.secret).verify(received.body, received.headers)


def delivering(config, clock):
    service = service_of(config._replace(allow_private_webhooks=True), clock)
    service.delivery.start()
    return App(service, clock)
