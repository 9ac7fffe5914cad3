-- Schema 9. `read_hash` and `read_prefix` are of a second value of a checks key, which may read and change nothing; NULL
-- without one.
ALTER TABLE keys ADD COLUMN read_hash BYTEA;
ALTER TABLE keys ADD COLUMN read_prefix TEXT;
CREATE UNIQUE INDEX keys_read ON keys (read_hash) WHERE read_hash IS NOT NULL;
