-- Schema 8. `used_at` is when a key was last used, NULL before its first use. Keys from before this script count as used
-- at this moment, so that none is removed for lack of a record.
ALTER TABLE keys ADD COLUMN used_at INTEGER;
UPDATE keys SET used_at = CAST(strftime('%s', 'now') AS INTEGER);

-- The body of an alert is made when it is posted, from its check and from what the check was when the alert was stored:
-- `last_ping_at`, `deadline_at` and `ping_count`. `outages` is the number of outages that begin with the alert, 0 for a
-- recovery that tells nothing more; its `outage` is the last of them.
ALTER TABLE alerts ADD COLUMN outages INTEGER NOT NULL DEFAULT 1;
ALTER TABLE alerts ADD COLUMN last_ping_at INTEGER;
ALTER TABLE alerts ADD COLUMN deadline_at INTEGER;
ALTER TABLE alerts ADD COLUMN ping_count INTEGER;
-- A name that looks like a member can't be found here: its quotation marks are escaped.
UPDATE alerts SET
    last_ping_at = CAST(strftime('%s', substr(body, instr(body, '"last_ping_at":"') + 16, 19)) AS INTEGER),
    deadline_at = CAST(strftime('%s', substr(body, instr(body, '"deadline_at":"') + 15, 19)) AS INTEGER),
    ping_count = CAST(substr(body, instr(body, '"ping_count":') + 13, 20) AS INTEGER),
    outages = CASE type WHEN 'check.recovered' THEN 0 ELSE 1 END
WHERE state = 'pending' AND body <> '';
ALTER TABLE alerts DROP COLUMN body;

DROP TABLE rates;
DROP TABLE registrations;
