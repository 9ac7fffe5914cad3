-- What one process at a time holds, of all that have the database open, where they run on several machines: which one,
-- since how many others, and until which Unix second if it does not say that it goes on.
CREATE TABLE leases (
    name   text             PRIMARY KEY,
    holder text             NOT NULL,
    epoch  bigint           NOT NULL,
    until  double precision NOT NULL
);
