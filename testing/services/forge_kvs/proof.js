// Proves that the test server speaks what Atlassian's own client speaks: every operation that Keyward's engine uses,
// what it refuses, and each limit from both sides.
//
//   node proof.js BASE
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

import { clientOf } from './client.js';

const base = process.argv[2];
const { kvs, Filter, FilterConditions, MetadataField, WhereConditions } = clientOf(base, `proof-${randomUUID()}.token`);
const refusedAs = (code) => (error) => {
    assert.equal(error.name, 'ForgeKvsError');
    assert.equal(error.code, code);
    return true;
};

// get, set, delete
assert.equal(await kvs.get('page:none'), undefined);
for (const value of ['text', 7.5, true, ['a', 1, null], { b: 1, a: { deep: [] } }]) {
    await kvs.set('page:value', value);
    assert.deepEqual(await kvs.get('page:value'), value);
}
const before = Date.now();
const { key, value, createdAt, updatedAt } = await kvs.get('page:value', {
    metadataFields: [MetadataField.CREATED_AT, MetadataField.UPDATED_AT, MetadataField.EXPIRE_TIME],
});
assert.deepEqual([key, value], ['page:value', { b: 1, a: { deep: [] } }]);
assert.ok(createdAt <= updatedAt && updatedAt <= before);
await kvs.delete('page:value');
await kvs.delete('page:value');
assert.equal(await kvs.get('page:value'), undefined);

// options of set
await kvs.set('page:policy', 1, { keyPolicy: 'FAIL_IF_EXISTS' });
await assert.rejects(kvs.set('page:policy', 2, { keyPolicy: 'FAIL_IF_EXISTS' }), refusedAs('KEY_CONFLICT'));
const told = await kvs.set('page:policy', 3, { keyPolicy: 'OVERRIDE', returnValue: 'PREVIOUS' });
assert.equal(told.value, 1);
await kvs.set('page:ends', 1, { ttl: { value: 1, unit: 'HOURS' } });
const { expireTime } = await kvs.get('page:ends', { metadataFields: [MetadataField.EXPIRE_TIME] });
const left = Date.parse(expireTime) - Date.now();
assert.ok(left > 3_500_000 && left <= 3_600_000, `${left} ms left`);
await assert.rejects(kvs.set('page:ends', 1, { ttl: { value: 366, unit: 'DAYS' } }), refusedAs('BAD_REQUEST'));

// batches
const many = Array.from({ length: 25 }, (_, n) => ({ key: `many:${n}`, value: { n } }));
const written = await kvs.batchSet(many);
assert.deepEqual([written.successfulKeys.length, written.failedKeys], [25, []]);
const read = await kvs.batchGet([...many.slice(1), { key: 'many:none' }].map(({ key }) => ({ key })));
assert.deepEqual(read.successfulKeys, many.slice(1));
assert.deepEqual(read.failedKeys.map(({ key, error }) => [key, error.code]), [['many:none', 'KEY_NOT_FOUND']]);
await assert.rejects(kvs.batchGet([...many, { key: 'many:25' }]), refusedAs('BAD_REQUEST'));
await assert.rejects(kvs.batchGet([{ key: 'many:1' }, { key: 'many:1' }]), refusedAs('BAD_REQUEST'));
await assert.rejects(kvs.batchGet([]), refusedAs('BAD_REQUEST'));
const gone = await kvs.batchDelete([{ key: 'many:24' }, { key: 'many:none' }]);
assert.equal(gone.successfulKeys.length, 2);

// query
const listed = [];
for (let cursor; ; ) {
    let query = kvs.query({ metadataFields: [MetadataField.UPDATED_AT] }).where('key', WhereConditions.beginsWith('many:'));
    if (cursor !== undefined) query = query.cursor(cursor);
    const { results, nextCursor } = await query.getMany();
    assert.ok(results.length <= 10 && results.every((row) => Number.isInteger(row.updatedAt)));
    listed.push(...results.map(({ key }) => key));
    if (nextCursor === undefined) break;
    cursor = nextCursor;
}
assert.deepEqual(listed, many.slice(0, 24).map(({ key }) => key).sort());
assert.equal((await kvs.query().limit(100).getMany()).results.length, 24 + 2);
await assert.rejects(kvs.query().limit(101).getMany(), refusedAs('LIST_QUERY_LIMIT_EXCEEDED'));
await assert.rejects(kvs.query().cursor('none').getMany(), refusedAs('INVALID_CURSOR'));

