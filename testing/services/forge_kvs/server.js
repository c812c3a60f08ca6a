// A test server of the key-value store of Forge: the documented shapes of its REST API, limits included. Nothing
// of it is Atlassian's; proof.js drives it with Atlassian's own client.
//
//   node server.js PORT
//
// A bearer token is INSTALLATION.ANYTHING; an installation is there when it is first named.
// POST /control/INSTALLATION sets what a test needs: see Installation.control.
import { createServer } from 'node:http';

import { checkEntity, checkEntityValue, holds } from './entity.js';
import { Installation, Refused, place } from './installation.js';

const KEY_CHARS_MAX = 500;
const KEY = /^(?!\s+$)[a-zA-Z0-9:._\s-#]+$/;
const VALUE_BYTES_MAX = 240 * 1024;
const DEPTH_MAX = 31;
const PAYLOAD_BYTES_MAX = 4 * 1000 * 1000;
const OPERATIONS_MAX = 25;
const QUERY_DEFAULT = 10;
const QUERY_MAX = 100;

const installations = new Map();

function refuse(code, message, status = 400) {
    throw new Refused(status, code, message);
}

/** Refuses an object with other properties than these. */
function shaped(object, what, ...names) {
    if (typeof object !== 'object' || object === null || Array.isArray(object)) {
        refuse('BAD_REQUEST', `${what} must be an object`);
    }
    const other = Object.keys(object).find((name) => !names.includes(name));
    if (other !== undefined) refuse('BAD_REQUEST', `${what} has no property ${other}`);
    return object;
}

function checkKey(key) {
    if (typeof key !== 'string') refuse('BAD_REQUEST', 'key must be a string');
    if (key.length < 2) refuse('KEY_TOO_SHORT', 'The provided key needs to be more than one character.');
    if (key.length > KEY_CHARS_MAX) refuse('KEY_TOO_LONG', 'The provided key has exceeded the maximum 500 characters.');
    if (!KEY.test(key)) refuse('INVALID_KEY', `The provided key does not match the regex: ${KEY}`);
    return key;
}

function depth(value) {
    if (typeof value !== 'object' || value === null) return 0;
    return 1 + Math.max(0, ...Object.values(value).map(depth));
}

function checkValue(value, entityName) {
    if (entityName !== undefined) checkEntityValue(value);
    if (value === undefined || value === null) refuse('BAD_REQUEST', 'value must be a string, boolean, number, array or object');
    if (Buffer.byteLength(JSON.stringify(value)) > VALUE_BYTES_MAX) {
        refuse('MAX_SIZE', 'The provided value has exceeded the maximum size limit.');
    }
    if (depth(value) > DEPTH_MAX) refuse('MAX_DEPTH', 'The provided value has exceeded the maximum object depth limit.');
    return value;
}

const METADATA = { CREATED_AT: 'createdAt', UPDATED_AT: 'updatedAt', EXPIRE_TIME: 'expireTime' };

function shown(row, fields = []) {
    const result = { key: row.key, value: JSON.parse(row.value) };
    for (const field of fields) {
        const name = METADATA[field] ?? refuse('BAD_REQUEST', `no metadata field ${field}`);
        if (row[name] !== undefined) result[name] = row[name];
    }
    return result;
}

function get(installation, body, entityName) {
    const { key, options = {} } = body;
    if (installation.exceeds()) refuse('REQUEST_THROTTLED', 'The app installation exceeded the maximum transfer limit.');
    const { metadataFields } = shaped(options, 'options', 'metadataFields');
    const row = installation.get(place(checkKey(key), entityName)) ?? refuse('KEY_NOT_FOUND', 'Provided key does not exist', 404);
    return shown(row, metadataFields);
}

function set(installation, body, entityName) {
    const { key, value, options = {} } = body;
    const { ttl, keyPolicy, returnValue, returnMetadataFields } = shaped(
        options, 'options', 'ttl', 'keyPolicy', 'returnValue', 'returnMetadataFields');
    const at = place(checkKey(key), entityName);
    checkValue(value, entityName);
    if (keyPolicy === 'FAIL_IF_EXISTS') {
        if (returnValue !== undefined) refuse('INVALID_KEY_POLICY_RETURN_VALUE_COMBINATION', 'nothing to return');
        if (installation.get(at) !== undefined) refuse('KEY_CONFLICT', 'The provided key already exists', 409);
    }
    const { before, row } = installation.set(at, value, { ttl });
    if (returnValue === 'LATEST') return shown(row, returnMetadataFields);
    if (returnValue === 'PREVIOUS' && before !== undefined) return shown(before, returnMetadataFields);
    return undefined;
}

function remove(installation, body, entityName) {
    installation.delete(place(checkKey(body.key), entityName));
    return undefined;
}

/** A request of the key-value store, or the same of a custom entity. */
function ofKeyValueStore(perform, ...names) {
    return (installation, body) => perform(installation, shaped(body, 'the body', ...names));
}

function ofEntity(perform, ...names) {
    return (installation, body) => {
        const { entityName } = shaped(body, 'the body', 'entityName', ...names);
        return perform(installation, body, checkEntity(entityName));
    };
}

function query(installation, body) {
    const { limit = QUERY_DEFAULT, after, where = [], options = {} } = shaped(
        body, 'the body', 'limit', 'after', 'where', 'options');
    const { metadataFields } = shaped(options, 'options', 'metadataFields');
    if (!Number.isInteger(limit) || limit < 1 || limit > QUERY_MAX) {
        refuse('LIST_QUERY_LIMIT_EXCEEDED', 'Limit for list query should be below 100.');
    }
    if (where.length > 1) refuse('QUERY_WHERE_INVALID', 'KVS queries should contain only a single "where" clause.');
    let prefix = '';
    for (const clause of where) {
        const { condition, property, values } = shaped(clause, 'where', 'condition', 'property', 'values');
        if (property !== 'key') refuse('QUERY_WHERE_FIELD_INVALID', 'The specified field is not supported for filters.');
        if (condition !== 'BEGINS_WITH') refuse('INVALID_FILTER_CONDITION', 'The specified condition is not supported for filters.');
        if (values.length !== 1) refuse('INVALID_FILTER_VALUES', 'The specified number of values are not supported by the given condition.');
        [prefix] = values;
    }
    const from = after === undefined ? undefined : readCursor(after, place(prefix));
    return page(installation, place(prefix), from, limit, metadataFields);
}

function page(installation, prefix, from, limit, metadataFields) {
    const { rows, next } = installation.query(prefix, from, limit);
    const data = rows.map((row) => shown(row, metadataFields));
    return next === undefined ? { data } : { data, cursor: cursor(prefix, next) };
}

/** The keys of an entity. Of its indexes this server has the one that every entity has. */
function queryEntity(installation, body) {
    const { entityName, indexName, range, limit = QUERY_DEFAULT, cursor: after, options = {} } = shaped(
        body, 'the body', 'entityName', 'indexName', 'range', 'limit', 'cursor', 'options');
    const { metadataFields } = shaped(options, 'options', 'metadataFields');
    checkEntity(entityName);
    if (indexName !== 'by-key') refuse('INVALID_ENTITY_INDEX', 'The custom entity index provided is invalid.');
    if (!Number.isInteger(limit) || limit < 1 || limit > QUERY_MAX) {
        refuse('COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE', 'The page limit must be set between 1 and 100.');
    }
    let prefix = '';
    if (range !== undefined) {
        if (range.condition !== 'BEGINS_WITH' || range.values.length !== 1) refuse('BAD_REQUEST', 'only BEGINS_WITH here');
        [prefix] = range.values;
    }
    const within = place(prefix, entityName);
    return page(installation, within, after === undefined ? undefined : readCursor(after, within), limit, metadataFields);
}

function cursor(prefix, last) {
    return Buffer.from(JSON.stringify([prefix, last])).toString('base64');
}

function readCursor(text, prefix) {
    try {
        const [of, last] = JSON.parse(Buffer.from(text, 'base64').toString());
        if (of === prefix && typeof last === 'string') return last;
    } catch {
        // Told below.
    }
    return refuse('INVALID_CURSOR', 'The provided cursor is invalid.');
}

/** The items of a batch or a transaction: some, not too many, each key once. */
function checkItems(items, what) {
    if (!Array.isArray(items) || items.length === 0) refuse('BAD_REQUEST', `${what} must have items`);
    if (items.length > OPERATIONS_MAX) refuse('BAD_REQUEST', `${what} can have ${OPERATIONS_MAX} items at most`);
    const keys = new Set(items.map((item) => place(checkKey(item.key), item.entityName)));
    if (keys.size < items.length) refuse('BAD_REQUEST', 'Each key can only be used once');
    return items;
}

/** Does each item by itself. */
function batch(items, perform) {
    const answer = { successfulKeys: [], failedKeys: [] };
    for (const item of checkItems(items, 'a batch')) {
        try {
            const done = perform(item);
            if (done !== undefined) answer.successfulKeys.push(done);
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            answer.failedKeys.push({ key: item.key, error: { code: error.code, message: error.message } });
        }
    }
    return answer;
}

function batchGet(installation, items) {
    return batch(items, (item) => {
        const { key, entityName, options = {} } = shaped(item, 'an item', 'key', 'entityName', 'options');
        if (entityName !== undefined) checkEntity(entityName);
        if (installation.exceeds()) refuse('REQUEST_THROTTLED', 'The app installation exceeded the maximum transfer limit.');
        const row = installation.inBatch(place(key, entityName));
        if (row !== undefined) return { ...shown(row, options.metadataFields), entityName };
        return installation.absentKeysFail ? refuse('KEY_NOT_FOUND', 'Provided key does not exist') : undefined;
    });
}

function batchSet(installation, items) {
    return batch(items, (item) => {
        const { key, value, options } = shaped(item, 'an item', 'key', 'value', 'options');
        installation.set(place(key), checkValue(value), options);
        return { key };
    });
}

function batchDelete(installation, items) {
    return batch(items, (item) => {
        installation.delete(place(shaped(item, 'an item', 'key').key));
        return { key: item.key };
    });
}

/** Refuses an operation of another shape. Conditions are of custom entities only. */
function checkOperation(operation, what, ...names) {
    const { entityName, conditions } = shaped(operation, what, 'key', 'entityName', 'conditions', ...names);
    if (entityName !== undefined) checkEntity(entityName);
    else if (conditions !== undefined) refuse('BAD_REQUEST', 'conditions need an entityName');
}

function transaction(installation, body) {
    const { set: sets = [], delete: deletes = [], check: checks = [] } = shaped(body, 'the body', 'set', 'delete', 'check');
    const operations = [...sets, ...deletes, ...checks];
    if (operations.length === 0) {
        refuse('INVALID_TRANSACTION_REQUEST', 'Transaction request must include one of set, check or delete.');
    }
    checkItems(operations, 'a transaction');
    for (const item of sets) {
        checkOperation(item, 'a set', 'value', 'options');
        shaped(item.options ?? {}, 'options', 'ttl');
        checkValue(item.value, item.entityName);
    }
    for (const item of deletes) checkOperation(item, 'a delete');
    for (const item of checks) {
        checkOperation(item, 'a check');
        if (item.conditions === undefined) refuse('BAD_REQUEST', 'a check needs conditions');
    }
    const isMet = ({ key, entityName, conditions }) =>
        conditions === undefined || holds(conditions, installation.get(place(key, entityName)));
    if (installation.meetsAnother() || !operations.every(isMet)) {
        refuse('CONDITIONAL_CHECK_FAILED', 'Request failed due to conditional check specified or optimistic locking.');
    }
    for (const { key, entityName, value, options } of sets) installation.set(place(key, entityName), value, options);
    for (const { key, entityName } of deletes) installation.delete(place(key, entityName));
    return undefined;
}

const ROUTES = {
    get: ofKeyValueStore(get, 'key', 'options'),
    set: ofKeyValueStore(set, 'key', 'value', 'options'),
    delete: ofKeyValueStore(remove, 'key'),
    'entity/get': ofEntity(get, 'key', 'options'),
    'entity/set': ofEntity(set, 'key', 'value', 'options'),
    'entity/delete': ofEntity(remove, 'key'),
    'entity/query': queryEntity,
    query,
    'batch/get': batchGet,
    'batch/set': batchSet,
    'batch/delete': batchDelete,
    transaction,
};

async function bodyOf(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (body.length > PAYLOAD_BYTES_MAX) refuse('MAX_SIZE', 'The payload exceeds 4 MB', 413);
    try {
        return JSON.parse(body.toString());
    } catch {
        return refuse('BAD_REQUEST', 'Provided request body is invalid');
    }
}

function installationOf(name) {
    if (!installations.has(name)) installations.set(name, new Installation());
    return installations.get(name);
}

async function answer(request) {
    const control = /^\/control\/([\w-]+)$/.exec(request.url);
    if (control) {
        installationOf(control[1]).control(await bodyOf(request));
        return undefined;
    }
    // The one path is that of Forge Remote, the other that of Atlassian's client inside of Forge.
    const path = /^(?:\/forge\/storage\/kvs|\/api)\/v1\/(.+)$/.exec(request.url);
    const route = path && Object.hasOwn(ROUTES, path[1]) ? ROUTES[path[1]] : refuse('NOT_FOUND', 'no such resource', 404);
    if (request.method !== 'POST') refuse('METHOD_NOT_ALLOWED', 'only POST', 405);
    const token = /^Bearer (([\w-]+)\.[\w-]+)$/.exec(request.headers.authorization ?? '');
    const installation = token && installationOf(token[2]);
    if (!installation?.admits(token[1])) refuse('UNAUTHORIZED', 'the token is invalid or has expired', 401);
    if (!(request.headers['content-type'] ?? '').startsWith('application/json')) {
        refuse('BAD_REQUEST', 'the body must be application/json', 415);
    }
    return route(installation, await bodyOf(request));
}

const server = createServer(async (request, response) => {
    try {
        const result = await answer(request);
        if (result === undefined) {
            response.statusCode = 204;
            response.end();
        } else {
            response.setHeader('content-type', 'application/json');
            response.end(JSON.stringify(result));
        }
    } catch (error) {
        if (!(error instanceof Refused)) console.error(error);
        const { status = 500, code = 'INTERNAL_SERVER_ERROR', message } = error;
        response.statusCode = status;
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ code, message }));
    }
});
// Tests keep connections while they think.
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'));
