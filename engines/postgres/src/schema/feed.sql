-- The log, for those who follow it.
--
-- Its last revision is never asked for as a maximum: a plan that was made while the log was short
-- may read all of it, and would be kept while the log grows.

-- A revision below which every transaction of a store has ended. A statement that begins after this
-- one sees all of their changes.
--
-- The quick answer is the oldest transaction that is running anywhere in the cluster. The exact one
-- looks at this store alone, at the cost of reading the table of locks. Why it is right: let a
-- transaction of this store have a number below `upcoming`, as read here, and still run when the
-- reader's snapshot is taken, later. It had the shared lock before it had its number, hence before
-- `upcoming` was read, and releases it only after it has become visible, hence after that snapshot. So
-- it is among the locks that are read in between, with its number; or, for a moment, without: it
-- has a number before it is in the table of locks. Then the quick answer is the safe one.
CREATE FUNCTION keyward.settled(in_store int, exact boolean) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    base bigint;
    upcoming bigint;
    oldest bigint;
    unnumbered boolean;
BEGIN
    SELECT s.base INTO base FROM keyward.stores s WHERE s.id = in_store;
    IF exact THEN
        upcoming := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
        WITH locks AS MATERIALIZED (
            SELECT l.pid, l.locktype, l.classid, l.objid, l.objsubid, l.transactionid
            FROM pg_lock_status() l
            WHERE l.granted AND (
                (l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock')
                OR (l.locktype = 'advisory' AND l.database =
                    (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())))
        ), writers AS (
            -- How far before `upcoming` each is numbered. The table of locks has only 32 bits of the
            -- number; in the upper half are those that come after `upcoming`.
            SELECT (upcoming - t.transactionid::text::bigint) & 4294967295 AS before
            FROM locks w
            LEFT JOIN locks t ON t.pid = w.pid AND t.locktype = 'transactionid'
            WHERE w.locktype = 'advisory' AND w.classid = 1801812343
                AND w.objid::bigint = in_store AND w.objsubid = 2
                AND w.pid <> pg_backend_pid()
        )
        SELECT min(upcoming - before) FILTER (WHERE before BETWEEN 1 AND 2147483647),
                coalesce(bool_or(before IS NULL), false)
            INTO oldest, unnumbered
            FROM writers;
        IF NOT unnumbered THEN
            RETURN base + coalesce(oldest, upcoming);
        END IF;
    END IF;
    RETURN base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
END $$;

-- Where a store is: the earliest revision that can be resumed from, and the latest up to which
-- everything can be told.
CREATE FUNCTION keyward.reached(in_store int, OUT trimmed bigint, OUT latest bigint)
LANGUAGE plpgsql AS $$
DECLARE
    horizon bigint := keyward.settled(in_store, false);
BEGIN
    FOR attempt IN 1..2 LOOP
        SELECT s.trimmed,
                (SELECT l.revision FROM keyward.log l WHERE l.store = s.id
                    ORDER BY l.revision DESC LIMIT 1)
            INTO trimmed, latest
            FROM keyward.stores s WHERE s.id = in_store;
        EXIT WHEN latest IS NULL OR latest < horizon;
        IF attempt = 1 THEN
            horizon := keyward.settled(in_store, true);
        ELSE
            latest := (SELECT l.revision FROM keyward.log l
                WHERE l.store = in_store AND l.revision < horizon
                ORDER BY l.revision DESC LIMIT 1);
        END IF;
    END LOOP;
    latest := greatest(trimmed, latest);
END $$;

-- The commits after a revision, as far as everything is settled: at most 256, and about a megabyte.
-- With each goes how far the log reaches; without any, that alone. A single statement reads both,
-- so that what is trimmed meanwhile is not mistaken for what never was.
CREATE FUNCTION keyward.changes(in_store int, in_after bigint, exact boolean)
RETURNS TABLE (
    trimmed bigint, latest bigint, horizon bigint, revision bigint, kinds text, keys bytea[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    limited bigint := keyward.settled(in_store, exact);
BEGIN
    RETURN QUERY
        SELECT s.trimmed,
            greatest(s.trimmed, (SELECT m.revision FROM keyward.log m WHERE m.store = s.id
                ORDER BY m.revision DESC LIMIT 1)),
            limited, l.revision, l.kinds, l.keys
        FROM keyward.stores s
        LEFT JOIN LATERAL (
            SELECT c.revision, c.kinds, c.keys,
                sum(pg_column_size(c.keys)) OVER (
                    ORDER BY c.revision ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS bytes
            FROM (
                SELECT r.revision, r.kinds, r.keys FROM keyward.log r
                WHERE r.store = in_store AND r.revision > in_after AND r.revision < limited
                ORDER BY r.revision LIMIT 256
            ) c
        ) l ON l.bytes IS NULL OR l.bytes < 1048576
        WHERE s.id = in_store
        ORDER BY l.revision;
END $$;
