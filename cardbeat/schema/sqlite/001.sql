-- Times are Unix seconds. `seq` keeps the order of creation.

CREATE TABLE keys (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    scope          TEXT    NOT NULL CHECK (scope IN ('cards', 'checks')),
    tier           TEXT    NOT NULL,
    email          TEXT,
    hash           BLOB    NOT NULL UNIQUE,
    prefix         TEXT    NOT NULL,
    webhook_secret TEXT,
    created_at     INTEGER NOT NULL
) STRICT;

-- `clock_from` is what the deadline counts from: the last ping, or the creation before there was one, moved
-- forward by outages of the monitor itself. `outage` numbers the check's overdue spells.
CREATE TABLE checks (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    api_key_id     TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    name           TEXT    NOT NULL,
    period_seconds INTEGER NOT NULL,
    grace_seconds  INTEGER NOT NULL,
    webhook_url    TEXT,
    status         TEXT    NOT NULL DEFAULT 'on_time' CHECK (status IN ('on_time', 'overdue')),
    outage         INTEGER NOT NULL DEFAULT 0,
    clock_from     INTEGER NOT NULL,
    deadline_at    INTEGER NOT NULL GENERATED ALWAYS AS (clock_from + period_seconds + grace_seconds) STORED,
    last_ping_at   INTEGER,
    ping_count     INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL DEFAULT 1
) STRICT;

CREATE INDEX checks_by_key ON checks (api_key_id, seq);
CREATE INDEX checks_due ON checks (deadline_at) WHERE status = 'on_time';

-- `id` is the webhook-id. `outage` is NULL for a test alert, so that only real ones are unique.
CREATE TABLE alerts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    check_id        TEXT    NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    type            TEXT    NOT NULL CHECK (type IN ('check.overdue', 'check.recovered', 'check.test')),
    outage          INTEGER,
    body            TEXT    NOT NULL,
    state           TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_status     INTEGER,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    next_attempt_at INTEGER,
    UNIQUE (check_id, outage, type)
) STRICT;

CREATE INDEX alerts_by_check ON alerts (check_id, seq);
CREATE INDEX alerts_pending ON alerts (state, seq) WHERE state = 'pending';

-- What the monitor must remember of itself over a restart, such as when its last sweep finished.
CREATE TABLE monitor (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
