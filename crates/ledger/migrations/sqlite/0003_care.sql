-- Looking after a ledger: old reservations go, and what a hand broke is mended.

-- How far retention came: of the movements up to this one only those remain whose reservation remains, or that an
-- operator's command made. What all of them added up to is in `stock_base`.
CREATE TABLE retention (
  one      INTEGER PRIMARY KEY CHECK (one = 1),
  movement INTEGER NOT NULL
) STRICT;
INSERT INTO retention VALUES (1, 0);

-- The counters after the movement that retention came to, and the sold units of reservations that are gone.
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

-- What reservations that are gone count towards their owners' usage, if `era` is still the SKU's.
CREATE TABLE used_base (
  tenant INTEGER NOT NULL,
  owner  TEXT    NOT NULL,
  sku    INTEGER NOT NULL,
  era    INTEGER NOT NULL,
  used   INTEGER NOT NULL CHECK (used >= 0),
  PRIMARY KEY (tenant, owner, sku)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_base_by_sku ON used_base (sku);

-- One more kind of movement: repair. Only the CHECK widens, so the rows need not be written again.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'kind BETWEEN 0 AND 14', 'kind BETWEEN 0 AND 15')
WHERE type = 'table' AND name = 'movements';
PRAGMA writable_schema = RESET;
