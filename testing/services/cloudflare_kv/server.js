// Cloudflare's REST API for Workers KV, in front of workerd's own KV: the routes, shapes and error codes
// that Cloudflare documents.
//
//   node server.js PORT DIRECTORY
//
// For tests there is one route more: PUT /control/namespaces/ID with {"now": ms, "lag": ms, "refuse": n,
// "retryAfter": s, "fail": n} sets a namespace's clock, how late it is read, how many of its next requests
// are answered 429, with what Retry-After, and how many of its next writes to workerd fail.

import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';

import { Namespace, Refused } from './namespace.js';
import { Workerd } from './workerd.js';

/** The token that may do everything. */
const TOKEN = 'keyward-test-token';
/** The only other one, which may read and not write. */
const READ_TOKEN = 'keyward-test-token-for-reading';
const BULK_GET_MAX = 100;
const BULK_WRITE_MAX = 10_000;
const BULK_GET_BYTES_MAX = 25_000_000;
const LIST_MIN = 10;

const [port, directory] = process.argv.slice(2);
const workerd = await Workerd.start(directory);
const namespaces = new Map();

const refuse = (status, code, message) => {
    throw new Refused(status, code, message);
};
const success = (result, info = {}) => ({ result, success: true, errors: [], messages: [], ...info });

async function bodyOf(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    return Buffer.concat(chunks);
}

async function jsonOf(request) {
    try {
        return JSON.parse((await bodyOf(request)).toString());
    } catch {
        return refuse(400, 10012, 'the body is not JSON');
    }
}

const whole = (text) => (text === null || text === undefined ? undefined : Number(text));

function lifetime(expiration, ttl) {
    return { expiration: whole(expiration), ttl: whole(ttl) };
}

/** A value to write, alone or with metadata beside it. */
async function valueOf(request) {
    const type = request.headers['content-type'] ?? '';
    const body = await bodyOf(request);
    if (!type.startsWith('multipart/form-data')) return { value: body, metadata: undefined };
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const bytes = async (part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(await part.arrayBuffer()));
    const metadata = form.get('metadata');
    return {
        value: await bytes(form.get('value') ?? refuse(400, 10012, 'the part value is missing')),
        metadata: metadata === null ? undefined : (await bytes(metadata)).toString(),
    };
}

async function bulkGet(namespace, { keys, type = 'text', withMetadata = false }) {
    if (!Array.isArray(keys) || keys.length === 0 || keys.length > BULK_GET_MAX) {
        refuse(400, 10012, `keys must be 1 to ${BULK_GET_MAX} names`);
    }
    const pairs = await namespace.getMany(keys);
    const read = (entry) => (type === 'json' ? { ...entry, value: JSON.parse(entry.value) } : entry);
    const shown = (entry) => (withMetadata ? read(entry) : read(entry).value);
    const result = { values: Object.fromEntries(pairs.map(([name, entry]) => [name, entry && shown(entry)])) };
    if (JSON.stringify(result).length > BULK_GET_BYTES_MAX) refuse(413, 10032, 'the response exceeds 25 MB');
    return success(result);
}

async function bulkPut(namespace, pairs) {
    if (pairs.length > BULK_WRITE_MAX) refuse(400, 10012, `at most ${BULK_WRITE_MAX} pairs`);
    await namespace.putMany(pairs.map(({ key, value, base64, metadata, expiration, expiration_ttl: ttl }) => {
        const text = metadata === undefined ? undefined : JSON.stringify(metadata);
        const bytes = Buffer.from(value, base64 ? 'base64' : 'utf8');
        return [key, bytes, { metadata: text, ...lifetime(expiration, ttl) }];
    }));
    return success({ successful_key_count: pairs.length, unsuccessful_keys: [] });
}

async function bulkDelete(namespace, names) {
    if (names.length > BULK_WRITE_MAX) refuse(400, 10012, `at most ${BULK_WRITE_MAX} names`);
    for (const name of names) await namespace.delete(name);
    return success({ successful_key_count: names.length, unsuccessful_keys: [] });
}

async function keysOf(namespace, query) {
    const limit = whole(query.get('limit'));
    if (limit !== undefined && limit < LIST_MIN) refuse(400, 10006, `limit must be at least ${LIST_MIN}`);
    const options = { limit, prefix: query.get('prefix') ?? undefined, cursor: query.get('cursor') || undefined };
    const { keys, cursor } = await namespace.list(options);
    return success(keys, { result_info: { count: keys.length, cursor } });
}

