"""The shapes of what is sent and answered, with their bounds."""

from typing import Any, Final

from cardbeat.characters import BIDI_CONTROLS, CONTROL, SEEN, SPACE
from cardbeat.heartbeat.check import LONGEST_SECONDS, NAME_CHARACTERS, REQUIRED
from cardbeat.heartbeat.target import URL_BYTES
from cardbeat.keys.routes import MAX_EMAIL_LENGTH

Schema = dict[str, Any]

CHECK_ID_SCHEMA: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
TIME: Final[Schema] = {
    "type": "string",
    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
    "description": "UTC",
}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
WEBHOOK_SECRET: Final[Schema] = {"type": "string", "pattern": "^whsec_[A-Za-z0-9+/]+=*$"}

# What surrounds a name is trimmed; inside it, neither separators of lines nor controls may stand, also of direction.
_CONTROL = CONTROL + "".join(f"\\u{ord(one):04x}" for one in BIDI_CONTROLS)
NAME_PATTERN: Final = (
    f"^[{SPACE}]*[^{SPACE}{_CONTROL}]([^{_CONTROL}]{{0,{NAME_CHARACTERS - 2}}}[^{SPACE}{_CONTROL}])?[{SPACE}]*$"
)

SETTINGS: Final[dict[str, Schema]] = {
    "name": {
        "type": "string",
        "pattern": NAME_PATTERN,
        "allOf": [{"pattern": SEEN}],
        "description": (
            f"1 to {NAME_CHARACTERS} characters after trimming, none of them a control character or one that controls "
            "the direction of text, and not all of them invisible."
        ),
    },
    "period_seconds": {
        "type": "integer",
        "minimum": 1,
        "maximum": LONGEST_SECONDS,
        "description": "From one ping to the next; the key's tier may ask for more than 1. Digits only: not `60.0`.",
    },
    "grace_seconds": {
        "type": "integer",
        "minimum": 0,
        "maximum": LONGEST_SECONDS,
        "description": "How late a ping may be.",
    },
    "webhook_url": {
        "type": ["string", "null"],
        "format": "uri",
        "maxLength": URL_BYTES,
        "description": "Where alerts go: absolute, `http` or `https`, without user information, on a public host whose"
        f" name has at most 253 characters, and 63 between its dots. At most {URL_BYTES:,} bytes in UTF-8.",
    },
}


def nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