// transactions
await kvs.transact().set('one', 'a').set('two', 2, undefined, { ttl: { value: 90, unit: 'SECONDS' } }).delete('many:0').execute();
assert.deepEqual([await kvs.get('one'), await kvs.get('two'), await kvs.get('many:0')], ['a', 2, undefined]);
await assert.rejects(kvs.transact().set('one', 'b').set('bad/key', 1).execute(), refusedAs('INVALID_KEY'));
assert.equal(await kvs.get('one'), 'a', 'all or nothing');
await assert.rejects(kvs.transact().set('one', 'b').delete('one').execute(), refusedAs('BAD_REQUEST'));
await assert.rejects(kvs.transact().execute(), refusedAs('INVALID_TRANSACTION_REQUEST'));
const large = many.reduce((transaction, { key }) => transaction.set(key, 1), kvs.transact());
await large.execute();
await assert.rejects(large.set('one', 1).execute(), refusedAs('BAD_REQUEST'));

// custom entities
const entity = kvs.entity('keyward');
const state = (version, expires) => ({ version, expires, value: { a: 1 } });
await entity.set('page:one', state('v1', 9e15));
assert.deepEqual(await entity.get('page:one'), state('v1', 9e15));
assert.equal(await kvs.get('page:one'), undefined, 'an entity is no key of the key-value store');
await assert.rejects(entity.set('page:one', state('v2', 1), { keyPolicy: 'FAIL_IF_EXISTS' }), refusedAs('KEY_CONFLICT'));
await entity.set('page:two', state('v1', 5), { keyPolicy: 'FAIL_IF_EXISTS', ttl: { value: 60, unit: 'SECONDS' } });
await assert.rejects(entity.set('page:two', { version: 7 }), refusedAs('INVALID_ENTITY_VALUE'));
await assert.rejects(kvs.entity('other').set('page:two', state('v2', 1)), refusedAs('INVALID_ENTITY_TYPE'));
const isVersion = (version) => new Filter()
    .and('version', FilterConditions.equalTo(version)).and('expires', FilterConditions.greaterThan(100));
const swap = (key, from, to) =>
    kvs.transact().set(key, state(to, 9e15), { entityName: 'keyward', conditions: isVersion(from) }).execute();
await swap('page:one', 'v1', 'v2');
for (const [key, from] of [['page:one', 'v1'], ['page:two', 'v1'], ['page:none', 'v1']]) {
    await assert.rejects(swap(key, from, 'v3'), refusedAs('CONDITIONAL_CHECK_FAILED'));
}
assert.equal((await entity.get('page:one')).version, 'v2');
const racers = await Promise.allSettled(Array.from({ length: 16 }, (_, n) => swap('page:one', 'v2', `r${n}`)));
assert.equal(racers.filter(({ status }) => status === 'fulfilled').length, 1, 'one winner');
const entities = await kvs.batchGet([{ key: 'page:one', entityName: 'keyward' }, { key: 'page:none', entityName: 'keyward' }]);
assert.deepEqual([entities.successfulKeys.length, entities.failedKeys[0].error.code], [1, 'KEY_NOT_FOUND']);
const ofPage = (limit) => entity.query().index('by-key').where(WhereConditions.beginsWith('page:')).limit(limit);
const first = await ofPage(1).getMany();
const second = await ofPage(1).cursor(first.nextCursor).getMany();
assert.deepEqual([...first.results, ...second.results].map(({ key }) => key), ['page:one', 'page:two']);
assert.equal(second.nextCursor, undefined);
await assert.rejects(ofPage(101).getMany(), refusedAs('COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE'));
const { version } = await entity.get('page:one');
const remove = (from) =>
    kvs.transact().delete('page:one', { entityName: 'keyward', conditions: isVersion(from) }).execute();
await assert.rejects(remove('v2'), refusedAs('CONDITIONAL_CHECK_FAILED'));
await remove(version);
await entity.delete('page:one');
assert.equal(await entity.get('page:one'), undefined);

// keys and values
await kvs.set('k'.repeat(500), 1);
await assert.rejects(kvs.set('k'.repeat(501), 1), refusedAs('KEY_TOO_LONG'));
await assert.rejects(kvs.set('k', 1), refusedAs('KEY_TOO_SHORT'));
await kvs.set('Aa0 :._-#', 1);
for (const key of ['a%b', 'a/b', '학칙', '  ']) await assert.rejects(kvs.set(key, 1), refusedAs('INVALID_KEY'));
await kvs.set('large', 'x'.repeat(240 * 1024 - 2));
await assert.rejects(kvs.set('large', 'x'.repeat(240 * 1024 - 1)), refusedAs('MAX_SIZE'));
const nested = (depth) => (depth === 0 ? 1 : [nested(depth - 1)]);
await kvs.set('nested', nested(31));
await assert.rejects(kvs.set('nested', nested(32)), refusedAs('MAX_DEPTH'));
await assert.rejects(kvs.set('nothing', null), refusedAs('BAD_REQUEST'));

// tokens
const stranger = await fetch(`${base}/v1/get`, { method: 'POST', body: '{"key":"one"}' });
assert.equal(stranger.status, 401);
console.log('proven');
