-- `delivery` is what came of the last attempt to deliver an alert of the check to its present webhook URL; NULL where
-- there was none. An alert's result and this are written in one transaction.

ALTER TABLE checks ADD COLUMN delivery TEXT CHECK (delivery IN ('ok', 'failing'));

-- A check keeps this many waiting tests; older ones, taken before there was a limit, would wait for months.
UPDATE alerts
SET state = 'failed', next_attempt_at = NULL, last_error = 'It was given up: 5 newer test alerts were waiting.'
WHERE seq IN (
    SELECT seq
    FROM (
        SELECT seq, row_number() OVER (PARTITION BY check_id ORDER BY seq DESC) AS place
        FROM alerts
        WHERE type = 'check.test' AND state = 'pending'
    )
    WHERE place > 5
);

-- The body of a finished alert is empty.
UPDATE alerts SET body = '' WHERE state <> 'pending';

UPDATE checks
SET delivery = (
    SELECT iif(state = 'delivered', 'ok', 'failing')
    FROM alerts
    WHERE check_id = checks.id AND attempts > 0
    ORDER BY seq DESC
    LIMIT 1
)
WHERE webhook_url IS NOT NULL;

CREATE INDEX alerts_waiting ON alerts (check_id, outage) WHERE state = 'pending';

-- When each test alert of the last hour was taken, by key: a check's history forgets them earlier, and so does a
-- check that is deleted.
CREATE TABLE tests_taken (
    api_key_id TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    taken_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX tests_taken_by_key ON tests_taken (api_key_id, taken_at);

-- A name holds no characters that control the direction of text (Unicode's Bidi_Control): they are taken out.
WITH RECURSIVE
controls (text) AS (
    VALUES (char(1564, 8206, 8207, 8234, 8235, 8236, 8237, 8238, 8294, 8295, 8296, 8297))
),
cut (seq, place, name) AS (
    SELECT seq, 0, name FROM checks, controls WHERE name GLOB '*[' || text || ']*'
    UNION ALL
    SELECT seq, place + 1, replace(name, substr(text, place + 1, 1), '') FROM cut, controls WHERE place < length(text)
)
UPDATE checks
SET name = coalesce(nullif(trim(cut.name), ''), 'unnamed')
FROM cut, controls
WHERE checks.seq = cut.seq AND place = length(text);
