-- The first alert of each queue, of the index `alerts_due`: one step for a key, not for an alert.
-- For `(is_new, key_id) > (found.is_new, found.key_id)` SQLite would search by `is_new` alone.
WITH RECURSIVE found (is_new, key_id, due_at, seq) AS (
    SELECT * FROM (
        SELECT is_new, key_id, next_attempt_at, seq FROM alerts
        WHERE state = 'pending' AND next_attempt_at IS NOT NULL
        ORDER BY is_new, key_id, next_attempt_at LIMIT 1
    )
    UNION ALL
    SELECT next.is_new, next.key_id, next.next_attempt_at, next.seq
    FROM found JOIN alerts AS next ON next.seq = coalesce(
        (
            SELECT seq FROM alerts
            WHERE state = 'pending' AND next_attempt_at IS NOT NULL
                AND is_new = found.is_new AND key_id > found.key_id
            ORDER BY is_new, key_id, next_attempt_at LIMIT 1
        ),
        (
            SELECT seq FROM alerts
            WHERE state = 'pending' AND next_attempt_at IS NOT NULL AND is_new > found.is_new
            ORDER BY is_new, key_id, next_attempt_at LIMIT 1
        )
    )
)
SELECT key_id, is_new, due_at, (
    SELECT tier FROM keys WHERE keys.id = found.key_id AND revoked_at IS NULL
) AS tier
FROM found