async function valueRoute(request, response, namespace, name, query) {
    switch (request.method) {
        case 'PUT': {
            const { value, metadata } = await valueOf(request);
            const ends = lifetime(query.get('expiration'), query.get('expiration_ttl'));
            await namespace.put(name, value, { metadata, ...ends });
            return success({});
        }
        case 'GET': {
            const { value, expiration } = await namespace.get(name);
            if (expiration !== undefined) response.setHeader('expiration', expiration);
            return value;
        }
        case 'DELETE':
            await namespace.delete(name);
            return success({});
        default:
            return refuse(405, 10405, 'method not allowed');
    }
}

async function namespaceRoute(request, response, id, rest, query) {
    const namespace = namespaces.get(id) ?? refuse(404, 10013, 'namespace not found');
    const retryAfter = namespace.refusal();
    if (retryAfter !== undefined) {
        response.setHeader('retry-after', retryAfter);
        refuse(429, 10033, 'too many requests');
    }
    // A name may hold slashes that are escaped; it is unescaped only here.
    const [route, name] = [rest[0], rest.slice(1).map(decodeURIComponent).join('/')];
    switch (`${request.method} ${route ?? ''}`) {
        case 'GET ':
            return success({ id, title: namespace.title });
        case 'DELETE ':
            namespaces.delete(id);
            await namespace.close();
            workerd.release(namespace.number);
            return success({});
        case 'GET keys':
            return keysOf(namespace, query);
        case 'PUT bulk':
            return bulkPut(namespace, await jsonOf(request));
        case 'POST bulk':
            if (name === 'get') return bulkGet(namespace, await jsonOf(request));
            if (name === 'delete') return bulkDelete(namespace, await jsonOf(request));
            return refuse(404, 7003, 'no route');
        case 'GET metadata':
            return success((await namespace.get(name)).metadata);
        default:
            if (route === 'values' && name !== '') return valueRoute(request, response, namespace, name, query);
            return refuse(404, 7003, 'no route');
    }
}

async function route(request, response) {
    // Not by `new URL`, which would take the names . and .. for steps.
    const [path, search = ''] = request.url.split('?');
    const query = new URLSearchParams(search);
    const control = /^\/control\/namespaces\/([^/]+)$/.exec(path);
    if (control) {
        const namespace = namespaces.get(control[1]) ?? refuse(404, 10013, 'namespace not found');
        await namespace.control(await jsonOf(request));
        return success({});
    }
    const token = request.headers.authorization;
    if (token === undefined) refuse(400, 9106, 'Missing X-Auth-Key, X-Auth-Email or Authorization headers');
    const reads = request.method === 'GET' || request.url.split('?')[0].endsWith('/bulk/get');
    if (token === `Bearer ${READ_TOKEN}` && !reads) refuse(403, 10000, 'Authentication error');
    if (token !== `Bearer ${TOKEN}` && token !== `Bearer ${READ_TOKEN}`) refuse(401, 10000, 'Authentication error');
    const found = /^\/client\/v4\/accounts\/[^/]+\/storage\/kv\/namespaces(?:\/(.+))?$/.exec(path);
    if (!found) refuse(404, 7003, 'Could not route to the path, perhaps your object identifier is invalid?');
    if (found[1] !== undefined) {
        const [id, ...rest] = found[1].split('/');
        return namespaceRoute(request, response, id, rest, query);
    }
    if (request.method === 'GET') {
        return success([...namespaces].map(([id, { title }]) => ({ id, title })));
    }
    const { title } = await jsonOf(request);
    const id = randomUUID().replaceAll('-', '');
    namespaces.set(id, new Namespace(title, workerd, await workerd.take()));
    return success({ id, title });
}

const server = createServer(async (request, response) => {
    let answer;
    try {
        answer = await route(request, response);
    } catch (error) {
        const { status = 500, code = 10001, message } = error;
        response.statusCode = status;
        answer = { result: null, success: false, errors: [{ code, message }], messages: [] };
        // Of what this server refuses, where it does so is of no interest.
        const said = error instanceof Refused ? message : error;
        if (status >= 500) console.error(`${request.method} ${request.url}: ${status}:`, said);
    }
    const isValue = Buffer.isBuffer(answer);
    response.setHeader('content-type', isValue ? 'application/octet-stream' : 'application/json');
    response.end(isValue ? answer : JSON.stringify(answer));
});
// Tests keep connections while they think.
server.keepAliveTimeout = 60_000;
server.listen(Number(port), '127.0.0.1', () => console.log('ready'));
