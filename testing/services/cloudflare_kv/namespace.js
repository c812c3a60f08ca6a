// One KV namespace: what workerd stores for it, seen as late as a test asks for and by a clock that a
// test may own. (workerd itself shows every write at once and goes by the machine's clock.)

/** What workerd, or the API before it, refuses. */
export class Refused extends Error {
    constructor(status, code, message) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

/** Where writes are tried that become visible later, or by another clock. */
const TRIAL = 0;
/** Writes that workerd is given at once, and how large a value is at most to be given with others. */
const TOGETHER = 16;
const SMALL_BYTES_MAX = 100_000;

/** Whether workerd is certain to take a write, so that it need not be tried. */
function isCertain(name, value, metadata, end) {
    const isName = /^\P{Cc}{1,100}$/u.test(name) && name !== '.' && name !== '..';
    return isName && value.length < SMALL_BYTES_MAX && metadata === undefined && end === undefined;
}

/** Runs operations at the same time. Waits for all of them, also when one fails. */
async function together(operations) {
    const ended = await Promise.allSettled(operations);
    const failed = ended.find(({ status }) => status === 'rejected');
    if (failed !== undefined) throw failed.reason;
}

export class Namespace {
    #workerd;
    #number;
    /** By the test's clock, in milliseconds; the machine's if none is set. */
    #now = null;
    #lag = 0;
    /** Writes that cannot be read yet, oldest first: `{ due, name, value, metadata, expiration }`. */
    #pending = [];
    /** When entries end, in seconds: what the API tells and workerd's reads do not. */
    #ends = new Map();
    /** Answers of 429 still to give, and after how many seconds each asks to be tried again. */
    #refusals = 0;
    #retryAfter = 0;
    /** How many writes to workerd still have to fail, as a test asked. */
    #failures = 0;
    /** Whether it was deleted: what comes later must not write into its successor. */
    #isClosed = false;
    /** The operation before: one at a time, so that what is due is written before it is read. */
    #last = Promise.resolve();

    constructor(title, workerd, number) {
        this.title = title;
        this.#workerd = workerd;
        this.#number = number;
    }

    get number() {
        return this.#number;
    }

    now() {
        return this.#now ?? Date.now();
    }

    /**
     * What a test sets: its clock (`now`), how late reads are (`lag`), how many requests to refuse and how,
     * and how many of the next writes to workerd fail (`fail`).
     */
    control({ now, lag, refuse, retryAfter, fail }) {
        // Requests of a test may overtake each other; its clock never goes back.
        if (now !== undefined) this.#now = Math.max(now, this.#now ?? now);
        if (lag !== undefined) this.#lag = lag;
        if (refuse !== undefined) this.#refusals = refuse;
        if (retryAfter !== undefined) this.#retryAfter = retryAfter;
        if (fail !== undefined) this.#failures = fail;
        // Whoever sets the clock waits, rather than the next who reads: readers have timeouts.
        return this.#alone(() => this.#settle());
    }

    /** After how many seconds to try this request again, if it is one of those to refuse. */
    refusal() {
        return this.#refusals > 0 && this.#refusals-- > 0 ? this.#retryAfter : undefined;
    }

