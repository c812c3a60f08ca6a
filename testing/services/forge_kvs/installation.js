// The rows of one installation of an app: what a key-value store keeps, as late and as long as a test asks for.

/** What the API refuses. */
export class Refused extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

/** Where the row of a key is: in a custom entity, or in the key-value store. */
export function place(key, entityName = '') {
    return `${entityName}\0${key}`;
}

function keyOf(place) {
    return place.slice(place.indexOf('\0') + 1);
}

const UNITS = { SECONDS: 1, MINUTES: 60, HOURS: 3_600, DAYS: 86_400 };
const TTL_SECONDS_MAX = 365 * 86_400;

export class Installation {
    /** By the test's clock, in milliseconds; the machine's if none is set. */
    #now = null;
    /** How late batches of reads and queries are. (A read of one key is always current, as documented.) */
    #lag = { batch: 0, query: 0 };
    /** For how long expired rows are still there: Forge deletes them within 48 hours. */
    #deletionDelay = 0;
    /** Transactions still to refuse, as those that meet another one. */
    #conflicts = 0;
    /** Reads, and items of batches, still to refuse, as those that exceed a limit. */
    #throttled = 0;
    /** Tokens that have expired. */
    #expired = new Set();
    /** Whether a batch tells absent keys as failed or leaves them out: the documentation does not say. */
    absentKeysFail = true;
    /** Place to its states, oldest first: `{ at, row }`, with `null` for a row that was deleted. */
    #states = new Map();
    #sorted = null;

    now() {
        return this.#now ?? Date.now();
    }

    /** What a test sets. */
    control({ now, lag, deletionDelay, conflicts, throttled, expireToken, absentKeysFail }) {
        // Requests of a test may overtake each other; its clock never goes back.
        if (now !== undefined) this.#now = Math.max(now, this.#now ?? now);
        if (lag !== undefined) this.#lag = { ...this.#lag, ...lag };
        if (deletionDelay !== undefined) this.#deletionDelay = deletionDelay;
        if (conflicts !== undefined) this.#conflicts = conflicts;
        if (throttled !== undefined) this.#throttled = throttled;
        if (expireToken !== undefined) this.#expired.add(expireToken);
        if (absentKeysFail !== undefined) this.absentKeysFail = absentKeysFail;
    }

    admits(token) {
        return !this.#expired.has(token);
    }

    /** Whether this transaction is one of those to refuse. */
    meetsAnother() {
        return this.#conflicts > 0 && this.#conflicts-- > 0;
    }

    /** Whether this read, or item of a batch, is one of those to refuse. */
    exceeds() {
        return this.#throttled > 0 && this.#throttled-- > 0;
    }

    // Every method takes a place: a key of the key-value store, or of a custom entity. See `place`.

    set(place, value, options) {
        const at = this.now();
        const before = this.#newest(place);
        const row = { key: keyOf(place), value: JSON.stringify(value), createdAt: before?.createdAt ?? at, updatedAt: at };
        if (options?.ttl !== undefined) row.expireTime = new Date(at + seconds(options.ttl) * 1000).toISOString();
        this.#put(place, row);
        return { before, row };
    }

    delete(key) {
        if (this.#newest(key) !== undefined) this.#put(key, null);
    }

    /** The row of a key as a batch shows it. */
    inBatch(key) {
        return this.#seen(key, this.#lag.batch);
    }

    /** The newest row. */
    get(key) {
        return this.#newest(key);
    }

    /** One page of the rows whose keys begin with a prefix, in the order of the keys. */
    query(prefix, after, limit) {
        const rows = [];
        let last;
        this.#sorted ??= [...this.#states.keys()].sort();
        for (const key of this.#sorted) {
            if (!key.startsWith(prefix) || (after !== undefined && key <= after)) continue;
            const row = this.#seen(key, this.#lag.query);
            if (row === undefined) continue;
            if (rows.length === limit) return { rows, next: last };
            rows.push(row);
            last = key;
        }
        return { rows };
    }

    #put(key, row) {
        const states = this.#states.get(key) ?? [];
        if (states.length === 0) this.#sorted = null;
        states.push({ at: this.now(), row });
        // All but the newest that every reader sees already can be forgotten.
        const horizon = this.now() - Math.max(this.#lag.batch, this.#lag.query);
        while (states.length > 1 && states[1].at <= horizon) states.shift();
        if (states.length === 1 && states[0].row === null) {
            this.#states.delete(key);
            this.#sorted = null;
        } else {
            this.#states.set(key, states);
        }
    }

    #newest(key) {
        return this.#alive(this.#states.get(key)?.at(-1)?.row);
    }

    #seen(key, lag) {
        const horizon = this.now() - lag;
        return this.#alive(this.#states.get(key)?.findLast(({ at }) => at <= horizon)?.row);
    }

    #alive(row) {
        if (row === null || row === undefined) return undefined;
        const end = row.expireTime === undefined ? Infinity : Date.parse(row.expireTime) + this.#deletionDelay;
        return end <= this.now() ? undefined : row;
    }
}

function seconds({ value, unit, ...others }) {
    const factor = UNITS[unit];
    if (!Number.isInteger(value) || value < 1 || factor === undefined || Object.keys(others).length > 0) {
        throw new Refused(400, 'BAD_REQUEST', 'ttl must be a positive whole number of SECONDS, MINUTES, HOURS or DAYS');
    }
    if (value * factor > TTL_SECONDS_MAX) throw new Refused(400, 'BAD_REQUEST', 'ttl exceeds 1 year');
    return value * factor;
}
