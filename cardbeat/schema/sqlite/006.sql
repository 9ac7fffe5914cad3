-- What one process at a time holds, of all that have the database open, where they run on several machines: which one,
-- since how many others, and until which Unix second if it does not say that it goes on.
CREATE TABLE leases (
    name   TEXT    PRIMARY KEY,
    holder TEXT    NOT NULL,
    epoch  INTEGER NOT NULL,
    until  REAL    NOT NULL
) STRICT;
