import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ForeignVersionError } from '../../../src/editions/delta/log.ts';
import { tableSchema } from '../../../src/editions/delta/schema.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { folderObjects, noPuts } from '../../support/editions/delta/objects.ts';
import { DeltaReaders } from '../../support/editions/delta/readers.ts';
import { assertRows, assertTable, type TablePlace } from '../../support/editions/delta/reading.ts';
import { changedRows, COLUMNS } from '../../support/editions/delta/rows.ts';
import { TestTable } from '../../support/editions/delta/table.ts';
import { SEED } from '../../support/seed.ts';
import { randomFrom } from '../../support/store/random-collection.ts';
import { shared, testsWith } from '../../support/tests-with.ts';

const withReaders = testsWith(shared((t) => DeltaReaders.start(t)));
const KEEP = 3;

interface Ground extends TablePlace {
  readonly table: TestTable;
  /** Changes some rows, and makes an edition of them. */
  readonly store: (changes?: number, sequence?: number) => Promise<void>;
  readonly logFiles: () => Promise<readonly string[]>;
}

async function newTable(t: TestContext): Promise<Ground> {
  const scratch = await temporaryFolder(t);
  const table = new TestTable(folderObjects(scratch), 'things', tableSchema(COLUMNS), KEEP);
  const random = randomFrom(SEED);
  let rows: ReadonlyMap<string, string> = new Map();
  return {
    uri: join(scratch, 'things'),
    options: {},
    scratch,
    table,
    async store(changes = 10, sequence?: number) {
      rows = changedRows(rows, changes, random);
      await table.store(rows, sequence);
    },
    logFiles: async () => (await readdir(join(scratch, 'things/_delta_log'))).sort(),
  };
}

withReaders(
  'readers of Delta tables give the rows of the newest edition and of kept ones',
  async (readers, t) => {
    const { table, store, ...place } = await newTable(t);
    for (const changes of [80, 1, 20, 5, 30]) {
      await store(changes);
      await table.commit();
      await table.sweep();
    }
    await assertTable(readers, place, table);
  },
);

withReaders('a table with a schema that changes is read at versions of both', async (readers, t) => {
  const { table, store, ...place } = await newTable(t);
  await store(40);
  await table.commit();
  table.schema = tableSchema(
    COLUMNS.map((column) => (column.name === 'stock' ? { name: 'stock', kind: 'double' } : column)),
  );
  await store(1);
  await table.commit();
  await assertTable(readers, place, table);
});

withReaders(
  'a builder that dies before its commit leaves the table before it, and the next one makes up for it',
  async (readers, t) => {
    const { table, store, ...place } = await newTable(t);
    await store(30);
    await table.commit();
    const before = table.newest;
    assert.ok(before);
    await store(10);
    await assert.rejects(table.commit(noPuts(table.objects)), /killed/);
    await assertRows(readers, place, null, before);
    await store(10);
    await table.commit();
    await assertTable(readers, place, table);
  },
);

withReaders(
  'behind a hundred commits there is a checkpoint, and commits before it go when no kept edition needs them',
  async (readers, t) => {
    const { table, store, logFiles, ...place } = await newTable(t);
    for (let n = 0; n <= 101; n++) {
      await store(2);
      await table.commit();
      await table.sweep();
    }
    assert.equal((await logFiles()).length, 102 + 2);
    await assertTable(readers, place, table);
    await store(2);
    await table.commit();
    await table.sweep();
    assert.deepEqual(await logFiles(), [
      '00000000000000000100.checkpoint.parquet',
      ...[100, 101, 102].map((version) => `${String(version).padStart(20, '0')}.json`),
      '_last_checkpoint',
    ]);
    await assertTable(readers, place, table);
  },
);

withReaders(
  'a table that begins with a later edition, or again behind lost commits, begins with a checkpoint',
  async (readers, t) => {
    const { table, store, logFiles, ...place } = await newTable(t);
    await store(20, 57);
    await table.commit();
    assert.deepEqual(await logFiles(), ['00000000000000000057.checkpoint.parquet', '_last_checkpoint']);
    await assertTable(readers, place, table);
    await store(5);
    await table.commit();
    await assertTable(readers, place, table);
    await store(5, 90);
    await table.commit();
    const { newest } = table;
    assert.ok(newest);
    await assertRows(readers, place, null, newest);
  },
);

withReaders('a commit is written once, also by builders that repeat it late', async (_readers, t) => {
  const { table, store, logFiles } = await newTable(t);
  await store();
  await Promise.all([table.commit(), table.commit()]);
  const first = table.newest;
  assert.ok(first);
  await store();
  await table.commit();
  await table.commitOf(first, null);
  assert.deepEqual(await logFiles(), ['00000000000000000000.json', '00000000000000000001.json']);
});

withReaders(
  'an edition whose rows stay has a later time, and is the version that is there',
  async (_readers, t) => {
    const { table, store, logFiles } = await newTable(t);
    await store();
    await table.commit();
    await store();
    await table.commit();
    const before = table.newest;
    assert.ok(before);
    const later = { ...before, head: { ...before.head, at: '2027-01-01T00:00:00.000Z' } };
    await table.commitOf(later, table.editions[0] ?? null);
    assert.deepEqual(await logFiles(), ['00000000000000000000.json', '00000000000000000001.json']);
  },
);

withReaders(
  'a version of another program, or of editions that were lost, is not taken for ours',
  async (_readers, t) => {
    const { table, store, scratch } = await newTable(t);
    await store();
    await table.commit();
    const foreign = join(scratch, 'things/_delta_log/00000000000000000001.json');
    await writeFile(foreign, '{"commitInfo":{"timestamp":1,"operation":"OPTIMIZE"}}\n');
    await store();
    await assert.rejects(table.commit(), ForeignVersionError);
    await store(10, 0);
    await assert.rejects(table.commit(), ForeignVersionError);
  },
);
