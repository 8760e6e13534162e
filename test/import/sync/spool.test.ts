import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { Spool, SpoolFolder, type SpooledRow } from '../../../src/import/sync/spool.ts';
import { compareKeys } from '../../../src/store/values/keys.ts';
import { below, randomFrom } from '../../support/store/random-collection.ts';

const compare = (a: SpooledRow, b: SpooledRow) => compareKeys(a.key, b.key) || a.at - b.at;

/** Rows with keys in no order, some of which come twice, and some of which are longer than what is read at once. */
function randomRows(): readonly SpooledRow[] {
  const random = randomFrom(1);
  return Array.from({ length: 700 }, (_, at) => ({
    key: Buffer.from(String(below(random, 500))),
    at,
    item: Buffer.alloc(at % 97 === 0 ? 600_000 : below(random, 300), at),
  }));
}

async function rowsIn(spool: Spool): Promise<readonly SpooledRow[]> {
  const rows: SpooledRow[] = [];
  for await (const { key, at, item } of spool.rows())
    rows.push({ key: Buffer.from(key), at, item: Buffer.from(item) });
  return rows;
}

const foldersOf = async () => (await readdir(tmpdir())).filter((name) => name.startsWith('sluice-sync-'));

test('rows come in the order in which they were added, or sorted, from memory and from files', async () => {
  const rows = randomRows();
  const sorted = [...rows].sort(compare);
  for (const partBytes of [1, 20_000, 1e9]) {
    const folder = new SpoolFolder();
    const spools = [new Spool(folder, null, partBytes), new Spool(folder, compare, partBytes)] as const;
    for (const row of rows) for (const spool of spools) await spool.add(row);
    assert.deepEqual(await rowsIn(spools[0]), rows);
    assert.deepEqual(await rowsIn(spools[1]), sorted);
    assert.deepEqual(await rowsIn(spools[1]), sorted, 'they can be read again');
    await folder.remove();
  }
});

test('the files of a spool are those of this account alone, and go', async () => {
  const before = await foldersOf();
  const folder = new SpoolFolder();
  const path = await folder.newFile();
  assert.equal((await foldersOf()).length, before.length + 1, path);
  await folder.remove();
  assert.deepEqual(await foldersOf(), before);
  await new SpoolFolder().remove();
});
