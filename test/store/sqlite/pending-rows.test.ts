import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { documentIn } from '../../../src/store/sqlite/file/checked-rows.ts';
import { bytesIn, Connection } from '../../../src/store/sqlite/file/connection.ts';
import { PendingRows } from '../../../src/store/sqlite/write/pending-rows.ts';
import { temporaryFolder } from '../../support/directory.ts';

/** More than the memory has at the beginning, in all, and no multiple of the rows of a statement. */
const SIZES = Array.from({ length: 45 }, (_, row) => (row === 20 ? 2_000_000 : 100 + row));
const COLUMNS = ['n', 'k', 'd', 'i1', 'i2'];

test('rows that wait are inserted as they were added, with their numbers and without what is missing, and once', async (t) => {
  const connection = new Connection(join(await temporaryFolder(t), 'rows.db'));
  t.after(() => connection.close());
  connection.exec(
    'create table rows(n integer primary key, k blob not null, d blob not null, i1 blob, i2 blob)',
  );
  const rows = new PendingRows();
  const expected = SIZES.map((size, row) => ({
    n: 3 * row + 1,
    k: Buffer.alloc(1 + row, row),
    document: Buffer.alloc(size, 100 + row),
    entries: [
      row % 3 === 0 ? null : Buffer.from(`first ${row}`),
      row % 2 === 0 ? Buffer.from(`second ${row}`) : null,
    ],
  }));
  for (let half = 0; half < 2; half++) {
    rows.clear();
    for (const { n, k, document, entries } of expected.slice(half * 30, half * 30 + 30))
      rows.add(n, k, document, entries);
    assert.equal(rows.rows, half === 0 ? 30 : 15);
    connection.transaction(() => rows.insertInto(connection, 'rows', COLUMNS));
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
