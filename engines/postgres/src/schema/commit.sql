-- Commits, each a call of one function: hence one transaction, and one round trip.
--
-- A row is always looked for by its store and its key, one at a time. With key = ANY, or in a join, a
-- plan that was made while the table was small may go through the whole store, and would be kept
-- while the store grows.

-- Begins a transaction that changes a store, and gives its revision.
CREATE FUNCTION keyward.enter(in_store int, OUT revision bigint, OUT watched boolean)
LANGUAGE plpgsql AS $$
DECLARE
    base bigint;
BEGIN
    -- Before the transaction has a number: see keyward.settled. Each statement of a function has a
    -- snapshot of its own, so the base is read as it is once we are let in.
    PERFORM pg_advisory_xact_lock_shared(1801812343, in_store);
    SELECT s.base, s.watched > clock_timestamp() INTO base, watched
        FROM keyward.stores s WHERE s.id = in_store;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'store number % has been removed', in_store USING ERRCODE = 'KW001';
    END IF;
    revision := base + pg_current_xact_id()::text::bigint;
END $$;

-- The end of an entry: never before its time, so rounded up to the next millisecond, and within
-- the calendar of those who read it.
CREATE FUNCTION keyward.moment(ttl bigint, at timestamptz) RETURNS timestamptz
LANGUAGE sql AS $$
    SELECT CASE
        WHEN ttl IS NULL THEN at
        ELSE least(
            date_trunc('milliseconds', clock_timestamp() + interval '999 microseconds')
                + ttl * interval '1 millisecond',
            timestamptz '9999-12-30 22:00:00+00')
    END
$$;