    /** Runs an operation after those before it. */
    #alone(operation) {
        const done = this.#last.then(() => {
            if (this.#isClosed) throw new Refused(404, 10013, 'namespace not found');
            return operation();
        });
        this.#last = done.catch(() => {});
        return done;
    }

    /** Ends it after the operations that have begun; later ones find no namespace. */
    close() {
        return this.#alone(() => {
            this.#isClosed = true;
        });
    }

    put(name, value, options) {
        return this.#alone(() => this.#put(name, value, options));
    }

    /** Puts `[name, value, options]`, a few at the same time. */
    putMany(puts) {
        return this.#alone(async () => {
            for (let at = 0; at < puts.length; at += TOGETHER) {
                await together(puts.slice(at, at + TOGETHER).map((put) => this.#put(...put)));
            }
        });
    }

    async #put(name, value, { metadata, expiration, ttl }) {
        const seconds = Math.floor(this.now() / 1000);
        const end = ttl === undefined ? expiration : seconds + ttl;
        if (this.#lag === 0 && this.#now === null) {
            await this.#workerd.put(this.#number, name, value, { metadata, expiration, ttl });
            this.#ended(name, end);
            return;
        }
        if (!isCertain(name, value, metadata, end)) {
            // workerd compares ends with the machine's clock.
            const there = expiration === undefined ? undefined : expiration - seconds + Math.floor(Date.now() / 1000);
            await this.#workerd.put(TRIAL, name, value, { metadata, expiration: there, ttl });
        }
        this.#pending.push({ due: this.now() + this.#lag, name, value, metadata, expiration: end });
    }

    delete(name) {
        return this.#alone(async () => {
            this.#pending.push({ due: this.now() + this.#lag, name, value: null });
            await this.#settle();
        });
    }

    /** The entries of some names, `null` where there is none. */
    getMany(names) {
        return this.#alone(async () => {
            await this.#settle();
            const found = await this.#workerd.getMany(this.#number, names);
            return found.map(([name, entry]) => {
                if (entry === null || this.#isOver(name)) return [name, null];
                const expiration = this.#ends.get(name);
                return [name, expiration === undefined ? entry : { ...entry, expiration }];
            });
        });
    }

    /** One entry with its value as bytes. */
    get(name) {
        return this.#alone(async () => {
            await this.#settle();
            const found = this.#isOver(name) ? null : await this.#workerd.get(this.#number, name);
            if (found === null) throw new Refused(404, 10009, "get: 'key not found'");
            return { ...found, expiration: this.#ends.get(name) };
        });
    }

    list(options) {
        return this.#alone(async () => {
            await this.#settle();
            const found = await this.#workerd.list(this.#number, options);
            const keys = found.keys.filter(({ name }) => !this.#isOver(name));
            for (const key of keys) {
                if (this.#ends.has(key.name)) key.expiration = this.#ends.get(key.name);
            }
            return { keys, cursor: found.list_complete ? '' : found.cursor };
        });
    }

    #isOver(name) {
        return (this.#ends.get(name) ?? Infinity) * 1000 <= this.now();
    }

    #ended(name, end) {
        if (end === undefined) this.#ends.delete(name);
        else this.#ends.set(name, end);
    }

    /**
     * Writes what can be read by now: of each name the last. A write stays pending until workerd has taken
     * all that are due, so that whoever comes after a failure writes them again: twice is as good as once.
     */
    async #settle() {
        const now = this.now();
        const later = this.#pending.findIndex(({ due }) => due > now);
        const count = later < 0 ? this.#pending.length : later;
        const due = new Map(this.#pending.slice(0, count).map((write) => [write.name, write]));
        const isSmall = ({ value }) => value !== null && value.length < SMALL_BYTES_MAX;
        const writes = [...due.values()];
        const small = writes.filter(isSmall);
        while (small.length > 0) {
            const some = small.splice(0, TOGETHER);
            this.#failIfAsked();
            await this.#workerd.putMany(this.#number, some);
            for (const { name, expiration } of some) this.#ended(name, expiration);
        }
        const others = writes.filter((write) => !isSmall(write));
        while (others.length > 0) {
            this.#failIfAsked();
            await together(others.splice(0, TOGETHER).map((write) => this.#write(write)));
        }
        // Operations run alone, and requests only add at the end: these are still the first.
        this.#pending.splice(0, count);
    }

    #failIfAsked() {
        if (this.#failures === 0) return;
        this.#failures--;
        throw new Refused(503, 10001, 'workerd failed, as the test asked');
    }

    async #write({ name, value, metadata, expiration }) {
        if (value === null) await this.#workerd.delete(this.#number, name);
        else await this.#workerd.put(this.#number, name, value, { metadata });
        this.#ended(name, expiration);
    }
}
