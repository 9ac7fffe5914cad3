"""The JSON schemas of all bodies, with their limits."""

from typing import Any, Final

from cardbeat.characters import BIDI_CONTROLS, CONTROL, SEEN, SPACE
from cardbeat.heartbeat.check import (
    LONGEST_SECONDS,
    NAME_CHARACTERS,
    REPEAT_SECONDS,
    REQUIRED,
    SHORT_ID_CHARACTERS,
    SNOOZE_SECONDS,
)
from cardbeat.heartbeat.webhooks.target import URL_BYTES
from cardbeat.keys.routes import MAX_EMAIL_LENGTH

Json = dict[str, Any]

CHECK_ID_SCHEMA: Final[Json] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
TIME: Final[Json] = {
    "type": "string",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "description": "UTC",
}
COUNT: Final[Json] = {"type": "integer", "minimum": 0}
KEY_VALUE: Final[Json] = {
    "type": "string",
    "pattern": "^sk_[A-Za-z0-9_-]{32,}$",
    "description": "Shown this once.",
}
WEBHOOK_SECRET: Final[Json] = {"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]+=*$"}

# Spaces around a name are removed. Inside it, line separators and control characters, also of direction, are refused.
_CONTROL = CONTROL + "".join(f"\\u{ord(one):04x}" for one in BIDI_CONTROLS)
NAME_PATTERN: Final = (
    f"^[{SPACE}]*[^{SPACE}{_CONTROL}]([^{_CONTROL}]{{0,{NAME_CHARACTERS - 2}}}[^{SPACE}{_CONTROL}])?[{SPACE}]*$"
)


def nullable(schema: Json) -> Json:
    return {**schema, "type": [schema["type"], "null"]}


def integer(among: range, **more: str) -> Json:
    return {"type": "integer", "minimum": among[0], "maximum": among[-1], **more}


SETTINGS: Final[dict[str, Json]] = {
    "name": {
        "type": "string",
        "pattern": NAME_PATTERN,
        "allOf": [{"pattern": SEEN}],
        "description": (
            f"1 to {NAME_CHARACTERS} characters, without the spaces around them. Control characters, and those that "
            "control the direction of text, are refused, and a name without a visible character."
        ),
    },
    "period_seconds": integer(
        range(1, LONGEST_SECONDS + 1),
        description="Time between two pings. The key's tier may have a larger minimum. An integer: not `60.0`.",
    ),
    "grace_seconds": integer(range(LONGEST_SECONDS + 1), description="Time that a ping may be late."),
    "webhook_url": {
        "type": ["string", "null"],
        "format": "uri",
        "maxLength": URL_BYTES,
        "description": "Receives the alerts. An absolute `http` or `https` URL without user information, on a public"
        " host. The host's name has at most 253 characters, and each label of it at most 63. The URL has at most"
        f" {URL_BYTES:,} bytes in UTF-8. A read-only key sees its scheme and host only.",
    },
    "repeat_seconds": nullable(
        integer(
            REPEAT_SECONDS,
            description="Time between two `check.reminder` alerts while the check is overdue and not snoozed; null for "
            "none. A reminder that was not delivered when the next one is due, or when the check recovers, is dropped.",
        )
    ),
}


def record(properties: dict[str, Json], *, optional: tuple[str, ...] = ()) -> Json:
    """An object in an answer. Only the `optional` properties may be absent; later versions may add properties."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def body(properties: dict[str, Json], *required: str) -> Json:
    """An object in a request, which may hold nothing else."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


_KEY: Final[dict[str, Json]] = {
    "scope": ref("Scope"),
    "tier": {"type": "string", "description": "`free`, `unlimited`, or a tier that the operator has defined."},
    "created_at": TIME,
    "email": {"type": "string", "description": "Only of a checks key."},
}

OUTAGES: Final[Json] = {
    "type": "integer",
    "minimum": 1,
    "description": "How many outages begin with this alert; only there if it tells several, or one and its end.",
}
CHECK: Final[dict[str, Json]] = {
    "id": {
        **CHECK_ID_SCHEMA,
        "description": (
            "Ping with it: it is the only credential for that. A read-only key sees its first "
            f"{SHORT_ID_CHARACTERS} characters, and sends these in its place."
        ),
    },
    "api_key_id": {"type": "string"},
    **{name: SETTINGS[name] for name in (*REQUIRED, "webhook_url")},
    "status": {"type": "string", "enum": ["on_time", "overdue"]},
    "last_ping_at": nullable(TIME),
    "deadline_at": {
        **TIME,
        "description": "Last ping, or creation, + period + grace. After it the check is overdue.",
    },
    "ping_count": COUNT,
    "created_at": TIME,
    "updated_at": TIME,
    "version": {"type": "integer", "minimum": 1, "description": "Grows by 1 with each update."},
    "ping_url": {"type": ["string", "null"], "format": "uri", "description": "Null for a read-only key."},
    "delivery": {
        "anyOf": [ref("DeliveryState"), {"type": "null"}],
        "description": (
            "`ok` if the receiver accepted the last attempt, `failing` if not, also while the alert is tried "
            "again. Null if no alert was ever sent, or the check has no webhook."
        ),
    },
    "failed_at": {**nullable(TIME), "description": "UTC: when the job last signalled failure; null after a ping."},
    "snoozed_until": {
        **nullable(TIME),
        "description": "UTC: no overdue alert and no reminder before it. Null without a snooze.",
    },
    "repeat_seconds": SETTINGS["repeat_seconds"],
}

