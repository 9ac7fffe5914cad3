-- How many checks there are: kept, because counting a million of them at each look takes long. The triggers run in the
-- transaction of the change, so a total is exact after a crash and a cascade, and for every process. Each is for all rows
-- of a statement at once: one for each row would make the sweep several times as long.

CREATE TABLE totals_by_status (
    status TEXT   PRIMARY KEY,
    checks BIGINT NOT NULL
) WITH (fillfactor = 50);

INSERT INTO totals_by_status (status, checks)
VALUES
    ('on_time', (SELECT count(*) FROM checks WHERE status = 'on_time')),
    ('overdue', (SELECT count(*) FROM checks WHERE status = 'overdue'));

-- A key that never had a check has no row.
CREATE TABLE totals_by_key (
    api_key_id TEXT   PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    checks     BIGINT NOT NULL
) WITH (fillfactor = 50);

INSERT INTO totals_by_key (api_key_id, checks) SELECT api_key_id, count(*) FROM checks GROUP BY api_key_id;

-- Every transaction takes the rows of the totals in the same order, so that no two wait for each other.
CREATE FUNCTION add_to_totals_by_status(more_on_time BIGINT, more_overdue BIGINT) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF more_on_time <> 0 THEN
        UPDATE totals_by_status SET checks = checks + more_on_time WHERE status = 'on_time';
    END IF;
    IF more_overdue <> 0 THEN
        UPDATE totals_by_status SET checks = checks + more_overdue WHERE status = 'overdue';
    END IF;
END
$$;

CREATE FUNCTION count_checks_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO totals_by_key (api_key_id, checks)
    SELECT api_key_id, count(*) FROM changed GROUP BY api_key_id ORDER BY api_key_id
    ON CONFLICT (api_key_id) DO UPDATE SET checks = totals_by_key.checks + excluded.checks;
    PERFORM add_to_totals_by_status(
        count(*) FILTER (WHERE status = 'on_time'), count(*) FILTER (WHERE status = 'overdue')
    ) FROM changed;
    RETURN NULL;
END
$$;

CREATE FUNCTION count_checks_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE totals_by_key SET checks = checks - gone.number
    FROM (SELECT api_key_id, count(*) AS number FROM changed GROUP BY api_key_id) AS gone
    WHERE totals_by_key.api_key_id = gone.api_key_id;
    PERFORM add_to_totals_by_status(
        -count(*) FILTER (WHERE status = 'on_time'), -count(*) FILTER (WHERE status = 'overdue')
    ) FROM changed;
    RETURN NULL;
END
$$;

CREATE FUNCTION count_status_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more_overdue BIGINT;
BEGIN
    SELECT count(*) INTO more_overdue FROM changed WHERE status = 'overdue';
    SELECT more_overdue - count(*) INTO more_overdue FROM before WHERE status = 'overdue';
    IF more_overdue <> 0 THEN
        PERFORM add_to_totals_by_status(-more_overdue, more_overdue);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER checks_inserted AFTER INSERT ON checks REFERENCING NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_checks_inserted();

CREATE TRIGGER checks_deleted AFTER DELETE ON checks REFERENCING OLD TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_checks_deleted();

-- For pings too, as one that sees the rows can't be for a change of the status alone. Such a statement writes no total.
CREATE TRIGGER checks_status_changed AFTER UPDATE ON checks REFERENCING OLD TABLE AS before NEW TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION count_status_changed();
