-- An alert that waits behind another of its check is due no earlier than that one. So the smallest `next_attempt_at` of
-- all pending alerts tells since when one is due. Tests wait for tests alone.
UPDATE alerts
SET next_attempt_at = max(
    next_attempt_at,
    (
        SELECT next_attempt_at
        FROM alerts AS first INDEXED BY alerts_waiting
        WHERE first.check_id = alerts.check_id
            AND first.state = 'pending'
            AND (first.outage IS NULL) = (alerts.outage IS NULL)
        ORDER BY seq
        LIMIT 1
    )
)
WHERE state = 'pending';

-- Without a webhook URL they wait until the check has one.
UPDATE alerts
SET next_attempt_at = NULL
WHERE state = 'pending' AND check_id IN (SELECT id FROM checks WHERE webhook_url IS NULL);

CREATE INDEX alerts_due ON alerts (next_attempt_at) WHERE state = 'pending';

-- The last time that a check with pending alerts was given another webhook URL: whichever process took that, the one
-- that delivers reads it here.
CREATE TABLE moves (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    check_seq INTEGER NOT NULL UNIQUE REFERENCES checks (seq) ON DELETE CASCADE
) STRICT;

-- Few keys have one, and every minute those are looked for whose time is over.
CREATE INDEX keys_old_secrets ON keys (old_webhook_secret_until) WHERE old_webhook_secret_until IS NOT NULL;
