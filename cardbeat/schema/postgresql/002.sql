-- `delivery` is what came of the last attempt to deliver an alert of the check to its present webhook URL; NULL where
-- there was none. An alert's result and this are written in one transaction.

ALTER TABLE checks ADD COLUMN delivery TEXT CHECK (delivery IN ('ok', 'failing'));

CREATE INDEX alerts_waiting ON alerts (check_id, outage) WHERE state = 'pending';

-- When each test alert of the last hour was taken, by key: a check's history forgets them earlier, and so does a
-- check that is deleted.
CREATE TABLE tests_taken (
    api_key_id TEXT   NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    taken_at   BIGINT NOT NULL
);

CREATE INDEX tests_taken_by_key ON tests_taken (api_key_id, taken_at);
