-- Schema 10: all tables and indexes. Times are Unix seconds. `seq` keeps the order of creation.

-- A revoked key is refused at once; its row stays until its last check is removed. Until `old_webhook_secret_until`
-- alerts are signed with `old_webhook_secret` too. `used_at` is NULL before the first use. `read_hash` and
-- `read_prefix` are of a second value of a checks key, which may read and change nothing.
CREATE TABLE keys (
    seq                      INTEGER PRIMARY KEY,
    id                       TEXT    NOT NULL UNIQUE,
    scope                    TEXT    NOT NULL CHECK (scope IN ('cards', 'checks')),
    tier                     TEXT    NOT NULL,
    email                    TEXT,
    hash                     BLOB    NOT NULL UNIQUE,
    prefix                   TEXT    NOT NULL,
    webhook_secret           TEXT,
    created_at               INTEGER NOT NULL,
    revoked_at               INTEGER,
    old_webhook_secret       TEXT,
    old_webhook_secret_until INTEGER,
    used_at                  INTEGER,
    read_hash                BLOB,
    read_prefix              TEXT
) STRICT;

CREATE INDEX keys_revoked ON keys (seq) WHERE revoked_at IS NOT NULL;
CREATE INDEX keys_old_secrets ON keys (old_webhook_secret_until) WHERE old_webhook_secret_until IS NOT NULL;
CREATE UNIQUE INDEX keys_read ON keys (read_hash) WHERE read_hash IS NOT NULL;

-- `clock_from` is where the deadline counts from: the last ping, or the creation before the first ping, moved forward
-- by outages of the monitor itself. `outage` numbers the times that the check was overdue; `overdue_at`,
-- `overdue_deadline_at` and `overdue_reason` are of the last one. `remind_at` is when the next reminder is due, NULL
-- while the check is on time. `delivery` is the result of the last attempt at the present webhook URL.
CREATE TABLE checks (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    id                  TEXT    NOT NULL UNIQUE,
    api_key_id          TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    name                TEXT    NOT NULL,
    period_seconds      INTEGER NOT NULL,
    grace_seconds       INTEGER NOT NULL,
    webhook_url         TEXT,
    status              TEXT    NOT NULL DEFAULT 'on_time' CHECK (status IN ('on_time', 'overdue')),
    outage              INTEGER NOT NULL DEFAULT 0,
    clock_from          INTEGER NOT NULL,
    deadline_at         INTEGER NOT NULL GENERATED ALWAYS AS (clock_from + period_seconds + grace_seconds) STORED,
    last_ping_at        INTEGER,
    ping_count          INTEGER NOT NULL DEFAULT 0,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    version             INTEGER NOT NULL DEFAULT 1,
    delivery            TEXT CHECK (delivery IN ('ok', 'failing')),
    failed_at           INTEGER,
    snoozed_until       INTEGER,
    repeat_seconds      INTEGER,
    remind_at           INTEGER,
    overdue_at          INTEGER,
    overdue_deadline_at INTEGER,
    overdue_reason      TEXT CHECK (overdue_reason IN ('late', 'failed'))
) STRICT;

CREATE INDEX checks_by_key ON checks (api_key_id, seq);
-- One index for all that the sweep looks for: deadlines of checks that are on time, reminders of the others.
CREATE INDEX checks_due ON checks ((CASE WHEN status = 'on_time' THEN deadline_at ELSE remind_at END));

-- When each check was overdue: `key_id` is its key, `outage` the check's number of it. `began_at` is the deadline that
-- passed, or the failure.
CREATE TABLE outages (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    check_id   TEXT    NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    key_id     TEXT    NOT NULL,
    outage     INTEGER NOT NULL,
    began_at   INTEGER NOT NULL,
    noticed_at INTEGER NOT NULL,
    ended_at   INTEGER,
    reason     TEXT    NOT NULL CHECK (reason IN ('late', 'failed'))
) STRICT;

CREATE UNIQUE INDEX outages_once ON outages (check_id, outage);
CREATE INDEX outages_by_key ON outages (key_id, seq);
CREATE INDEX outages_ended ON outages (ended_at) WHERE ended_at IS NOT NULL;

-- The outbox. `id` is the webhook-id. `outage` is NULL for a test. Only the first waiting alert of a check, and its first
-- waiting test, has a `next_attempt_at`; who ends it gives the next one its time. `key_id` is the check's key, `receiver`
-- the host of its webhook URL. `is_new` is 0 where the check's last alert was taken (`delivery` is 'ok'). Until
-- `asked_until` no new alert lets this one be tried early: soon after a try, or as the receiver has asked. `outages` is
-- the number of those that have no alerts of their own and are told with this one. `last_ping_at` to `overdue_seconds` are what the alert tells, as of the moment when it was stored.
CREATE TABLE alerts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    check_id        TEXT    NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    key_id          TEXT    NOT NULL,
    receiver        TEXT,
    is_new          INTEGER NOT NULL DEFAULT 1,
    type            TEXT    NOT NULL
        CHECK (type IN ('check.overdue', 'check.recovered', 'check.reminder', 'check.test')),
    outage          INTEGER,
    state           TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_status     INTEGER,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    next_attempt_at INTEGER,
    asked_until     INTEGER,
    outages         INTEGER NOT NULL DEFAULT 0,
    last_ping_at    INTEGER,
    deadline_at     INTEGER,
    ping_count      INTEGER,
    reason          TEXT    NOT NULL DEFAULT 'late' CHECK (reason IN ('late', 'failed')),
    late_seconds    INTEGER NOT NULL DEFAULT 0,
    overdue_seconds INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX alerts_once ON alerts (check_id, outage, type) WHERE type <> 'check.reminder';
CREATE INDEX alerts_by_check ON alerts (check_id, seq);
CREATE INDEX alerts_waiting ON alerts (check_id, seq) WHERE state = 'pending';
CREATE INDEX alerts_due ON alerts (is_new, key_id, next_attempt_at, receiver)
WHERE state = 'pending' AND next_attempt_at IS NOT NULL;

-- What the monitor must remember of itself over a restart, such as `last_sweep_at`.
CREATE TABLE monitor (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
