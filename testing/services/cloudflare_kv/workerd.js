// workerd with a number of KV namespaces, by miniflare.

import { Miniflare } from 'miniflare';
import { fileURLToPath } from 'node:url';

import { Refused } from './namespace.js';

/** Namespaces that are bound from the start; workerd cannot be given more while it runs. */
const NAMESPACES = 200;

const worker = fileURLToPath(new URL('worker.js', import.meta.url));

/** How often an operation is tried again, and how long to wait before it. */
const RETRIES = 10;
const PAUSE_MS = 100;

/** Tries again what workerd failed at, as on a busy machine. Every operation may be carried out twice. */
async function persistently(what, operation) {
    for (let left = RETRIES; ; left--) {
        try {
            return await operation();
        } catch (error) {
            const isRefused = error instanceof Refused && error.status < 500;
            if (isRefused) throw error;
            console.error(`workerd: ${what} failed, ${left} tries left: ${error.message}`, error.cause ?? '');
            if (left === 0) throw error;
            await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
    }
}

export class Workerd {
    #url;
    /** Namespaces that nobody uses, those that were never used first. */
    #free = Array.from({ length: NAMESPACES - 1 }, (_, n) => ({ number: n + 1, used: false }));

    /** Starts it, keeping its data in a directory. */
    static async start(directory) {
        const numbers = Array.from({ length: NAMESPACES }, (_, n) => n);
        const miniflare = new Miniflare({
            scriptPath: worker,
            modules: true,
            compatibilityDate: '2026-04-01',
            host: '127.0.0.1',
            port: 0,
            kvNamespaces: Object.fromEntries(numbers.map((n) => [`KV${n}`, `kv${n}`])),
            kvPersist: directory,
        });
        const workerd = new Workerd();
        workerd.#url = await miniflare.ready;
        await workerd.#probe();
        return workerd;
    }

    /** Makes sure that what is written is listed, before anybody relies on it. */
    async #probe() {
        const [number, name] = [0, 'probe'];
        await this.put(number, name, Buffer.from('1'), {});
        await persistently('the first listing', async () => {
            const { keys } = await this.list(number, {});
            if (!keys.some((key) => key.name === name)) throw new Error('the listing lacks what was written');
        });
        await this.delete(number, name);
    }

    /** Takes an empty namespace; gives its number. */
    async take() {
        const free = this.#free.shift();
        if (free === undefined) throw new Refused(400, 10022, 'no namespaces left');
        while (free.used && !(await this.#call(free.number, 'clear')).parsed);
        return free.number;
    }

    /** Gives a namespace back. */
    release(number) {
        this.#free.push({ number, used: true });
    }

    async put(number, name, value, { metadata, expiration, ttl }) {
        await this.#call(number, 'put', { name, metadata, expiration, ttl }, value);
    }

    /** Puts many small values without an end. */
    async putMany(number, puts) {
        const body = puts.map(({ name, value, metadata }) => ({ name, value: value.toString('base64'), metadata }));
        await this.#call(number, 'put-many', {}, JSON.stringify(body));
    }

    async getMany(number, names) {
        return (await this.#call(number, 'get-many', {}, JSON.stringify(names))).parsed;
    }

    async get(number, name) {
        const { response, body } = await this.#call(number, 'get', { name });
        if (response.status === 404) return null;
        const metadata = JSON.parse(decodeURIComponent(response.headers.get('metadata')));
        return { value: body, metadata };
    }

    async delete(number, name) {
        await this.#call(number, 'delete', { name });
    }

    async list(number, options) {
        return (await this.#call(number, 'list', options)).parsed;
    }

    async #call(number, operation, parameters = {}, body = undefined) {
        const url = new URL(`${number}/${operation}`, this.#url);
        for (const [name, value] of Object.entries(parameters)) {
            if (value !== undefined) url.searchParams.set(name, value);
        }
        return persistently(`${operation} in namespace ${number}`, async () => {
            const response = await fetch(url, { method: 'POST', body });
            const answer = Buffer.from(await response.arrayBuffer());
            const isAbsent = operation === 'get' && response.status === 404;
            if (!response.ok && !isAbsent) {
                throw new Refused(response.status, 10000 + response.status, answer.toString());
            }
            const isJson = response.headers.get('content-type')?.startsWith('application/json');
            return { response, body: answer, parsed: isJson ? JSON.parse(answer.toString()) : undefined };
        });
    }
}
