-- A database of schema 7, made and filled by cardbeat 1.0.0. The value of its checks key is sk_ and six times schema7.
PRAGMA user_version = 7;
PRAGMA application_id = 1128416577;
BEGIN TRANSACTION;
CREATE TABLE alerts (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    check_id        TEXT    NOT NULL REFERENCES checks (id) ON DELETE CASCADE,
    type            TEXT    NOT NULL CHECK (type IN ('check.overdue', 'check.recovered', 'check.test')),
    outage          INTEGER,
    body            TEXT    NOT NULL,
    state           TEXT    NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    last_status     INTEGER,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    next_attempt_at INTEGER,
    UNIQUE (check_id, outage, type)
) STRICT;
INSERT INTO "alerts" VALUES(1,'msg_b4e0e9da3c87e4da742767bb43e1efb1','852bbebf9add7b1a7106981b92bf9123','check.overdue',1,'{"type":"check.overdue","timestamp":"2027-01-15T08:00:10Z","data":{"check":{"id":"852bbebf9add7b1a7106981b92bf9123","api_key_id":"key_c58407bb2083cf06","name":"check 1","period_seconds":1,"grace_seconds":0,"webhook_url":"https://hooks.example/x","status":"overdue","last_ping_at":null,"deadline_at":"2027-01-15 08:00:01","ping_count":0,"created_at":"2027-01-15 08:00:00","updated_at":"2027-01-15 08:00:00","version":1,"ping_url":"https://beats.example/ping/852bbebf9add7b1a7106981b92bf9123","delivery":null}},"text":"\"check 1\" is overdue: no ping yet, expected by 2027-01-15 08:00:01 UTC.","content":"\"check 1\" is overdue: no ping yet, expected by 2027-01-15 08:00:01 UTC."}','pending',0,NULL,NULL,1800000010,1800000010);
INSERT INTO "alerts" VALUES(2,'msg_36434ff9b407948de8052c0905e72dae','e2b908b343af908a1d9cfc655c2ad289','check.overdue',1,'{"type":"check.overdue","timestamp":"2027-01-15T08:00:10Z","data":{"check":{"id":"e2b908b343af908a1d9cfc655c2ad289","api_key_id":"key_c58407bb2083cf06","name":"check 2","period_seconds":2,"grace_seconds":0,"webhook_url":"https://hooks.example/x","status":"overdue","last_ping_at":null,"deadline_at":"2027-01-15 08:00:02","ping_count":0,"created_at":"2027-01-15 08:00:00","updated_at":"2027-01-15 08:00:00","version":1,"ping_url":"https://beats.example/ping/e2b908b343af908a1d9cfc655c2ad289","delivery":null}},"text":"\"check 2\" is overdue: no ping yet, expected by 2027-01-15 08:00:02 UTC.","content":"\"check 2\" is overdue: no ping yet, expected by 2027-01-15 08:00:02 UTC."}','pending',0,NULL,NULL,1800000010,1800000010);
INSERT INTO "alerts" VALUES(3,'msg_89135fde88fc6f633f5f93300f23ee18','852bbebf9add7b1a7106981b92bf9123','check.recovered',1,'{"type":"check.recovered","timestamp":"2027-01-15T08:00:10Z","data":{"check":{"id":"852bbebf9add7b1a7106981b92bf9123","api_key_id":"key_c58407bb2083cf06","name":"check 1","period_seconds":1,"grace_seconds":0,"webhook_url":"https://hooks.example/x","status":"on_time","last_ping_at":"2027-01-15 08:00:10","deadline_at":"2027-01-15 08:00:11","ping_count":1,"created_at":"2027-01-15 08:00:00","updated_at":"2027-01-15 08:00:00","version":1,"ping_url":"https://beats.example/ping/852bbebf9add7b1a7106981b92bf9123","delivery":null}},"text":"\"check 1\" has recovered: pinged again, next ping expected by 2027-01-15 08:00:11 UTC.","content":"\"check 1\" has recovered: pinged again, next ping expected by 2027-01-15 08:00:11 UTC."}','pending',0,NULL,NULL,1800000010,1800000010);
INSERT INTO "alerts" VALUES(4,'msg_0fe7c1ef8ee4f27290496fb8c4a6accd','58142577795c9044dfc7111de34f1b3b','check.test',NULL,'{"type":"check.test","timestamp":"2027-01-15T08:00:10Z","data":{"check":{"id":"58142577795c9044dfc7111de34f1b3b","api_key_id":"key_c58407bb2083cf06","name":"check 3","period_seconds":3600,"grace_seconds":0,"webhook_url":"https://hooks.example/x","status":"on_time","last_ping_at":null,"deadline_at":"2027-01-15 09:00:10","ping_count":0,"created_at":"2027-01-15 08:00:10","updated_at":"2027-01-15 08:00:10","version":1,"ping_url":"https://beats.example/ping/58142577795c9044dfc7111de34f1b3b","delivery":null}},"text":"This is a test alert for \"check 3\"; its alerts arrive here.","content":"This is a test alert for \"check 3\"; its alerts arrive here."}','pending',0,NULL,NULL,1800000010,1800000010);
CREATE TABLE checks (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    id             TEXT    NOT NULL UNIQUE,
    api_key_id     TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    name           TEXT    NOT NULL,
    period_seconds INTEGER NOT NULL,
    grace_seconds  INTEGER NOT NULL,
    webhook_url    TEXT,
    status         TEXT    NOT NULL DEFAULT 'on_time' CHECK (status IN ('on_time', 'overdue')),
    outage         INTEGER NOT NULL DEFAULT 0,
    clock_from     INTEGER NOT NULL,
    deadline_at    INTEGER NOT NULL GENERATED ALWAYS AS (clock_from + period_seconds + grace_seconds) STORED,
    last_ping_at   INTEGER,
    ping_count     INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    version        INTEGER NOT NULL DEFAULT 1
, delivery TEXT CHECK (delivery IN ('ok', 'failing'))) STRICT;
INSERT INTO "checks" VALUES(1,'852bbebf9add7b1a7106981b92bf9123','key_c58407bb2083cf06','check 1',1,0,'https://hooks.example/x','on_time',1,1800000010,1800000010,1,1800000000,1800000000,1,NULL);
INSERT INTO "checks" VALUES(2,'e2b908b343af908a1d9cfc655c2ad289','key_c58407bb2083cf06','check 2',2,0,'https://hooks.example/x/2','overdue',1,1800000000,NULL,0,1800000000,1800000010,2,NULL);
INSERT INTO "checks" VALUES(3,'58142577795c9044dfc7111de34f1b3b','key_c58407bb2083cf06','check 3',3600,0,'https://hooks.example/x','on_time',0,1800000010,NULL,0,1800000010,1800000010,1,NULL);
CREATE TABLE keys (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    scope          TEXT    NOT NULL CHECK (scope IN ('cards', 'checks')),
    tier           TEXT    NOT NULL,
    email          TEXT,
    hash           BLOB    NOT NULL UNIQUE,
    prefix         TEXT    NOT NULL,
    webhook_secret TEXT,
    created_at     INTEGER NOT NULL
, revoked_at INTEGER, old_webhook_secret TEXT, old_webhook_secret_until INTEGER) STRICT;
INSERT INTO "keys" VALUES(1,'key_c58407bb2083cf06','checks','free','ops@example.com',X'7018A9E27A0D1E61DEADA385FDF0DE4D8AA3DB33808D3D20417CEFB5EAE43A6F','sk_schem','whsec_YQ==',1800000000,NULL,'whsec_Yg==',1800086410);
INSERT INTO "keys" VALUES(2,'key_791fb7f9f76a0917','cards','free',NULL,X'5D79E353A85013AEB847474752AD809BAE84789638A66656197B2076507D425A','sk_lw0bn',NULL,1800000010,NULL,NULL,NULL);
INSERT INTO "keys" VALUES(3,'key_0bce22bfdf8fcdca','checks','free',NULL,X'B075710F34B6B15F91EE2B1552090E3208BCF6C585A38D5745D4D4C6F3A69A6C','sk_Gylfz',NULL,1800000010,1800000010,NULL,NULL);
CREATE TABLE leases (
    name   TEXT    PRIMARY KEY,
    holder TEXT    NOT NULL,
    epoch  INTEGER NOT NULL,
    until  REAL    NOT NULL
) STRICT;
CREATE TABLE monitor (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO "monitor" VALUES('last_sweep_at',1800000010);
INSERT INTO "monitor" VALUES('last_sweep_monotonic',5010);
INSERT INTO "monitor" VALUES('key_changes',1);
CREATE TABLE moves (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    check_seq INTEGER NOT NULL UNIQUE REFERENCES checks (seq) ON DELETE CASCADE
) STRICT;
INSERT INTO "moves" VALUES(1,2);
CREATE TABLE rates (
    name           TEXT PRIMARY KEY,
    whole_again_at REAL NOT NULL
) STRICT;
CREATE TABLE registrations (
    network  TEXT NOT NULL,
    taken_at REAL NOT NULL
) STRICT;
CREATE TABLE tests_taken (
    api_key_id TEXT    NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
    taken_at   INTEGER NOT NULL
) STRICT;
INSERT INTO "tests_taken" VALUES('key_c58407bb2083cf06',1800000010);
CREATE TABLE totals_by_key (
    api_key_id TEXT    PRIMARY KEY REFERENCES keys (id) ON DELETE CASCADE,
    checks     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "totals_by_key" VALUES('key_c58407bb2083cf06',3);
CREATE TABLE totals_by_status (
    status TEXT    PRIMARY KEY,
    checks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "totals_by_status" VALUES('on_time',2);
INSERT INTO "totals_by_status" VALUES('overdue',1);
CREATE INDEX checks_by_key ON checks (api_key_id, seq);
CREATE INDEX checks_due ON checks (deadline_at) WHERE status = 'on_time';
CREATE INDEX alerts_by_check ON alerts (check_id, seq);
CREATE INDEX alerts_pending ON alerts (state, seq) WHERE state = 'pending';
CREATE INDEX alerts_waiting ON alerts (check_id, outage) WHERE state = 'pending';
CREATE INDEX tests_taken_by_key ON tests_taken (api_key_id, taken_at);
CREATE INDEX keys_revoked ON keys (seq) WHERE revoked_at IS NOT NULL;
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
CREATE INDEX alerts_due ON alerts (next_attempt_at) WHERE state = 'pending';
CREATE INDEX keys_old_secrets ON keys (old_webhook_secret_until) WHERE old_webhook_secret_until IS NOT NULL;
CREATE INDEX registrations_by_network ON registrations (network, taken_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('checks',4);
INSERT INTO "sqlite_sequence" VALUES('alerts',4);
INSERT INTO "sqlite_sequence" VALUES('moves',1);
COMMIT;
