-- Schema 9. `failed_at` is when a job last signalled failure, NULL after the next ping. Until `snoozed_until` only
-- recoveries and tests are told. `overdue_at`, `overdue_deadline_at` and `overdue_reason` are of the last outage: when
-- it began, the deadline then, and why. `remind_at` is when the next reminder is due, NULL while the check is on time.
ALTER TABLE checks ADD COLUMN failed_at BIGINT;
ALTER TABLE checks ADD COLUMN snoozed_until BIGINT;
ALTER TABLE checks ADD COLUMN repeat_seconds BIGINT;
ALTER TABLE checks ADD COLUMN remind_at BIGINT;
ALTER TABLE checks ADD COLUMN overdue_at BIGINT;
ALTER TABLE checks ADD COLUMN overdue_deadline_at BIGINT;
ALTER TABLE checks ADD COLUMN overdue_reason TEXT CHECK (overdue_reason IN ('late', 'failed'));
UPDATE checks SET overdue_reason = 'late', overdue_deadline_at = deadline_at, overdue_at = coalesce((
    SELECT created_at FROM alerts
    WHERE check_id = checks.id AND alerts.outage = checks.outage AND type = 'check.overdue'
), deadline_at) WHERE status = 'overdue';

-- One index for all that the sweep looks for: deadlines of checks that are on time, reminders of the others.
DROP INDEX checks_due;
CREATE INDEX checks_due ON checks ((CASE WHEN status = 'on_time' THEN deadline_at ELSE remind_at END));

-- `reason`, `late_seconds` and `overdue_seconds` are what an alert tells, as of the moment when it was stored. Of
-- reminders an outage may have many.
ALTER TABLE alerts DROP CONSTRAINT alerts_type_check;
ALTER TABLE alerts ADD CONSTRAINT alerts_type_check
CHECK (type IN ('check.overdue', 'check.recovered', 'check.reminder', 'check.test'));
ALTER TABLE alerts DROP CONSTRAINT alerts_check_id_outage_type_key;
CREATE UNIQUE INDEX alerts_once ON alerts (check_id, outage, type) WHERE type <> 'check.reminder';
ALTER TABLE alerts ADD COLUMN reason TEXT NOT NULL DEFAULT 'late' CHECK (reason IN ('late', 'failed'));
ALTER TABLE alerts ADD COLUMN late_seconds BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alerts ADD COLUMN overdue_seconds BIGINT NOT NULL DEFAULT 0;
UPDATE alerts SET late_seconds = created_at - deadline_at
WHERE state = 'pending' AND type = 'check.overdue' AND created_at > deadline_at;
UPDATE alerts SET late_seconds = alerts.created_at - began.created_at,
    overdue_seconds = alerts.created_at - began.created_at
FROM alerts AS began WHERE began.check_id = alerts.check_id AND began.outage = alerts.outage
AND began.type = 'check.overdue' AND alerts.state = 'pending' AND alerts.type = 'check.recovered'
AND alerts.created_at > began.created_at;

-- `read_hash` and `read_prefix` are of a second value of a checks key, which may read and change nothing; NULL
-- without one.
ALTER TABLE keys ADD COLUMN read_hash BYTEA;
ALTER TABLE keys ADD COLUMN read_prefix TEXT;
CREATE UNIQUE INDEX keys_read ON keys (read_hash) WHERE read_hash IS NOT NULL;
