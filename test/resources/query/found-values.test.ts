import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areFound } from '../../../src/resources/query/found-values.ts';
import { Double, Int32, ObjectId, Decimal128, type Document } from '../../../src/store/values/bson.ts';
import { BSON_TYPE } from '../../../src/store/values/bson-types.ts';
import { KEY_INDEX } from '../../../src/store/indexes.ts';
import type { Bookmark } from '../../../src/store/bookmark.ts';
import type { Collection } from '../../../src/store/store.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';
import { serverOn } from '../../support/process/server.ts';
import { filled } from '../../support/resources/resources.ts';
import { NEVER } from '../../support/store/reading.ts';

const STRINGS = BSON_TYPE.string;
const NUMBERS = BSON_TYPE.int32;
const PLACE = { index: KEY_INDEX, equals: [] };

/** Rows of which some brackets are found, and how often each was looked for. */
function looked(found: Set<number>) {
  const looks: number[] = [];
  const nextValue: Collection['nextValue'] = (_index, _equals, { range }) => {
    looks.push(range?.bracket ?? 0);
    return Promise.resolve(range && found.has(range.bracket) ? (new Uint8Array(5) as Bookmark) : null);
  };
  return { rows: { nextValue } as unknown as Collection, looks };
}

test('a kind that comes later is found within a second, and one that goes within five', async () => {
  const found = new Set<number>([NUMBERS]);
  const { rows, looks } = looked(found);
  let now = 0;
  const ask = () => areFound(rows, PLACE, [{ bracket: NUMBERS }, { bracket: STRINGS }], NEVER, () => now);
  assert.deepEqual(await ask(), [true, false]);
  found.add(STRINGS);
  now = 999;
  assert.deepEqual(await ask(), [true, false]);
  assert.deepEqual(looks, [NUMBERS, STRINGS]);
  now = 1_000;
  assert.deepEqual(await ask(), [true, true]);
  assert.deepEqual(looks.splice(0), [NUMBERS, STRINGS, STRINGS]);
  found.clear();
  now = 4_999;
  assert.deepEqual(await ask(), [true, true]);
  now = 6_000;
  assert.deepEqual(await ask(), [false, false]);
  assert.deepEqual(looks, [NUMBERS, STRINGS]);
});

test('where no value is found, nothing is kept', async () => {
  const found = new Set<number>();
  const { rows } = looked(found);
  const ask = () => areFound(rows, PLACE, [{ bracket: NUMBERS }, { bracket: STRINGS }], NEVER, () => 0);
  assert.deepEqual(await ask(), [false, false]);
  found.add(STRINGS);
  assert.deepEqual(await ask(), [false, true]);
});

test('a look that fails is not kept, and those who ask at once share one', async () => {
  const { rows, looks } = looked(new Set([NUMBERS]));
  const ends: (() => void)[] = [];
  let isAway = true;
  const flaky = {
    nextValue: async (...call: Parameters<Collection['nextValue']>) => {
      await new Promise<void>((resolve) => void ends.push(resolve));
      if (isAway) throw new Error('away');
      return rows.nextValue(...call);
    },
  } as unknown as Collection;
  const ask = () => areFound(flaky, PLACE, [{ bracket: NUMBERS }, { bracket: STRINGS }], NEVER, () => 0);
  const end = () => {
    for (const one of ends.splice(0)) one();
  };
  const asked = ask();
  end();
  await assert.rejects(asked, /away/);
  isAway = false;
  const both = Promise.all([ask(), ask()]);
  end();
  assert.deepEqual(await both, [
    [true, false],
    [true, false],
  ]);
  assert.deepEqual(looks, [NUMBERS, STRINGS]);
});

