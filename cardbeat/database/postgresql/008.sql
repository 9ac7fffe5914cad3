-- Schema 8. `used_at` is when a key was last used, NULL before its first use. Keys from before this script count as used
-- at this moment, so that none is removed for lack of a record.
ALTER TABLE keys ADD COLUMN used_at BIGINT;
UPDATE keys SET used_at = CAST(extract(epoch FROM clock_timestamp()) AS BIGINT);

-- The body of an alert is made when it is posted, from its check and from what the check was when the alert was stored:
-- `last_ping_at`, `deadline_at` and `ping_count`. `outages` is the number of outages that begin with the alert, 0 for a
-- recovery that tells nothing more; its `outage` is the last of them.
ALTER TABLE alerts ADD COLUMN outages BIGINT NOT NULL DEFAULT 1;
ALTER TABLE alerts ADD COLUMN last_ping_at BIGINT;
ALTER TABLE alerts ADD COLUMN deadline_at BIGINT;
ALTER TABLE alerts ADD COLUMN ping_count BIGINT;
UPDATE alerts SET
    last_ping_at = extract(
        epoch FROM CAST(CAST(body AS JSON) #>> '{data,check,last_ping_at}' AS TIMESTAMP) AT TIME ZONE 'UTC'
    ),
    deadline_at = extract(
        epoch FROM CAST(CAST(body AS JSON) #>> '{data,check,deadline_at}' AS TIMESTAMP) AT TIME ZONE 'UTC'
    ),
    ping_count = CAST(CAST(body AS JSON) #>> '{data,check,ping_count}' AS BIGINT),
    outages = CASE type WHEN 'check.recovered' THEN 0 ELSE 1 END
WHERE state = 'pending' AND body <> '';
ALTER TABLE alerts DROP COLUMN body;

DROP TABLE rates;
DROP TABLE registrations;
