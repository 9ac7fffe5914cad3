-- What all servers have taken together of the limits of a rate, where several machines serve one database; one machine
-- counts in memory. A row is needed for a minute after its time, and then goes.

-- When the burst of a key's renders will be whole again.
CREATE TABLE rates (
    name           TEXT PRIMARY KEY,
    whole_again_at REAL NOT NULL
) STRICT;

-- When each key was issued to an address, or to a network of version 6.
CREATE TABLE registrations (
    network  TEXT NOT NULL,
    taken_at REAL NOT NULL
) STRICT;

CREATE INDEX registrations_by_network ON registrations (network, taken_at);
