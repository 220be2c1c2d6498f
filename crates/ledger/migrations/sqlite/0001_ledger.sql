-- The first schema. What shapes it: the cost of an order is the number of B-trees it touches and of pages it dirties
-- per group. So an order only appends to three tables by a growing number (reservations, allocations, movements);
-- texts that repeat are numbered once; and whatever is keyed by something that callers choose or needed only for
-- questions (by id, by owner, by SKU, what is live) is filled in later, in bulk, sorted by key: see `deferred`.
--
-- Times are milliseconds since 1970 UTC. Counts are 0..=2^53-1. A tag is 64 random bits stored as a signed integer with
-- the same bits.

-- Tenants, locations and actors: few, so numbered once.
CREATE TABLE names (
  n    INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Who may write a shard's history, and how far it is recorded. The UPDATE of this row is the fence.
CREATE TABLE shards (
  n           INTEGER PRIMARY KEY,
  epoch       INTEGER NOT NULL CHECK (epoch >= 1),
  mode        TEXT    NOT NULL CHECK (mode IN ('hot', 'sql', 'rebuild')),
  cursor      INTEGER NOT NULL CHECK (cursor >= 0),
  tag         INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  owner       TEXT    NOT NULL,
  movement    INTEGER NOT NULL CHECK (movement >= 0),    -- the highest movement number given by this shard
  reservation INTEGER NOT NULL CHECK (reservation >= 0)  -- the highest reservation number given by this shard
) STRICT;

-- The chain: each entry names the tag before it. `movement` and `reservation` are the highest numbers after it, which
-- makes a search by time a search in this small table.
CREATE TABLE entries (
  shard       INTEGER NOT NULL,
  seq         INTEGER NOT NULL CHECK (seq >= 1),
  epoch       INTEGER NOT NULL,
  tag         INTEGER NOT NULL,
  prev        INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  movement    INTEGER NOT NULL,
  reservation INTEGER NOT NULL,
  PRIMARY KEY (shard, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE skus (
  n               INTEGER PRIMARY KEY,
  shard           INTEGER NOT NULL,
  tenant          INTEGER NOT NULL,
  sku             TEXT    NOT NULL,
  revision        INTEGER NOT NULL CHECK (revision BETWEEN 0 AND 9007199254740991),
  limit_per_owner INTEGER CHECK (limit_per_owner BETWEEN 1 AND 9007199254740991),
  opens_at        INTEGER,
  closes_at       INTEGER,
  paused          INTEGER NOT NULL CHECK (paused IN (0, 1)),
  split           INTEGER NOT NULL CHECK (split IN (0, 1)),
  "group"         TEXT,
  era             INTEGER NOT NULL CHECK (era >= 0),     -- how often owner usage was reset
  UNIQUE (tenant, sku)
) STRICT;

-- The allocation order that an operator gave.
CREATE TABLE sku_order (
  sku      INTEGER NOT NULL,
  i        INTEGER NOT NULL,
  location INTEGER NOT NULL,
  PRIMARY KEY (sku, i)
) STRICT, WITHOUT ROWID;

-- The counters. The last line of defence against selling what is not there.
CREATE TABLE stock (
  sku          INTEGER NOT NULL,
  location     INTEGER NOT NULL,
  i            INTEGER NOT NULL,                         -- the order in which locations were created
  on_hand      INTEGER NOT NULL CHECK (on_hand BETWEEN 0 AND 9007199254740991),
  reserved     INTEGER NOT NULL CHECK (reserved BETWEEN 0 AND 9007199254740991),
  sold         INTEGER NOT NULL CHECK (sold BETWEEN 0 AND 9007199254740991),
  safety_stock INTEGER NOT NULL CHECK (safety_stock BETWEEN 0 AND 9007199254740991),
  version      INTEGER NOT NULL CHECK (version BETWEEN 0 AND 9007199254740991),
  PRIMARY KEY (sku, location),
  CHECK (reserved <= on_hand)
) STRICT, WITHOUT ROWID;

-- Reservations. `n` grows with the time of the grant. (tenant, id) is unique: a grant looks for the id in `ids` and
-- among the reservations that `ids` does not hold yet.
CREATE TABLE reservations (
  n          INTEGER PRIMARY KEY,
  shard      INTEGER NOT NULL,
  tenant     INTEGER NOT NULL,
  id         TEXT    NOT NULL,
  owner      TEXT,                                       -- NULL: a sealed id
  mode       INTEGER NOT NULL CHECK (mode IN (0, 1)),    -- reserve, deduct
  status     INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4), -- pending, confirmed, cancelled, expired, lost
  sealed     INTEGER NOT NULL CHECK (sealed IN (0, 1)),
  noted      INTEGER NOT NULL CHECK (noted IN (0, 1)),
  digest     BLOB    NOT NULL CHECK (length(digest) = 16),
  granted_at INTEGER NOT NULL,
  ends_at    INTEGER NOT NULL,
  movement   INTEGER NOT NULL                            -- its last movement; each names the one before
) STRICT;

-- What a reservation took from where, in line order: key = reservation * 16384 + place. Rows with the same `line` are
-- one line.
CREATE TABLE allocations (
  key       INTEGER PRIMARY KEY,
  line      INTEGER NOT NULL CHECK (line >= 0),
  sku       INTEGER NOT NULL,
  asked     INTEGER,                                     -- the location asked for, if one was
  era       INTEGER NOT NULL CHECK (era >= 0),
  location  INTEGER NOT NULL,
  quantity  INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 9007199254740991),
  confirmed INTEGER NOT NULL CHECK (confirmed BETWEEN 0 AND quantity), -- returned units included
  returned  INTEGER NOT NULL CHECK (returned BETWEEN 0 AND confirmed)
) STRICT;

CREATE TABLE returns (
  n           INTEGER PRIMARY KEY,
  shard       INTEGER NOT NULL,
  tenant      INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  reservation INTEGER NOT NULL,
  digest      BLOB    NOT NULL CHECK (length(digest) = 16),
  at          INTEGER NOT NULL,
  UNIQUE (tenant, id)
) STRICT;

CREATE TABLE return_lines (
  "return" INTEGER NOT NULL,
  i        INTEGER NOT NULL,
  sku      INTEGER NOT NULL,
  asked    INTEGER,
  quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY ("return", i)
) STRICT, WITHOUT ROWID;

CREATE TABLE stock_commands (
  tenant   INTEGER NOT NULL,
  id       TEXT    NOT NULL,
  shard    INTEGER NOT NULL,
  digest   BLOB    NOT NULL CHECK (length(digest) = 16),
  sku      INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Who changed what, why, and the counters after. Nothing here is ever changed or removed. One row per
-- (SKU, location) that a change moved, or one row without counters.
CREATE TABLE movements (
  number       INTEGER PRIMARY KEY,
  at           INTEGER NOT NULL,
  kind         INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 14),
  actor        INTEGER NOT NULL,
  reason       TEXT    NOT NULL,
  reservation  INTEGER,
  before       INTEGER,                                  -- the reservation's movement before this one
  command      TEXT,                                     -- the id of the return or stock command
  sku          INTEGER,
  location     INTEGER,
  on_hand_by   INTEGER NOT NULL,                         -- changes
  reserved_by  INTEGER NOT NULL,
  sold_by      INTEGER NOT NULL,
  on_hand      INTEGER,                                  -- counters after
  reserved     INTEGER,
  sold         INTEGER,
  safety_stock INTEGER,
  version      INTEGER
) STRICT;

-- How far the tables below are filled. Movements with higher numbers are the tail: whoever asks reads the tables and
-- then the tail, which is bounded.
CREATE TABLE deferred (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  indexed     INTEGER NOT NULL,                          -- a movement's number
  reservation INTEGER NOT NULL                           -- the highest reservation then
) STRICT;
INSERT INTO deferred VALUES (1, 0, 0);

-- Every reservation by its id.
CREATE TABLE ids (
  tenant      INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  reservation INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Every reservation by its owner, and what it counts towards the owner's usage of a SKU, if `era` is still the SKU's.
CREATE TABLE owners (
  tenant      INTEGER NOT NULL,
  owner       TEXT    NOT NULL,
  reservation INTEGER NOT NULL,
  sku         INTEGER NOT NULL,
  era         INTEGER NOT NULL,
  used        INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (tenant, owner, reservation, sku)
) STRICT, WITHOUT ROWID;

-- Reservations that were pending when the tables were filled.
CREATE TABLE live (
  reservation INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE sku_movements (
  sku      INTEGER NOT NULL,
  movement INTEGER NOT NULL,
  PRIMARY KEY (sku, movement)
) STRICT, WITHOUT ROWID;
