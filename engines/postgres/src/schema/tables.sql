-- Everything the PostgreSQL engine keeps in a database: version 1 of the schema.
--
-- Stores share these tables. A store is a row of keyward.stores, and its number is the first column
-- of every key.
--
-- Revisions
-- ---------
-- The revision of a commit, which is also the version of everything it writes, is the store's base
-- plus the transaction's number (xid8: 64 bits, given out once in the life of a cluster). So there
-- is no counter row on which commits would queue up, each holding it until its own sync: they run
-- side by side and share syncs.
--
-- The price is that transactions end in another order than they are numbered. Whoever follows the
-- log must not pass a number that belongs to a transaction of this store which has not ended, or
-- its changes would never be told. keyward.settled says how far that is safe. It looks at the
-- transactions of this store only: a long transaction elsewhere in the cluster holds up nobody.
-- For that, every commit first takes a shared advisory lock on (1801812343, store), and only then
-- gets its number.

CREATE SCHEMA IF NOT EXISTS keyward;

CREATE TABLE keyward.schema (
    version int NOT NULL
);
INSERT INTO keyward.schema VALUES (1);

CREATE TABLE keyward.stores (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    -- What is added to a transaction's number. Zero, until the tables are carried to a cluster whose
    -- numbers are lower: see keyward.attach.
    base bigint NOT NULL DEFAULT 0,
    -- The log is kept from here on: the earliest revision that can be resumed from.
    trimmed bigint NOT NULL,
    -- Until when somebody is listening for commits; renewed by those who do.
    watched timestamptz NOT NULL DEFAULT '-infinity'
);

CREATE TABLE keyward.entries (
    store int NOT NULL,
    -- bytea orders by bytes, whatever the collation of the database.
    key bytea NOT NULL,
    version bigint NOT NULL,
    -- JSON text as it was given; jsonb would change digits and the order of names.
    value bytea NOT NULL,
    metadata bytea,
    expires timestamptz,
    PRIMARY KEY (store, key)
) WITH (fillfactor = 90);

CREATE INDEX entries_expires ON keyward.entries (store, expires) WHERE expires IS NOT NULL;

-- One row for each commit that changed something.
CREATE TABLE keyward.log (
    store int NOT NULL,
    revision bigint NOT NULL,
    at timestamptz NOT NULL,
    -- For each key, how it changed: p(ut), d(eleted) or e(xpired).
    kinds text COLLATE "C" NOT NULL,
    keys bytea[] NOT NULL,
    PRIMARY KEY (store, revision)
);
