-- Schema 9. `failed_at` is when a job last signalled failure, NULL after the next ping. Until `snoozed_until` only
-- recoveries and tests are told. `overdue_at`, `overdue_deadline_at` and `overdue_reason` are of the last outage: when
-- it began, the deadline then, and why. `remind_at` is when the next reminder is due, NULL while the check is on time.
ALTER TABLE checks ADD COLUMN failed_at INTEGER;
ALTER TABLE checks ADD COLUMN snoozed_until INTEGER;
ALTER TABLE checks ADD COLUMN repeat_seconds INTEGER;
ALTER TABLE checks ADD COLUMN remind_at INTEGER;
ALTER TABLE checks ADD COLUMN overdue_at INTEGER;
ALTER TABLE checks ADD COLUMN overdue_deadline_at INTEGER;
ALTER TABLE checks ADD COLUMN overdue_reason TEXT CHECK (overdue_reason IN ('late', 'failed'));
UPDATE checks SET overdue_reason = 'late', overdue_deadline_at = deadline_at, overdue_at = coalesce((
    SELECT created_at FROM alerts
    WHERE check_id = checks.id AND alerts.outage = checks.outage AND type = 'check.overdue'
), deadline_at) WHERE status = 'overdue';

-- One index for all that the sweep looks for: deadlines of checks that are on time, reminders of the others.
DROP INDEX checks_due;
CREATE INDEX checks_due ON checks ((CASE WHEN status = 'on_time' THEN deadline_at ELSE remind_at END));

-- The same table with a further type of alert. Of reminders an outage may have many. `reason`, `late_seconds` and
-- `overdue_seconds` are what the alert tells, as of the moment when it was stored.
CREATE TABLE alerts_9 (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    check_id        TEXT    NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    type            TEXT    NOT NULL
        CHECK (type IN ('check.overdue', 'check.recovered', 'check.reminder', 'check.test')),
    outage          INTEGER,
    state           TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_status     INTEGER,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    next_attempt_at INTEGER,
    outages         INTEGER NOT NULL DEFAULT 1,
    last_ping_at    INTEGER,
    deadline_at     INTEGER,
    ping_count      INTEGER,
    reason          TEXT    NOT NULL DEFAULT 'late' CHECK (reason IN ('late', 'failed')),
    late_seconds    INTEGER NOT NULL DEFAULT 0,
    overdue_seconds INTEGER NOT NULL DEFAULT 0
) STRICT;

INSERT INTO alerts_9 (seq, id, check_id, type, outage, state, attempts, last_status, last_error, created_at,
    next_attempt_at, outages, last_ping_at, deadline_at, ping_count)
SELECT seq, id, check_id, type, outage, state, attempts, last_status, last_error, created_at,
    next_attempt_at, outages, last_ping_at, deadline_at, ping_count FROM alerts;
-- The numbers of rows that were deleted are not given again.
DELETE FROM sqlite_sequence WHERE name = 'alerts_9';
INSERT INTO sqlite_sequence (name, seq) SELECT 'alerts_9', seq FROM sqlite_sequence WHERE name = 'alerts';
DROP TABLE alerts;
ALTER TABLE alerts_9 RENAME TO alerts;

CREATE UNIQUE INDEX alerts_once ON alerts (check_id, outage, type) WHERE type <> 'check.reminder';
CREATE INDEX alerts_by_check ON alerts (check_id, seq);
CREATE INDEX alerts_pending ON alerts (state, seq) WHERE state = 'pending';
CREATE INDEX alerts_waiting ON alerts (check_id, outage) WHERE state = 'pending';
CREATE INDEX alerts_due ON alerts (next_attempt_at) WHERE state = 'pending';

UPDATE alerts SET late_seconds = created_at - deadline_at
WHERE state = 'pending' AND type = 'check.overdue' AND created_at > deadline_at;
UPDATE alerts SET late_seconds = alerts.created_at - began.created_at,
    overdue_seconds = alerts.created_at - began.created_at
FROM alerts AS began WHERE began.check_id = alerts.check_id AND began.outage = alerts.outage
AND began.type = 'check.overdue' AND alerts.state = 'pending' AND alerts.type = 'check.recovered'
AND alerts.created_at > began.created_at;

-- `read_hash` and `read_prefix` are of a second value of a checks key, which may read and change nothing; NULL
-- without one.
ALTER TABLE keys ADD COLUMN read_hash BLOB;
ALTER TABLE keys ADD COLUMN read_prefix TEXT;
CREATE UNIQUE INDEX keys_read ON keys (read_hash) WHERE read_hash IS NOT NULL;
