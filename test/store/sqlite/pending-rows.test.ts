import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { documentIn } from '../../../src/store/sqlite/file/checked-rows.ts';
import { bytesIn, Connection } from '../../../src/store/sqlite/file/connection.ts';
import { Maintenance } from '../../../src/store/sqlite/file/maintenance.ts';
import { keyRow } from '../../../src/store/sqlite/file/keyed.ts';
import { BSON } from '../../../src/store/values/bson.ts';
import { PendingRows } from '../../../src/store/sqlite/write/pending-rows.ts';
import { temporaryFolder } from '../../support/directory.ts';

/** More than the memory has at the beginning, in all, and no multiple of the rows of a statement. */
const SIZES = Array.from({ length: 45 }, (_, row) => (row === 20 ? 2_000_000 : 100 + row));
const INDEXES = [['of', 'array'], ['array']].map((paths, at) => ({ number: at + 1, paths, builtTo: null }));
const COLUMNS = ['n', 'k', 'd', 'i1', 'i2'];

test('rows that wait are inserted as they were added, with their numbers and without what is missing, and once', async (t) => {
  const path = join(await temporaryFolder(t), 'rows.db');
  const connection = new Connection(path);
  const maintenance = new Maintenance(path);
  t.after(async () => {
    await maintenance.close();
    connection.close();
  });
  connection.exec(
    'create table rows(n integer primary key, k blob not null, d blob not null, i1 blob, i2 blob)',
  );
  const rows = new PendingRows();
  const expected = SIZES.map((size, row) => {
    const array = row % 3 === 0 ? [row] : row;
    const document = BSON.serialize({
      _id: `${row} `.repeat(row),
      array,
      filler: 'x'.repeat(size),
      of: `${row}`,
    });
    const keyed = keyRow(document, INDEXES);
    if (typeof keyed === 'string') assert.fail(keyed);
    assert.equal(keyed.entries.includes(null), row % 3 === 0);
    return { n: 3 * row + 1, k: keyed.key, document, entries: keyed.entries };
  });
  for (let half = 0; half < 2; half++) {
    rows.clear();
    const some = expected.slice(half * 30, half * 30 + 30);
    for (const { n, document } of some) {
      assert.notEqual(typeof rows.add(n, document, INDEXES), 'string');
      assert.equal(typeof rows.add(n, BSON.serialize({ a: 1 }), INDEXES), 'string', 'no row is left of it');
    }
    assert.equal(rows.bytes > some.length * 100, true);
    assert.equal(Buffer.compare(rows.firstKey, some[0]?.k ?? assert.fail()), 0);
    assert.equal(Buffer.compare(rows.lastKey, some.at(-1)?.k ?? assert.fail()), 0);
    assert.equal(rows.rows, half === 0 ? 30 : 15);
    await maintenance.insert('rows', COLUMNS, rows.packed());
  }
  const found = connection.all('select * from rows order by n').map((row) => ({
    n: row.n,
    k: bytesIn(row, 'k'),
    document: Buffer.from(documentIn(bytesIn(row, 'd') ?? new Uint8Array(0))),
    entries: [bytesIn(row, 'i1'), bytesIn(row, 'i2')],
  }));
  assert.equal(found.length, expected.length);
  for (const [at, row] of expected.entries()) {
    const { n, k, document, entries } = found[at] ?? assert.fail();
    assert.equal(n, row.n);
    assert.equal(Buffer.compare(k ?? new Uint8Array(0), row.k), 0);
    assert.equal(Buffer.compare(document, row.document), 0);
    const hex = (values: readonly (Uint8Array | null)[]) =>
      values.map((value) => value && Buffer.from(value).toString('hex'));
    assert.deepEqual(hex(entries), hex(row.entries));
  }
});

test('rows that wait are in order when each key is above the one before', () => {
  const isInOrder = (...ids: readonly unknown[]) => {
    const rows = new PendingRows();
    for (const [n, id] of ids.entries()) rows.add(n, BSON.serialize({ _id: id }), []);
    return rows.isInOrder;
  };
  assert.equal(isInOrder(1, 2, 'a', 'aa', 'b'), true);
  assert.equal(isInOrder(1, 1), false);
  assert.equal(isInOrder('aa', 'a'), false);
  assert.equal(isInOrder('a', 1), false);
  assert.equal(isInOrder(2, 1, 3), false);
});
