-- How many checks there are: kept, because counting a million of them at each look keeps a snapshot of the database in
-- use for long. The triggers run in the transaction of the change, so a total is exact after a crash and a cascade, and
-- for every process. A ping of a check that is on time sets no status and so fires none.

CREATE TABLE totals_by_status (
    status TEXT    PRIMARY KEY,
    checks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals_by_status (status, checks)
VALUES
    ('on_time', (SELECT count(*) FROM checks WHERE status = 'on_time')),
    ('overdue', (SELECT count(*) FROM checks WHERE status = 'overdue'));

-- A key that never had a check has no row.
CREATE TABLE totals_by_key (
    api_key_id TEXT    PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    checks     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO totals_by_key (api_key_id, checks) SELECT api_key_id, count(*) FROM checks GROUP BY api_key_id;

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
