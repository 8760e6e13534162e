import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { open } from 'lmdb';
import { makeBookmark } from '../../src/store/bookmark.ts';
import { openLmdb } from '../../src/store/lmdb.ts';
import type { KeyedRow } from '../../src/store/lmdb/row.ts';
import { keyOfId, keyRow } from '../../src/store/lmdb/row.ts';
import { NAMES } from '../../src/store/lmdb/tables.ts';
import { countBytes, itemCount } from '../../src/store/lmdb/write.ts';
import { Slots } from '../../src/store/slots.ts';
import type { OpenStore } from '../store.contract.ts';
import { removeDirectory } from './directory.ts';

/** A directory that is removed after the test. */
export async function testDirectory(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-lmdb-'));
  t.after(() => removeDirectory(directory));
  return directory;
}

/** A new embedded store. */
export async function testLmdb(t: TestContext): Promise<OpenStore> {
  const directory = await testDirectory(t);
  const slots = new Slots();
  const store = await openLmdb({ directory, slots });
  t.after(() => store.close());
  const file = openRaw(directory);
  t.after(() => file.close());
  return { store, slots, remove: file.remove };
}

/** Opens the contents of the file through the lmdb library, with a handle of its own. */
export function openRaw(directory: string) {
  const root = open({
    path: join(directory, 'items.mdb'),
    noSubdir: true,
    encoding: 'binary',
    keyEncoding: 'binary',
    maxDbs: 16,
  });
  const table = (name: keyof typeof NAMES) =>
    root.openDB<Buffer, Uint8Array>({ name: NAMES[name], encoding: 'binary', keyEncoding: 'binary' });
  const [items, meta] = [table('items'), table('meta')];
  const indexes = (['byPrice', 'byCategory', 'byCategoryPrice'] as const).map(
    (name) => [name, table(name)] as const,
  );
  return {
    root,
    meta,
    table,
    count: () => itemCount(meta),
    rows: () => [...items.getRange({})].map(({ value }) => value),
    /** The faults of the file: rows missing from an index, index entries without a row, wrong counts. */
    faults: (): string[] => {
      const keyed = [...items.getRange({})].map(({ value }) => keyRow(value)).filter(isKeyed);
      const faults = indexes.flatMap(([name, index]) => {
        const wanted = new Set(keyed.map((row) => hex(row[name])));
        const there = new Set([...index.getKeys({})].map(hex));
        return [
          ...[...wanted].filter((key) => !there.has(key)).map((key) => `${name} lacks ${key}`),
          ...[...there].filter((key) => !wanted.has(key)).map((key) => `${name} has a stale ${key}`),
        ];
      });
      const count = itemCount(meta);
      return count === keyed.length ? faults : [...faults, `counted ${count} of ${keyed.length} rows`];
    },
    /** In a transaction: writes a row without its index entries, as a load begins. */
    putRow: (document: Uint8Array): void => {
      const row = keyRow(document);
      if (!isKeyed(row)) throw new Error(row);
      items.putSync(row.id, Buffer.from(document));
    },
    remove: async (_id: unknown): Promise<void> => {
      const key = keyOfId(makeBookmark({ _id }));
      if (!key) return;
      await root.transaction(() => {
        const bytes = items.getBinary(key);
        const row = bytes && keyRow(bytes);
        if (!row || !isKeyed(row)) return;
        items.removeSync(key);
        for (const [name, index] of indexes) index.removeSync(row[name]);
        meta.putSync(Buffer.from('items'), Buffer.from(countBytes(itemCount(meta) - 1)));
      });
    },
    close: () => root.close(),
  };
}

function isKeyed(row: KeyedRow | string): row is KeyedRow {
  return typeof row !== 'string';
}

function hex(key: Uint8Array): string {
  return Buffer.from(key).toString('hex');
}
