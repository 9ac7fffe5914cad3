-- The first alert of each queue, of the index `alerts_due`: one step for a key, not for an alert.
WITH RECURSIVE found (is_new, key_id, due_at) AS (
    (
        SELECT is_new, key_id, next_attempt_at FROM alerts
        WHERE state = 'pending' AND next_attempt_at IS NOT NULL
        ORDER BY is_new, key_id, next_attempt_at LIMIT 1
    )
    UNION ALL
    SELECT next.is_new, next.key_id, next.next_attempt_at FROM found CROSS JOIN LATERAL (
        SELECT is_new, key_id, next_attempt_at FROM alerts
        WHERE state = 'pending' AND next_attempt_at IS NOT NULL
            AND (is_new, key_id) > (found.is_new, found.key_id)
        ORDER BY is_new, key_id, next_attempt_at LIMIT 1
    ) AS next
)
SELECT key_id, is_new, due_at, (
    SELECT tier FROM keys WHERE keys.id = found.key_id AND revoked_at IS NULL
) AS tier
FROM found