/** Values of the same texts in several kinds: in the first and the last rows one kind, between them others. */
const VALUES: Readonly<Record<string, (n: number) => unknown>> = {
  number: (n) => new Int32(n % 10),
  text: (n) => String(n % 10),
  nothing: () => null,
  document: () => ({ x: 1 }),
  date: (n) => new Date(Date.UTC(2026, 0, 1 + (n % 10))),
  dateText: (n) => new Date(Date.UTC(2026, 0, 1 + (n % 10))).toISOString(),
  double: (n) => new Double((n % 10) + 0.1),
  decimal: (n) => Decimal128.fromString(`${n % 10}.1`),
  between: (n) => Decimal128.fromString(`${n % 10}.10000000000000000001`),
  objectId: (n) => new ObjectId(String(n % 10).repeat(24)),
  objectIdText: (n) => String(n % 10).repeat(24),
  boolean: (n) => n % 2 === 0,
  booleanText: (n) => String(n % 2 === 0),
};
const PAIRS: readonly (readonly [ends: string, middle: string])[] = [
  ...Object.keys(VALUES).map((name) => ['nothing', name] as const),
  ['number', 'text'],
  ['text', 'number'],
  ['document', 'text'],
  ['date', 'dateText'],
  ['dateText', 'date'],
  ['double', 'decimal'],
  ['decimal', 'double'],
  ['double', 'between'],
  ['objectId', 'objectIdText'],
  ['boolean', 'booleanText'],
];
const ROWS = 330;

/** A row as JSON, with the digits of its numbers. */
interface Shown {
  readonly id: number;
  readonly s: string;
  readonly f?: unknown;
}

function rowsOf([ends, middle]: readonly [string, string]): Document[] {
  return Array.from({ length: ROWS }, (_, n) => {
    const value = VALUES[n < 110 || n >= 220 ? ends : middle]?.(n);
    return { _id: n, s: n % 2 === 0 ? 'a' : 'b', f: value, g: value };
  });
}

/** A value as its JSON shows it. */
function shown(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number'
    ? String(value)
    : null;
}

onStores(
  sharedByStore(async (t, store) => {
    const settings = await filled(
      t,
      store,
      PAIRS.map((pair, n) => ({
        name: `p${n}`,
        rows: rowsOf(pair),
        indexes: [['f'], ['s', 'g']],
      })),
    );
    return settings && serverOn(t, { ...settings, STREAM_LIMIT: 'off' }, { tap: (serve) => serve });
  }),
  (test) => {
    for (const [n, [ends, middle]] of PAIRS.entries())
      test(`a text finds all rows that show it, or is refused: ${middle} between ${ends}`, async (server) => {
        const rowsAt = async (query: string) => {
          const answer = await server.get(`/p${n}/stream${query}`, { 'accept-encoding': 'identity' });
          const text = await answer.text();
          if (answer.status === 400) return null;
          assert.equal(answer.status, 200, `${query}: ${text}`);
          // JSON.parse would take 0.1 and 0.10000000000000000001 for one number.
          return text
            .split('\n')
            .slice(0, -1)
            .map((line) => JSON.parse(line.replace(/"f":(-?\d[\d.]*)/, '"f":"$1"')) as Shown);
        };
        const all = (await rowsAt('')) ?? [];
        assert.equal(all.length, ROWS);
        const texts = [...new Set(all.flatMap(({ f }) => shown(f) ?? []))].sort();
        for (const text of [...texts.slice(0, 2), ...texts.slice(-1)])
          for (const [query, isWanted] of [
            [`?f=${text}`, () => true],
            [`?f=${text}&sort=f_desc`, () => true],
            [`?s=a&g=${text}`, (s: string) => s === 'a'],
            [`?s=a&g=${text}&sort=id_desc`, (s: string) => s === 'a'],
          ] as const) {
            const found = await rowsAt(query);
            if (!found) continue;
            const wanted = all.filter(({ s, f }) => isWanted(s) && shown(f) === text).map(({ id }) => id);
            assert.deepEqual(
              found.map(({ id }) => id).sort((a, b) => a - b),
              wanted,
              `${query} of p${n}`,
            );
          }
      });
  },
);
