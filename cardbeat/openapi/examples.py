"""An example for each schema."""

from typing import Any, Final

from cardbeat.config import FREE, TESTS_AN_HOUR
from cardbeat.heartbeat.check import CHANGEABLE
from cardbeat.heartbeat.outbox.alerts import LINK_CHARACTERS

CHECK_ID: Final = "5f1c0f6e0f9a4c2d8b7e3a1d9c4b2e60"
ALERT_ID: Final = "msg_2b7e151628aed2a6abf71589"
CARDS_KEY_VALUE: Final = "sk_3Vn0aXJk1Zq8wYb5TtRr7PpLlMmHhGgD"
ETAG: Final = '"d1e8a70b5ccab1dcd1e8a70b5ccab1dc"'

_EMAIL: Final = {"email": "you@example.com"}
_KEY: Final = {"scope": "checks", "tier": "free", "created_at": "2026-01-19 10:14:02"}
_CARDS_KEY: Final = {"key": CARDS_KEY_VALUE, **_KEY, "scope": "cards"}
_SECRET: Final = {"webhook_secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
_CHECKS_KEY: Final = {**_CARDS_KEY, "scope": "checks", **_EMAIL, **_SECRET}
_CHECK: Final = {
    "id": CHECK_ID,
    "api_key_id": "key_0a1b2c3d4e5f6071",
    "name": "Nightly backup",
    "period_seconds": 86400,
    "grace_seconds": 900,
    "webhook_url": "https://hooks.example.com/alerts",
    "status": "on_time",
    "last_ping_at": "2026-03-01 02:31:07",
    "deadline_at": "2026-03-02 02:46:07",
    "ping_count": 41,
    "created_at": "2026-01-19 10:15:00",
    "updated_at": "2026-01-20 08:00:12",
    "version": 2,
    "ping_url": f"https://cards.example.com/ping/{CHECK_ID}",
    "delivery": "ok",
    "failed_at": None,
    "snoozed_until": None,
    "repeat_seconds": None,
}
_IN_ALERT: Final = _CHECK.keys() - {"webhook_url", "ping_url"}
_ALERT: Final = {
    "id": ALERT_ID,
    "type": "check.overdue",
    "state": "pending",
    "attempts": 1,
    "last_status": 503,
    "last_error": "The receiver answered 503.",
    "created_at": "2026-03-02 02:46:30",
    "next_attempt_at": "2026-03-02 02:46:36",
}
_LINK: Final = f"https://cards.example.com/dashboard#{CHECK_ID[:LINK_CHARACTERS]}"
_SENTENCE: Final = (
    '"Nightly backup" has recovered after 14 minutes: overdue since 2026-03-01 02:17 UTC; next ping expected by '
    f"2026-03-02 02:46 UTC. {_LINK}"
)

EXAMPLES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "Registration": {"checks": _EMAIL},
    "IssuedKey": {"cards": _CARDS_KEY, "checks": _CHECKS_KEY},
    "ReadOnlyKey": {"new": {"key": CARDS_KEY_VALUE, "scope": "read"}},
    "WebhookSecret": {"new": _SECRET},
    "Key": {
        "checks": {
            "prefix": "sk_3Vn0a",
            **_KEY,
            **_EMAIL,
            "read_only_prefix": None,
            "limits": {**FREE._asdict(), "test_alerts_per_hour": TESTS_AN_HOUR},
            "usage": {"checks": 12, "renders": 0, "test_alerts": 1},
        }
    },
    "NewCheck": {"backup": {field: _CHECK[field] for field in CHANGEABLE}},
    "CheckChanges": {"grace": {"grace_seconds": 1800}},
    "Snooze": {"day": {"seconds": 86400}},
    "CheckAnswer": {"backup": {"check": _CHECK}},
    "CheckPage": {"last": {"checks": [_CHECK], "next": None}},
    "Alerts": {"overdue": {"alerts": [_ALERT]}},
    "Beat": {
        status: {"status": status, "recovered": False, "deadline_at": _CHECK["deadline_at"]}
        for status in ("on_time", "overdue")
    },
    "Health": {"ok": {"status": "ok"}},
    "Description": {"this": {"openapi": "3.1.0"}},
    "Delivery": {
        "recovered": {
            "type": "check.recovered",
            "timestamp": "2026-03-01T02:31:07Z",
            "data": {
                "check": {name: value for name, value in _CHECK.items() if name in _IN_ALERT},
                "reason": "late",
                "late_seconds": 867,
                "overdue_seconds": 840,
                "url": _LINK,
            },
            "text": _SENTENCE,
            "content": _SENTENCE,
        }
    },
}
"""By the name of the schema, then by the name of the example."""
