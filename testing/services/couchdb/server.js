// PouchDB behind CouchDB's HTTP API, for tests:
//
//   node server.js PORT DIRECTORY
//
// Where PouchDB's server leaves out something that CouchDB documents and Keyward goes by, it is added here:
// a password, whole numbers of any length, the largest document, how many copies a database is kept in, and pages
// of views that begin at a document.

import express from 'express';
import serve from 'express-pouchdb';
import PouchDB from 'pouchdb-core';
import createViews from 'pouchdb-abstract-mapreduce';
import leveldb from 'pouchdb-adapter-leveldb';

/** The only user. The password has characters that a URL must escape. */
const CREDENTIALS = `Basic ${Buffer.from('keyward:p@ss/word').toString('base64')}`;
/** CouchDB's default for `max_document_size`. */
const DOCUMENT_BYTES_MAX = 8_000_000;
/** What a request may have. */
const BODY_BYTES_MAX = 64 << 20;

const [port, directory] = process.argv.slice(2);

// PouchDB's views, but a map function is compiled once: pouchdb-mapreduce makes a sandbox for every document, which
// takes more time than all the rest.
const { query, viewCleanup } = (createViews.default ?? createViews)(
    'mrviews',
    (map, emit) => new Function('emit', `"use strict"; return (${map.toString().replace(/;\s*$/, '')});`)(emit),
    () => {
        throw new Error('this server reduces nothing');
    },
    () => {},
);

const Database = PouchDB.plugin(leveldb).plugin({ query, viewCleanup }).defaults({
    // On LevelDB ids are in the order of their bytes, as CouchDB has them; in memory they are not.
    adapter: 'leveldb',
    prefix: `${directory}/`,
    // Views are built in larger steps than the default of 50 documents.
    view_update_changes_batch_size: 2_000,
});

const refuse = (response, status, error, reason) => response.status(status).json({ error, reason });

const app = express();

app.use((request, response, next) => {
    if (request.headers.authorization === CREDENTIALS) return next();
    return refuse(response, 401, 'unauthorized', 'Name or password is incorrect.');
});

// CouchDB keeps whole numbers as they are; JavaScript rounds those of more than 53 bits. They are kept as strings that
// begin with this character, which tests do not use.
const LONG = '\uE0F0';
const isLong = (token) => /^-?\d{16,}$/.test(token);
const shorten = (text) => text.replace(/"(?:[^"\\]|\\.)*"|[-+.\dEe]+/g, (token) => (isLong(token) ? `"${LONG}${token}"` : token));
const lengthen = (text) => text.replaceAll(new RegExp(`"${LONG}(-?\\d+)"`, 'g'), '$1');

app.use(express.text({ type: 'application/json', limit: BODY_BYTES_MAX }), (request, response, next) => {
    if (typeof request.body === 'string') {
        if (request.method === 'PUT' && Buffer.byteLength(request.body) > DOCUMENT_BYTES_MAX) {
            return refuse(response, 413, 'document_too_large', request.url);
        }
        try {
            const text = /\d{16}/.test(request.body) ? shorten(request.body) : request.body;
            // PUT of a database has none.
            request.body = text === '' ? {} : JSON.parse(text);
        } catch (error) {
            return refuse(response, 400, 'bad_request', `invalid UTF-8 JSON: ${error.message}`);
        }
    }
    const send = response.send.bind(response);
    response.send = (body) => {
        const marked = Buffer.isBuffer(body) && body.includes(LONG);
        return send(marked ? Buffer.from(lengthen(body.toString())) : body);
    };
    return next();
});

// What CouchDB says of a database beside the rest. Those whose name ends in `-copies-N` are kept in N copies, and
// those in `-partitioned` are partitioned, as far as they say.
app.get('/:db', (request, response, next) => {
    const { db } = request.params;
    const copies = Number(/-copies-(\d+)$/.exec(db)?.[1] ?? 1);
    const quorum = Math.floor(copies / 2) + 1;
    const send = response.send.bind(response);
    response.send = (body) => {
        const told = JSON.parse(body.toString());
        if (response.statusCode === 200) {
            told.cluster = { q: 2, n: copies, w: quorum, r: quorum };
            told.props = db.endsWith('-partitioned') ? { partitioned: true } : {};
            told.sizes = { file: 1, external: 1, active: 1 };
        } else if (response.statusCode === 404) {
            told.reason = 'Database does not exist.';
        }
        return send(Buffer.from(JSON.stringify(told)));
    };
    return next();
});

const opened = new Map();
Database.on('destroyed', (name) => opened.delete(name.split('/').pop()));

/** Rows with one key are in the order of the bytes of their ids. */
const isFrom = (start) => ({ id }) => Buffer.compare(Buffer.from(id), start) >= 0;

// PouchDB has no `startkey_docid`: the rows before it are dropped here.
app.post('/:db/_design/:design/_view/:view', async (request, response, next) => {
    const { startkey_docid: start, limit, include_docs: documents, ...query } = request.body;
    if (start === undefined) return next();
    const { db, design, view } = request.params;
    try {
        if (!opened.has(db)) opened.set(db, new Database(db));
        const database = opened.get(db);
        const found = await database.query(`${design}/${view}`, query);
        const from = found.rows.findIndex(isFrom(Buffer.from(start)));
        const rows = from < 0 ? [] : found.rows.slice(from, limit && from + limit);
        if (documents) {
            const { rows: read } = await database.allDocs({ keys: rows.map(({ id }) => id), include_docs: true });
            rows.forEach((row, n) => Object.assign(row, { doc: read[n].doc ?? null }));
        }
        return response.send(Buffer.from(JSON.stringify({ ...found, rows })));
    } catch (error) {
        return refuse(response, error.status ?? 500, error.name, error.message);
    }
});

app.use(serve(Database, { mode: 'minimumForPouchDB' }));

// Tests keep connections while they think.
app.listen(Number(port), '127.0.0.1', () => console.log('ready')).keepAliveTimeout = 60_000;
