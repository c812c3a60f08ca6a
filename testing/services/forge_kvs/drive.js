// Does what a test asks for with Atlassian's own client, as an app on Forge would: one call a line on standard
// input, such as ["set", "key", {"a": 1}], one answer a line.
//
//   node drive.js BASE TOKEN
import { createInterface } from 'node:readline';

import { clientOf } from './client.js';

const [base, token] = process.argv.slice(2);
const { kvs, WhereConditions } = clientOf(base, token);

const CALLS = {
    get: (key) => kvs.get(key),
    set: (key, value, options) => kvs.set(key, value, options),
    delete: (key) => kvs.delete(key),
    /** All rows below a prefix, page by page, as an app lists them. */
    list: async (prefix) => {
        const rows = {};
        for (let cursor; ; ) {
            let query = kvs.query().where('key', WhereConditions.beginsWith(prefix)).limit(3);
            if (cursor !== undefined) query = query.cursor(cursor);
            const { results, nextCursor } = await query.getMany();
            for (const { key, value } of results) rows[key] = value;
            if (nextCursor === undefined) return rows;
            cursor = nextCursor;
        }
    },
};

for await (const line of createInterface({ input: process.stdin })) {
    const [name, ...values] = JSON.parse(line);
    const result = await CALLS[name](...values);
    console.log(JSON.stringify(result ?? null));
}