SCHEMAS: Final[dict[str, Json]] = {
    "Scope": {"type": "string", "enum": ["cards", "checks", "read"]},
    "AlertType": {"type": "string", "enum": ["check.overdue", "check.recovered", "check.reminder", "check.test"]},
    "DeliveryState": {"type": "string", "enum": ["ok", "failing"]},
    "Error": record(
        {
            "error": {"type": "string", "description": "One plain sentence that says what to do."},
            "code": {"type": "string", "pattern": "^[a-z]+(_[a-z]+)*$"},
            "field": {
                "type": "string",
                "description": "The member, parameter or header at fault, if it is a single one.",
            },
        },
        optional=("field",),
    ),
    "Registration": body(
        {
            "email": {
                "type": "string",
                "format": "email",
                "maxLength": MAX_EMAIL_LENGTH,
                "description": (
                    "One `@` with a visible character on both sides. Spaces, control characters and invisible "
                    "characters, such as those that change the direction of text, are refused."
                ),
            }
        },
        "email",
    ),
    "IssuedKey": record(
        {
            "key": KEY_VALUE,
            **_KEY,
            "webhook_secret": {
                **WEBHOOK_SECRET,
                "description": "Signs the alerts of a checks key. Shown once, at registration.",
            },
        },
        optional=("email", "webhook_secret"),
    ),
    "ReadOnlyKey": record({"key": KEY_VALUE, "scope": {"const": "read"}}),
    "WebhookSecret": record({"webhook_secret": {**WEBHOOK_SECRET, "description": "Shown this once."}}),
    "Key": record(
        {
            "prefix": {"type": "string", "description": "The beginning of the key's value."},
            **_KEY,
            "read_only_prefix": {
                "type": ["string", "null"],
                "description": "Only of a checks key: the beginning of its read-only key's value, null without one.",
            },
            "limits": record(
                {
                    "max_checks": nullable(COUNT),
                    "min_period_seconds": {"type": "integer", "minimum": 1},
                    "renders_per_minute": nullable({"type": "integer", "minimum": 1}),
                    "test_alerts_per_hour": {**COUNT, "description": "The same in every tier."},
                }
            )
            | {"description": "The limits of the key's tier; null is no limit."},
            "usage": record(
                {
                    "checks": COUNT,
                    "renders": {**COUNT, "description": "New cards that count for the limit now."},
                    "test_alerts": {**COUNT, "description": "In the last hour."},
                }
            ),
        },
        optional=("email", "read_only_prefix"),
    ),
    "NewCheck": body(SETTINGS, *REQUIRED),
    "Snooze": body({"seconds": integer(SNOOZE_SECONDS)}, "seconds"),
    "CheckChanges": body(SETTINGS),
    "Check": record(CHECK),
    "CheckAnswer": record({"check": ref("Check")}),
    "CheckPage": record(
        {
            "checks": {"type": "array", "items": ref("Check"), "maxItems": 1000},
            "next": {"type": ["string", "null"], "description": "The `after` of the next page; null on the last page."},
        }
    ),
    "Alert": record(
        {
            "id": {"type": "string", "description": "The header `webhook-id` of the alert."},
            "type": ref("AlertType"),
            "state": {"type": "string", "enum": ["pending", "delivered", "failed"]},
            "attempts": COUNT,
            "last_status": {"type": ["integer", "null"], "description": "The status of the receiver's last answer."},
            "last_error": {"type": ["string", "null"], "description": "The error of the last attempt."},
            "created_at": TIME,
            "next_attempt_at": nullable(
                {
                    **TIME,
                    "description": (
                        "UTC; null if no attempt follows. If an earlier alert of the check is tried later than this "
                        "one, its time is given. A past time means: as soon as possible, or as soon as the check has "
                        "a webhook URL."
                    ),
                }
            ),
        }
    ),
    "Alerts": record({"alerts": {"type": "array", "items": ref("Alert"), "maxItems": 100}}),
    "CheckInAlert": {
        **record({name: schema for name, schema in CHECK.items() if name not in ("webhook_url", "ping_url")}),
        "description": (
            "The check without its URLs. `status`, `last_ping_at`, `deadline_at` and `ping_count` are as they were "
            "when the alert was stored, the others as they are at this attempt."
        ),
    },
    "Beat": record(
        {
            "status": CHECK["status"],
            "recovered": {"type": "boolean", "description": "Whether this ping ended an outage."},
            "deadline_at": TIME,
        }
    ),
    "Health": record({"status": {"const": "ok"}}),
    "Description": {"type": "object"},
    "Delivery": record(
        {
            "type": ref("AlertType"),
            "timestamp": {"type": "string", "format": "date-time"},
            "data": record(
                {
                    "check": ref("CheckInAlert"),
                    "reason": {
                        "type": ["string", "null"],
                        "enum": ["late", "failed", None],
                        "description": "Why the check turned overdue: no ping came in time, or the job said that it "
                        "failed. Null in a test alert.",
                    },
                    "late_seconds": {**COUNT, "description": "Time since the deadline when the alert was stored."},
                    "overdue_seconds": {
                        **COUNT,
                        "description": "Time since the check turned overdue when the alert was stored: of a "
                        "`check.recovered`, how long the outage was.",
                    },
                    "url": {"type": "string", "format": "uri", "description": "Opens the check on the dashboard."},
                    "outages": OUTAGES,
                },
                optional=("outages",),
            ),
            "text": {"type": "string", "description": "One sentence for people; it ends with `url`."},
            "content": {"type": "string", "description": "The same sentence."},
        }
    ),
}
