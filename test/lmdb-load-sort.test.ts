import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SortedEntries } from '../src/store/lmdb/load/entries.ts';
import { SortedRuns } from '../src/store/lmdb/load/runs.ts';
import { ENTRY_HEAD_BYTES, keyLength, valueLength } from '../src/store/lmdb/load/sort.ts';
import type { Key } from '../src/store/keys.ts';
import type { Database, KeyScratch } from '../src/store/lmdb/tables.ts';
import { testDirectory } from './support/lmdb.ts';

/** A pseudo-random number below `below`, the same in every run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A key of few different bytes, so that many keys share their beginning, are equal, or begin another one. */
function anyKey(random: (below: number) => number): Buffer {
  return Buffer.from(Array.from({ length: random(14) }, () => [0, 0, 1, 65, 255][random(5)] ?? 0));
}

for (const [runBytes, name] of [
  [1_000_000, 'in memory'],
  [700, 'in many runs'],
  [40, 'in runs of one or two entries'],
] as const)
  test(`entries come sorted by their keys, with their values, when they are sorted ${name}`, async (t) => {
    const directory = join(await testDirectory(t), 'sort');
    const random = randomOf(runBytes);
    for (const count of [0, 1, 2, 50, 3_000]) {
      const runs = new SortedRuns(directory, runBytes);
      const expected: [Buffer, Buffer][] = [];
      for (let n = 0; n < count; n++) {
        const parts = [anyKey(random), anyKey(random), Buffer.from([n >> 8, n & 255])];
        const value = Buffer.alloc(n % 97 === 0 ? random(2_000) : random(4), n & 255);
        const whole = Buffer.concat([Buffer.from('in front'), ...parts]);
        runs.add(whole, 8, whole.length, value);
        expected.push([Buffer.concat(parts), value]);
      }
      const found: [Buffer, Buffer][] = [];
      for (const entry of runs.merged()) {
        const keyAt = entry.at + ENTRY_HEAD_BYTES;
        const valueAt = keyAt + keyLength(entry, entry.at);
        const end = valueAt + valueLength(entry, entry.at);
        found.push([
          Buffer.from(entry.bytes.slice(keyAt, valueAt)),
          Buffer.from(entry.bytes.slice(valueAt, end)),
        ]);
      }
      assert.deepEqual(
        found,
        expected.sort(([a], [b]) => a.compare(b)),
      );
      runs.close();
    }
    const left = runBytes === 1_000_000 ? [] : readdirSync(directory);
    assert.deepEqual(left, [], 'no temporary file has a name');
  });

test('an entry that is taken back is not appended, and one that comes again is', async (t) => {
  const random = randomOf(7);
  const directory = await testDirectory(t);
  for (const runBytes of [64, 1_000_000]) {
    const appended: string[] = [];
    const table = {
      putSync: (key: KeyScratch) => appended.push(Buffer.from(key.copied()).toString('hex')) > 0,
    } as unknown as Database;
    const entries = new SortedEntries(table, directory, runBytes);
    const there = new Map<string, number>();
    for (let n = 0; n < 2_000; n++) {
      const key: Key = Buffer.from([random(9), random(9), random(9), 1]);
      const name = Buffer.from(key).toString('hex');
      const isThere = (there.get(name) ?? 0) > 0;
      if (isThere) entries.remove(key, 0, key.length);
      else entries.add(key, 0, key.length);
      there.set(name, isThere ? 0 : 1);
    }
    while (entries.append(random(50) + 1));
    entries.close();
    const expected = [...there].filter(([, times]) => times > 0).map(([name]) => name);
    assert.deepEqual(appended, expected.sort());
  }
});
