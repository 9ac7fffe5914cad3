-- Fills the tables of version 10 with the rows of version 9, which are in the attached file `old`. `host_of` gives the
-- host of a URL.
INSERT INTO keys (
    seq, id, scope, tier, email, hash, prefix, webhook_secret, created_at, revoked_at, old_webhook_secret,
    old_webhook_secret_until, used_at, read_hash, read_prefix
)
SELECT seq, id, scope, tier, email, hash, prefix, webhook_secret, created_at, revoked_at, old_webhook_secret,
    old_webhook_secret_until, used_at, read_hash, read_prefix
FROM old.keys;

INSERT INTO checks (
    seq, id, api_key_id, name, period_seconds, grace_seconds, webhook_url, status, outage, clock_from, last_ping_at,
    ping_count, created_at, updated_at, version, delivery, failed_at, snoozed_until, repeat_seconds, remind_at,
    overdue_at, overdue_deadline_at, overdue_reason
)
SELECT seq, id, api_key_id, name, period_seconds, grace_seconds, webhook_url, status, outage, clock_from, last_ping_at,
    ping_count, created_at, updated_at, version, delivery, failed_at, snoozed_until, repeat_seconds, remind_at,
    overdue_at, overdue_deadline_at, overdue_reason
FROM old.checks;

-- Outages that last. Of earlier ones version 9 keeps nothing.
INSERT INTO outages (check_id, key_id, outage, began_at, noticed_at, reason)
SELECT id, api_key_id, outage, CASE overdue_reason WHEN 'late' THEN overdue_deadline_at ELSE overdue_at END,
    overdue_at, overdue_reason
FROM old.checks WHERE status = 'overdue' AND overdue_at IS NOT NULL ORDER BY seq;

-- What else version 9 noted there is read no more.
INSERT INTO monitor (name, value) SELECT name, value FROM old.monitor WHERE name LIKE 'last_%_at';
INSERT INTO monitor (name, value) VALUES ('outages_kept_since', CAST(strftime('%s', 'now') AS INTEGER));

-- Of an outage that an alert begins itself version 9 counts one more in `outages`.
INSERT INTO alerts (
    seq, id, check_id, type, outage, state, attempts, last_status, last_error, created_at,
    next_attempt_at, last_ping_at, deadline_at, ping_count, reason, late_seconds, overdue_seconds,
    key_id, receiver, is_new,
    outages
)
SELECT alerts.seq, alerts.id, check_id, type, alerts.outage, state, attempts, last_status, last_error, alerts.created_at,
    next_attempt_at, alerts.last_ping_at, alerts.deadline_at, alerts.ping_count, reason, late_seconds, overdue_seconds,
    api_key_id, host_of(webhook_url), delivery IS NOT 'ok',
    CASE WHEN type = 'check.recovered' THEN outages WHEN outages > 1 THEN outages - 1 ELSE 0 END
FROM old.alerts AS alerts JOIN old.checks AS checks ON checks.id = check_id ORDER BY alerts.seq;
-- In version 9 the alerts of a check without a URL wait, and those that older versions stored have a time also behind
-- others.
UPDATE alerts SET state = 'failed', last_error = 'The webhook URL was removed.', next_attempt_at = NULL
WHERE state = 'pending' AND check_id IN (SELECT id FROM checks WHERE webhook_url IS NULL);
UPDATE alerts SET next_attempt_at = NULL WHERE state = 'pending' AND EXISTS (
    SELECT 1 FROM alerts AS older WHERE older.check_id = alerts.check_id AND older.state = 'pending'
    AND older.seq < alerts.seq AND (older.outage IS NULL) = (alerts.outage IS NULL)
)
