-- A revoked key is dead at once; its row stays until the last of its checks is gone, which takes many short writes.
ALTER TABLE keys ADD COLUMN revoked_at BIGINT;
CREATE INDEX keys_revoked ON keys (seq) WHERE revoked_at IS NOT NULL;

-- The secret before the present one, and until when alerts are signed with it too.
ALTER TABLE keys ADD COLUMN old_webhook_secret TEXT;
ALTER TABLE keys ADD COLUMN old_webhook_secret_until BIGINT;