def record(properties: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    """An object in an answer: has every property except perhaps the `optional` ones; later versions may add some."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_KEY: Final[dict[str, Schema]] = {
    "scope": ref("Scope"),
    "tier": {"type": "string", "description": "`free`, `unlimited`, or one of the operator's."},
    "created_at": TIME,
    "email": {"type": "string", "description": "With a checks key."},
}

SCHEMAS: Final[dict[str, Schema]] = {
    "Scope": {"type": "string", "enum": ["cards", "checks"]},
    "AlertType": {"type": "string", "enum": ["check.overdue", "check.recovered", "check.test"]},
    "DeliveryState": {"type": "string", "enum": ["ok", "failing"]},
    "Error": record(
        {
            "error": {"type": "string", "description": "One plain sentence that says what to do."},
            "code": {"type": "string", "pattern": "^[a-z]+(_[a-z]+)*$"},
            "field": {"type": "string", "description": "The member, parameter or header at fault, where it is one."},
        },
        optional=("field",),
    ),
    "Registration": {
        "type": "object",
        "properties": {
            "email": {
                "type": "string",
                "format": "email",
                "maxLength": MAX_EMAIL_LENGTH,
                "description": (
                    "One `@` with something that is seen on both sides; no spaces, control characters or invisible "
                    "ones, such as those that turn the direction of text."
                ),
            }
        },
        "required": ["email"],
        "additionalProperties": False,
    },
    "IssuedKey": record(
        {
            "key": {"type": "string", "pattern": "^sk_[A-Za-z0-9_-]{32,}$", "description": "Shown this once."},
            **_KEY,
            "webhook_secret": {
                **WEBHOOK_SECRET,
                "description": "Signs the alerts of a checks key. Shown once, at registration.",
            },
        },
        optional=("email", "webhook_secret"),
    ),
    "WebhookSecret": record({"webhook_secret": {**WEBHOOK_SECRET, "description": "Shown this once."}}),
    "Key": record(
        {
            "prefix": {"type": "string", "description": "How the key's value begins."},
            **_KEY,
            "limits": record(
                {
                    "max_checks": nullable(COUNT),
                    "min_period_seconds": {"type": "integer", "minimum": 1},
                    "renders_per_minute": nullable({"type": "integer", "minimum": 1}),
                    "test_alerts_per_hour": {**COUNT, "description": "The same in every tier."},
                }
            )
            | {"description": "Of the key's tier; null is no limit."},
            "usage": record(
                {
                    "checks": COUNT,
                    "renders": {**COUNT, "description": "Of the burst of a minute."},
                    "test_alerts": {**COUNT, "description": "In the last hour."},
                }
            ),
        },
        optional=("email",),
    ),
    "NewCheck": {
        "type": "object",
        "properties": SETTINGS,
        "required": list(REQUIRED),
        "additionalProperties": False,
    },
    "CheckChanges": {"type": "object", "properties": SETTINGS, "additionalProperties": False},
    "Check": record(
        {
            "id": {**CHECK_ID_SCHEMA, "description": "Also the credential for pinging."},
            "api_key_id": {"type": "string"},
            **SETTINGS,
            "status": {"type": "string", "enum": ["on_time", "overdue"]},
            "last_ping_at": nullable(TIME),
            "deadline_at": {**TIME, "description": "When it turns overdue: last ping, or creation, + period + grace."},
            "ping_count": COUNT,
            "created_at": TIME,
            "updated_at": TIME,
            "version": {"type": "integer", "minimum": 1, "description": "One more with each update."},
            "ping_url": {"type": "string", "format": "uri"},
            "delivery": {
                "anyOf": [ref("DeliveryState"), {"type": "null"}],
                "description": (
                    "`ok` when the last attempt to deliver an alert was taken, `failing` when it was not, whether it "
                    "is tried again or given up; null where none was ever tried, or there is no webhook."
                ),
            },
        }
    ),
    "CheckAnswer": record({"check": ref("Check")}),
    "CheckPage": record(
        {
            "checks": {"type": "array", "items": ref("Check"), "maxItems": 1000},
            "next": {"type": ["string", "null"], "description": "The `after` of the next page; null on the last."},
        }
    ),
    "Alert": record(
        {
            "id": {"type": "string", "description": "Its `webhook-id`."},
            "type": ref("AlertType"),
            "state": {"type": "string", "enum": ["pending", "delivered", "failed"]},
            "attempts": COUNT,
            "last_status": {"type": ["integer", "null"], "description": "Of the receiver's last answer."},
            "last_error": {"type": ["string", "null"], "description": "Of the last attempt."},
            "created_at": TIME,
            "next_attempt_at": nullable(
                {
                    **TIME,
                    "description": (
                        "UTC; null when no attempt follows. Behind another alert of the check it is that one's, if "
                        "later. A time that has passed means at once, in its turn, or as soon as the check has a "
                        "webhook URL again."
                    ),
                }
            ),
        }
    ),
    "Alerts": record({"alerts": {"type": "array", "items": ref("Alert"), "maxItems": 100}}),
    "Beat": record({"status": {"const": "on_time"}, "recovered": {"type": "boolean"}, "deadline_at": TIME}),
    "Health": record({"status": {"const": "ok"}}),
    "Description": {"type": "object"},
    "Delivery": record(
        {
            "type": ref("AlertType"),
            "timestamp": {"type": "string", "format": "date-time"},
            "data": record({"check": ref("Check")}),
            "text": {"type": "string", "description": "One readable sentence."},
            "content": {"type": "string", "description": "The same sentence."},
        }
    ),
}