-- A commit that only puts, and checks nothing. The keys come in byte order, which is the order in
-- which their rows are locked, here as in keyward.commit: so no two commits wait for each other.
--
-- ON CONFLICT costs about twice as much as a plain insert. So a commit of many keys first looks whether
-- there is anything between its first and its last, which is one look at the index, and if not,
-- simply inserts them. Another may do the same meanwhile: then it is waited for, as ON CONFLICT
-- would, the insert fails and is undone, and ON CONFLICT it is.
CREATE FUNCTION keyward.put(
    in_store int,
    in_keys bytea[],
    in_values bytea[],
    in_metadata bytea[],
    in_ttls bigint[],
    in_ends timestamptz[],
    OUT revision bigint,
    OUT watched boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    many CONSTANT int := 32;
    is_done boolean := false;
BEGIN
    SELECT b.revision, b.watched INTO revision, watched FROM keyward.enter(in_store) b;

    IF cardinality(in_keys) >= many AND NOT EXISTS (
        SELECT FROM keyward.entries e WHERE e.store = in_store
            AND e.key BETWEEN in_keys[1] AND in_keys[cardinality(in_keys)]
    ) THEN
        BEGIN
            INSERT INTO keyward.entries (store, key, version, value, metadata, expires)
                SELECT in_store, u.key, revision, u.value, u.metadata, keyward.moment(u.ttl, u.at)
                FROM unnest(in_keys, in_values, in_metadata, in_ttls, in_ends)
                    AS u (key, value, metadata, ttl, at);
            is_done := true;
        EXCEPTION WHEN unique_violation THEN
            is_done := false;
        END;
    END IF;

    IF NOT is_done THEN
        INSERT INTO keyward.entries (store, key, version, value, metadata, expires)
            SELECT in_store, u.key, revision, u.value, u.metadata, keyward.moment(u.ttl, u.at)
            FROM unnest(in_keys, in_values, in_metadata, in_ttls, in_ends)
                AS u (key, value, metadata, ttl, at)
            ON CONFLICT (store, key) DO UPDATE SET
                version = excluded.version,
                value = excluded.value,
                metadata = excluded.metadata,
                expires = excluded.expires;
    END IF;

    INSERT INTO keyward.log
        VALUES (in_store, revision, clock_timestamp(), repeat('p', cardinality(in_keys)), in_keys);
END $$;

-- Any other commit, in three steps: lock, judge, apply.
--
-- For each key, in byte order: in_expects says what it must be (null: anything; 0: absent; else
-- this version), in_acts what happens to it (0: nothing; 1: put; 2: delete; 3: add).
--
-- Answers with the revision; or with the places in in_keys of the checks that failed; or with the
-- place of a number that cannot be added to, and why. In the latter two cases nothing has changed.
--
-- Locking. Every row is locked before anything is judged, so what was judged still holds when the
-- transaction ends. A row that is not there cannot be locked, so absence is locked by inserting the
-- row: the unique index makes everybody else who would create it wait until we have ended. A put
-- inserts what it is going to write; where only absence is checked, a row to hold the place is
-- inserted and removed again. Nobody else ever sees either: they were written by a transaction that
-- has not ended, and when it has ended they are gone or true.
--
-- Who waits for another's row looks again in a new statement, hence with a new snapshot: FOR UPDATE
-- gives the newest committed form of a row that was changed while we waited, and none if it was
-- deleted; then either our insert succeeds, or the key was created once more in between, and the
-- loop begins again.
--
-- A key that is only checked is locked FOR SHARE: many commits may be guarded by one key without
-- waiting for each other.
CREATE FUNCTION keyward.commit(
    in_store int,
    in_keys bytea[],
    in_expects bigint[],
    in_acts smallint[],
    in_values bytea[],
    in_metadata bytea[],
    in_ttls bigint[],
    in_ends timestamptz[],
    in_amounts bigint[],
    OUT revision bigint,
    OUT failed int[],
    OUT refused int,
    OUT reason text,
    OUT watched boolean
)
LANGUAGE plpgsql AS $$
DECLARE
    nothing CONSTANT smallint := 0;
    put CONSTANT smallint := 1;
    remove CONSTANT smallint := 2;
    add CONSTANT smallint := 3;
    count CONSTANT int := cardinality(in_keys);
    -- What was found: null where there was nothing.
    versions bigint[] := array_fill(NULL::bigint, ARRAY[count]);
    ends timestamptz[] := array_fill(NULL::timestamptz, ARRAY[count]);
    live boolean[] := array_fill(false, ARRAY[count]);
    sums bytea[] := array_fill(NULL::bytea, ARRAY[count]);
    -- The keys of the rows that we inserted.
    made bytea[] := '{}';
    placeholders bytea[] := '{}';
    kinds text := '';
    changed bytea[] := '{}';
    found_version bigint;
    found_end timestamptz;
    old bytea;
    sum numeric;
    judged_at timestamptz;
BEGIN
    SELECT b.revision, b.watched INTO revision, watched FROM keyward.enter(in_store) b;

    FOR i IN 1..count LOOP
        LOOP
            IF in_acts[i] = nothing THEN
                SELECT e.version, e.expires INTO found_version, found_end
                    FROM keyward.entries e WHERE e.store = in_store AND e.key = in_keys[i]
                    FOR SHARE;
            ELSE
                SELECT e.version, e.expires INTO found_version, found_end
                    FROM keyward.entries e WHERE e.store = in_store AND e.key = in_keys[i]
                    FOR UPDATE;
            END IF;
            IF FOUND THEN
                versions[i] := found_version;
                ends[i] := found_end;
                EXIT;
            END IF;
            -- Absence need not be locked where the check has failed by it, and where a commit does
            -- nothing but remove what is not there. Beside other keys it must be: one who makes this
            -- key and has not ended would else come before us here, and after us there.
            EXIT WHEN in_expects[i] <> 0
                OR (count = 1 AND in_expects[i] IS NULL AND in_acts[i] = remove);
            INSERT INTO keyward.entries (store, key, version, value, metadata, expires)
                VALUES (in_store, in_keys[i], revision,
                    coalesce(in_values[i], in_amounts[i]::text::bytea, ''),
                    in_metadata[i], keyward.moment(in_ttls[i], in_ends[i]))
                ON CONFLICT (store, key) DO NOTHING;
            IF FOUND THEN
                made := made || in_keys[i];
                IF in_acts[i] IN (nothing, remove) THEN
                    placeholders := placeholders || in_keys[i];
                END IF;
                EXIT;
            END IF;
        END LOOP;
    END LOOP;

    -- The time at which everything is judged: after the last lock, since waiting for one may have
    -- taken a while.
    judged_at := clock_timestamp();
    FOR i IN 1..count LOOP
        live[i] := versions[i] IS NOT NULL AND (ends[i] IS NULL OR ends[i] > judged_at);
        IF (in_expects[i] = 0 AND live[i])
            OR (in_expects[i] <> 0 AND (NOT live[i] OR versions[i] <> in_expects[i]))
        THEN
            failed := failed || i;
        END IF;
    END LOOP;

    IF failed IS NULL THEN
        FOR i IN 1..count LOOP
            CONTINUE WHEN in_acts[i] <> add OR versions[i] IS NULL;
            sum := 0;
            IF live[i] THEN
                SELECT e.value INTO old
                    FROM keyward.entries e WHERE e.store = in_store AND e.key = in_keys[i];
                -- Valid JSON, so digits are a number. Not longer than the longest of 64 bits.
                IF octet_length(old) <= 20 AND encode(old, 'escape') ~ '^-?[0-9]+$' THEN
                    sum := encode(old, 'escape')::numeric;
                ELSE
                    sum := 'NaN';
                END IF;
                IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                    refused := i;
                    reason := 'it does not hold a whole number of 64 bits';
                    EXIT;
                END IF;
            END IF;
            sum := sum + in_amounts[i];
            IF sum NOT BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
                refused := i;
                reason := 'the sum does not fit 64 bits';
                EXIT;
            END IF;
            sums[i] := sum::text::bytea;
        END LOOP;
    END IF;

    IF failed IS NOT NULL OR refused IS NOT NULL THEN
        FOR i IN 1..cardinality(made) LOOP
            DELETE FROM keyward.entries e WHERE e.store = in_store AND e.key = made[i];
        END LOOP;
        revision := NULL;
        RETURN;
    END IF;

    FOR i IN 1..cardinality(placeholders) LOOP
        DELETE FROM keyward.entries e WHERE e.store = in_store AND e.key = placeholders[i];
    END LOOP;
    FOR i IN 1..count LOOP
        CASE in_acts[i]
            WHEN nothing THEN
                CONTINUE;
            WHEN remove THEN
                CONTINUE WHEN versions[i] IS NULL;
                DELETE FROM keyward.entries e WHERE e.store = in_store AND e.key = in_keys[i];
                -- What has expired was absent already: this only reclaims its space.
                kinds := kinds || CASE WHEN live[i] THEN 'd' ELSE 'e' END;
            WHEN put THEN
                IF versions[i] IS NOT NULL THEN
                    UPDATE keyward.entries e SET
                        version = revision,
                        value = in_values[i],
                        metadata = in_metadata[i],
                        expires = keyward.moment(in_ttls[i], in_ends[i])
                    WHERE e.store = in_store AND e.key = in_keys[i];
                END IF;
                kinds := kinds || 'p';
            WHEN add THEN
                IF versions[i] IS NOT NULL THEN
                    UPDATE keyward.entries e SET
                        version = revision,
                        value = sums[i],
                        metadata = CASE WHEN live[i] THEN e.metadata END,
                        expires = CASE WHEN live[i] THEN e.expires END
                    WHERE e.store = in_store AND e.key = in_keys[i];
                END IF;
                kinds := kinds || 'p';
        END CASE;
        changed := changed || in_keys[i];
    END LOOP;

    IF kinds = '' THEN
        SELECT r.latest INTO revision FROM keyward.reached(in_store) r;
    ELSE
        INSERT INTO keyward.log VALUES (in_store, revision, clock_timestamp(), kinds, changed);
    END IF;
END $$;
