PRAGMA application_id = 1400138596;

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

CREATE TABLE deferred (
  one         INTEGER PRIMARY KEY CHECK (one = 1),
  indexed     INTEGER NOT NULL,                          -- a movement's number
  reservation INTEGER NOT NULL                           -- the highest reservation then
) STRICT;

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

CREATE TABLE ids (
  tenant      INTEGER NOT NULL,
  id          TEXT    NOT NULL,
  reservation INTEGER NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
  shard INTEGER PRIMARY KEY,
  owner TEXT    NOT NULL,
  until INTEGER NOT NULL
) STRICT;

CREATE TABLE live (
  reservation INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE migrations (
  version  INTEGER PRIMARY KEY,
  name     TEXT    NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE movements (
  number       INTEGER PRIMARY KEY,
  at           INTEGER NOT NULL,
  kind         INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 15),
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

CREATE TABLE names (
  n    INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE owners (
  tenant      INTEGER NOT NULL,
  owner       TEXT    NOT NULL,
  reservation INTEGER NOT NULL,
  sku         INTEGER NOT NULL,
  era         INTEGER NOT NULL,
  used        INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (tenant, owner, reservation, sku)
) STRICT, WITHOUT ROWID;

CREATE TABLE pruned (
  shard       INTEGER PRIMARY KEY,
  seq         INTEGER NOT NULL CHECK (seq >= 1),
  epoch       INTEGER NOT NULL,
  tag         INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  movement    INTEGER NOT NULL,
  reservation INTEGER NOT NULL
) STRICT;

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

CREATE TABLE retention (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  movement INTEGER NOT NULL
) STRICT;

CREATE TABLE return_lines (
  "return" INTEGER NOT NULL,
  i        INTEGER NOT NULL,
  sku      INTEGER NOT NULL,
  asked    INTEGER,
  quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 9007199254740991),
  PRIMARY KEY ("return", i)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE sku_movements (
  sku      INTEGER NOT NULL,
  movement INTEGER NOT NULL,
  PRIMARY KEY (sku, movement)
) STRICT, WITHOUT ROWID;

CREATE TABLE sku_order (
  sku      INTEGER NOT NULL,
  i        INTEGER NOT NULL,
  location INTEGER NOT NULL,
  PRIMARY KEY (sku, i)
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

CREATE TABLE stock_base (
  sku          INTEGER NOT NULL,
  location     INTEGER NOT NULL,
  on_hand      INTEGER NOT NULL,
  reserved     INTEGER NOT NULL,
  sold         INTEGER NOT NULL,
  safety_stock INTEGER NOT NULL,
  version      INTEGER NOT NULL,
  gone         INTEGER NOT NULL CHECK (gone >= 0),
  PRIMARY KEY (sku, location)
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

CREATE TABLE used_base (
  tenant INTEGER NOT NULL,
  owner  TEXT    NOT NULL,
  sku    INTEGER NOT NULL,
  era    INTEGER NOT NULL,
  used   INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (tenant, owner, sku)
) STRICT, WITHOUT ROWID;

CREATE INDEX used_base_by_sku ON used_base (sku);
