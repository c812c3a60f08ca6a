-- Opening stores, and housekeeping.

-- Frees the space of some expired entries, and trims some of the log that is older than asked for.
-- Says whether there may be more to do. One at a time does this for a store; others let it.
CREATE FUNCTION keyward.tidy(in_store int, in_history interval) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    started CONSTANT timestamptz := clock_timestamp();
    batch CONSTANT int := 256;
    revision bigint;
    ended bytea[];
    settled bigint;
    last bigint;
    passed bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(1801812344, in_store) THEN
        RETURN false;
    END IF;

    PERFORM FROM keyward.entries e WHERE e.store = in_store AND e.expires <= started LIMIT 1;
    IF FOUND THEN
        SELECT b.revision INTO revision FROM keyward.enter(in_store) b;
        -- Rows that others have locked are left for the next time. A row that was written again
        -- since is looked at as it is now, and stays if it ends later.
        SELECT array_agg(d.key) INTO ended
            FROM (
                SELECT e.key FROM keyward.entries e
                WHERE e.store = in_store AND e.expires <= started
                ORDER BY e.expires LIMIT batch
                FOR UPDATE SKIP LOCKED
            ) d;
        IF ended IS NOT NULL THEN
            FOR i IN 1..cardinality(ended) LOOP
                DELETE FROM keyward.entries e WHERE e.store = in_store AND e.key = ended[i];
            END LOOP;
            INSERT INTO keyward.log
                VALUES (in_store, revision, clock_timestamp(), repeat('e', cardinality(ended)), ended);
        END IF;
    END IF;

    settled := keyward.settled(in_store, false);
    SELECT max(o.revision), count(*) INTO last, passed
        FROM (
            SELECT l.revision, l.at FROM keyward.log l
            WHERE l.store = in_store AND l.revision < settled
                AND l.revision > (SELECT s.trimmed FROM keyward.stores s WHERE s.id = in_store)
            ORDER BY l.revision LIMIT batch
        ) o
        WHERE o.at < started - in_history;
    IF last IS NOT NULL THEN
        UPDATE keyward.stores s SET trimmed = last WHERE s.id = in_store;
        DELETE FROM keyward.log l WHERE l.store = in_store AND l.revision <= last;
    END IF;
    RETURN coalesce(cardinality(ended), 0) = batch OR passed = batch;
END $$;

-- Makes sure that revisions go on from where they were. They do by themselves, until the tables are
-- restored into another cluster whose transactions have lower numbers: then the base is raised, so
-- that no version comes twice. Looked at for every connection, since a database may be replaced
-- while it is in use. Every write is in the log, or was until it was trimmed, so the log knows the
-- highest revision. Every number still to be given out is at least xmax, and every one of a
-- transaction that can be seen is below it.
CREATE FUNCTION keyward.attach(in_store int) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM keyward.stores s
        WHERE s.id = in_store AND s.base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            <= greatest(s.trimmed, (SELECT l.revision FROM keyward.log l WHERE l.store = s.id
                ORDER BY l.revision DESC LIMIT 1));
    IF NOT FOUND THEN
        RETURN;
    END IF;
    -- Alone: no commit is under way with the old base.
    PERFORM pg_advisory_xact_lock(1801812343, in_store);
    UPDATE keyward.stores s
        SET base = greatest(s.trimmed, (SELECT l.revision FROM keyward.log l WHERE l.store = s.id
            ORDER BY l.revision DESC LIMIT 1))
        WHERE s.id = in_store AND s.base + pg_snapshot_xmax(pg_current_snapshot())::text::bigint
            <= greatest(s.trimmed, (SELECT l.revision FROM keyward.log l WHERE l.store = s.id
                ORDER BY l.revision DESC LIMIT 1));
END $$;

-- The number of a store, which is created if there is none of this name.
CREATE FUNCTION keyward.open(in_name text, OUT id int, OUT watched boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    SELECT s.id, s.watched > clock_timestamp() INTO id, watched
        FROM keyward.stores s WHERE s.name = in_name;
    IF FOUND THEN
        PERFORM keyward.attach(id);
        RETURN;
    END IF;
    INSERT INTO keyward.stores (name, trimmed)
        VALUES (in_name, pg_current_xact_id()::text::bigint)
        ON CONFLICT (name) DO NOTHING;
    SELECT s.id, s.watched > clock_timestamp() INTO id, watched
        FROM keyward.stores s WHERE s.name = in_name;
END $$;
