-- Schema 7: all tables, indexes and triggers. Times are Unix seconds. `seq` keeps the order of creation.

-- A revoked key is refused at once. Its row stays until the last of its checks is removed, which takes many short
-- writes. Until `old_webhook_secret_until` alerts are signed with `old_webhook_secret` too.
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
    old_webhook_secret_until INTEGER
) STRICT;

CREATE INDEX keys_revoked ON keys (seq) WHERE revoked_at IS NOT NULL;
-- For the search, once a minute, for old secrets that have ended. Few keys have one.
CREATE INDEX keys_old_secrets ON keys (old_webhook_secret_until) WHERE old_webhook_secret_until IS NOT NULL;

-- `clock_from` is where the deadline counts from: the last ping, or the creation before the first ping, moved forward
-- by outages of the monitor itself. `outage` numbers the times that the check was overdue. `delivery` is the result of
-- the last attempt to deliver an alert to the present webhook URL, NULL before the first attempt. It is written in one
-- transaction with the alert's own result.
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
    version        INTEGER NOT NULL DEFAULT 1,
    delivery       TEXT CHECK (delivery IN ('ok', 'failing'))
) STRICT;

CREATE INDEX checks_by_key ON checks (api_key_id, seq);
CREATE INDEX checks_due ON checks (deadline_at) WHERE status = 'on_time';

-- `id` is the webhook-id. `outage` is NULL for a test alert, so that only real ones are unique. The body of a finished
-- alert is empty. `next_attempt_at` is NULL while the check has no webhook URL, and of an alert that waits behind another
-- one of its check: the smallest one is the time since when an alert is due. Tests wait behind tests only.
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
CREATE INDEX alerts_waiting ON alerts (check_id, outage) WHERE state = 'pending';
CREATE INDEX alerts_due ON alerts (next_attempt_at) WHERE state = 'pending';

-- A row for each check whose webhook URL was changed while alerts were pending; the latest has the largest `seq`.
-- Any process may make that change, and the one that delivers reads it here.
CREATE TABLE moves (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    check_seq INTEGER NOT NULL UNIQUE REFERENCES checks (seq) ON DELETE CASCADE
) STRICT;

-- When each test alert of the last hour was taken, by key. A check's history may forget it earlier, and goes with it.
CREATE TABLE tests_taken (
    api_key_id TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    taken_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX tests_taken_by_key ON tests_taken (api_key_id, taken_at);

-- What the monitor must remember of itself over a restart, such as when its last sweep finished.
CREATE TABLE monitor (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;

-- Which process sends alerts, where several machines share the database. `holder` names it, `epoch` counts the holders
-- until now, and `until` is the Unix time at which the lease ends unless the holder renews it.
CREATE TABLE leases (
    name   TEXT    PRIMARY KEY,
    holder TEXT    NOT NULL,
    epoch  INTEGER NOT NULL,
    until  REAL    NOT NULL
) STRICT;

-- `rates` and `registrations`: releases up to 1.0.0 count there the limits that several machines share.
CREATE TABLE rates (
    name           TEXT PRIMARY KEY,
    whole_again_at REAL NOT NULL
) STRICT;

CREATE TABLE registrations (
    network  TEXT NOT NULL,
    taken_at REAL NOT NULL
) STRICT;

CREATE INDEX registrations_by_network ON registrations (network, taken_at);

-- The number of checks is stored, because to count a million of them takes long, and keeps the -wal from being emptied.
-- The triggers run in the transaction of the change, so that a total stays exact after a crash, after a cascade and for
-- all processes. A ping of a check that is on time sets no status and so fires no trigger.
CREATE TABLE totals_by_status (
    status TEXT    PRIMARY KEY,
    checks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals_by_status (status, checks) VALUES ('on_time', 0), ('overdue', 0);

-- A key that never had a check has no row.
CREATE TABLE totals_by_key (
    api_key_id TEXT    PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    checks     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER checks_inserted AFTER INSERT ON checks
BEGIN
    UPDATE totals_by_status SET checks = checks + 1 WHERE status = new.status;
    INSERT INTO totals_by_key (api_key_id, checks) VALUES (new.api_key_id, 1)
    ON CONFLICT (api_key_id) DO UPDATE SET checks = checks + 1;
END;

CREATE TRIGGER checks_deleted AFTER DELETE ON checks
BEGIN
    UPDATE totals_by_status SET checks = checks - 1 WHERE status = old.status;
    UPDATE totals_by_key SET checks = checks - 1 WHERE api_key_id = old.api_key_id;
END;

CREATE TRIGGER checks_status_changed AFTER UPDATE OF status ON checks WHEN old.status <> new.status
BEGIN
    UPDATE totals_by_status SET checks = checks - 1 WHERE status = old.status;
    UPDATE totals_by_status SET checks = checks + 1 WHERE status = new.status;
END;
