import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { backUp } from '../../../../src/store/sqlite/file/backup.ts';
import { check } from '../../../../src/store/sqlite/file/check.ts';
import { FILE } from '../../../../src/store/sqlite/file/file.ts';
import { temporaryFolder } from '../../../support/directory.ts';
import { fillWith, startFill } from '../../../support/store/filling.ts';
import { expectedItems, insertItems, makeItems } from '../../../support/store/items.ts';
import { NEVER, PLENTY, assertChain } from '../../../support/store/reading.ts';
import { openFor } from '../../../support/store/sqlite/sqlite.ts';

const BY_ID = { sort: '_id', direction: 1 } as const;
const SIZE = { rows: 1_000, bytes: PLENTY };

test('a backup while rows are replaced has the rows of before, is whole, and can be loaded at once', async (t) => {
  const directory = await temporaryFolder(t);
  const restored = join(await temporaryFolder(t), 'restored');
  await mkdir(restored);
  const { items } = await openFor(t, directory);
  const before = makeItems(60);
  const after = makeItems(100).slice(60);
  await insertItems(items, before);
  const fill = startFill(items, { replaces: true });
  fill.add(after.map(({ bytes }) => bytes));
  await fill.asks();
  const to = join(restored, FILE);
  await backUp({ from: join(directory, FILE), to, replaces: false, onPages: () => undefined, signal: NEVER });
  const lines: string[] = [];
  assert.equal(await check(to, (line) => lines.push(line)), 0, lines.join());
  const copy = (await openFor(t, restored)).items;
  await assertChain(copy, BY_ID, {}, SIZE, expectedItems(before, BY_ID));
  const some = before.slice(0, 5);
  await fillWith(
    copy,
    some.map(({ bytes }) => bytes),
    { replaces: true },
  );
  await assertChain(copy, BY_ID, {}, SIZE, expectedItems(some, BY_ID));
  fill.end();
  await fill.done;
  await assertChain(items, BY_ID, {}, SIZE, expectedItems(after, BY_ID));
});
