-- Several processes on one file.

-- Who records a shard, and until when by this host's clock. It only saves work: the fence keeps the chain right.
CREATE TABLE leases (
  shard INTEGER PRIMARY KEY,
  owner TEXT    NOT NULL,
  until INTEGER NOT NULL
) STRICT;

-- The last entry of a shard that was pruned: the chain in `entries` goes on after it.
CREATE TABLE pruned (
  shard       INTEGER PRIMARY KEY,
  seq         INTEGER NOT NULL CHECK (seq >= 1),
  epoch       INTEGER NOT NULL,
  tag         INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  movement    INTEGER NOT NULL,
  reservation INTEGER NOT NULL
) STRICT;
