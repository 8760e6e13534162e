import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Binary,
  Code,
  Decimal128,
  Double,
  Int32,
  Long,
  ObjectId,
  Timestamp,
  UUID,
  type Document,
} from '../../../src/store/values/bson.ts';
import { pagesOf } from '../../support/answers.ts';
import { filled } from '../../support/resources/resources.ts';
import { serverOn, STORES, type TestServer } from '../../support/process/server.ts';

const decimal = (text: string) => Decimal128.fromString(text);
const date = (text: string) => new Date(text);
const map = (...members: [string, unknown][]) => new Map(members);
const binary = (text: string, subtype = 0) => new Binary(Buffer.from(text), subtype);

/** Ids of one kind each. */
const KINDS: Readonly<Record<string, readonly unknown[]>> = {
  integers: [new Int32(-3), new Int32(1), new Int32(7), Long.fromString('9007199254740993')],
  doubles: [new Double(-0.5), new Double(0.1), new Double(19.99), new Double(1e21), new Double(2 ** 60)],
  decimals: ['-7', '0.1', '0.10000001', '19.99', '1E+40'].map(decimal),
  texts: ['a', 'abcd', 'b', '5', '{"a":1}', 'true', '2026-01-01T00:00:00.000Z'],
  documents: [{ a: 1 }, { a: 2, b: 'x' }, { b: new Int32(5) }],
  /** JSON shows a date as a text, and a JavaScript object sorts the other names, or cannot have them. */
  oddDocuments: [
    { b: new Date(0) },
    map(['1', 2], ['2', 1]),
    map(['2', 1], ['1', 2]),
    map(['__proto__', 1]),
    map(['_bsontype', 'Long']),
    { a: { b: [map(['10', ''], ['8', '']), 7] } },
    { long: 'x'.repeat(6_000) },
  ],
  binaries: [binary('a'), binary('abc'), binary('b'), binary('abc', 5)],
  uuids: ['0', '7', 'f'].map((digit) => new UUID(digit.repeat(32))),
  objectIds: ['0', '7', 'f'].map((digit) => new ObjectId(digit.repeat(24))),
  booleans: [false, true],
  dates: ['1969-12-31T23:59:59.999Z', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00.001Z'].map(date),
  timestamps: [new Timestamp({ t: 1, i: 1 }), new Timestamp({ t: 1, i: 2 }), new Timestamp({ t: 2, i: 0 })],
  others: [new Double(NaN), new Code('f()'), new Code('f()', map(['2', 1], ['1', 2]))],
};

/** The kinds whose rows may be named after they were removed, in a collection without others. */
const PLACES = ['integers', 'doubles', 'texts', 'uuids', 'objectIds', 'booleans', 'dates'];

const names = Object.keys(KINDS);
const MIXED: readonly (readonly string[])[] = [
  ...names.map((name) => [name]),
  ['integers', 'texts', 'objectIds'],
  ['texts', 'documents'],
  ['texts', 'binaries', 'uuids'],
  ['texts', 'dates'],
  ['integers', 'dates'],
  names,
];

const OBJECT_IDS = KINDS.objectIds ?? [];
const UUIDS = KINDS.uuids ?? [];
const TEXTS = ['a', 'b', 'c'];
const HEX = '0123456789abcdef01234567';
/** Ids of one kind with a few of another. Each that a text names must be found by it. */
const STRAYS: Readonly<Record<string, readonly unknown[]>> = {
  'ObjectIds and a stray text': [...OBJECT_IDS, 'stray'],
  'ObjectIds and a stray number': [...OBJECT_IDS, new Int32(7)],
  'ObjectIds and a stray null': [...OBJECT_IDS, null],
  'ObjectIds, a stray date and a stray document': [...OBJECT_IDS, new Date(0), { a: 1 }],
  'UUIDs, a stray text and a stray number': [...UUIDS, 'stray', Long.fromString('9007199254740993')],
  'UUIDs and a stray null': [...UUIDS, null],
  'texts and a stray number': [...TEXTS, new Double(5)],
  'texts and a stray ObjectId': [...TEXTS, new ObjectId(HEX)],
  'texts and a stray null': [...TEXTS, null],
};

/** The rows of a collection, and of another one that has every second row of it. */
function setOf(name: string, ids: readonly unknown[]) {
  const rows = ids.map((_id, n): Document => ({ _id, n }));
  return [
    { name, rows, indexes: [['n']] },
    { name: `${name}-half`, rows: rows.filter((_, n) => n % 2 === 0), indexes: [] },
  ];
}

/** The lines of a stream, each with its id as its JSON shows it. */
async function linesOf(server: TestServer, path: string) {
  const answer = await server.get(path, { 'accept-encoding': 'identity' });
  const text = await answer.text();
  if (answer.status !== 200) return { status: answer.status, lines: [] };
  const lines = text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const json = /^\{"id":(.*),"n":\d+\}$/s.exec(line)?.[1] ?? '';
      return { line, id: json.startsWith('"') ? String(JSON.parse(json)) : json };
    });
  return { status: 200, lines };
}

for (const store of STORES)
  test(`after on ${store}`, async (t) => {
    const strays = Object.entries(STRAYS);
    const settings = await filled(t, store, [
      ...MIXED.flatMap((kinds, n) =>
        setOf(
          `mixed${n}`,
          kinds.flatMap((kind) => KINDS[kind] ?? []),
        ),
      ),
      ...strays.flatMap(([, ids], n) => setOf(`stray${n}`, ids).slice(0, 1)),
    ]);
    if (!settings) return;
    // Without the comparison with /openapi.json, which compiles schemas for each resource.
    const server = await serverOn(t, { ...settings, STREAM_LIMIT: 'off' }, { tap: (serve) => serve });

    for (const [n, kinds] of MIXED.entries())
      await t.test(
        `ids that are ${kinds.join(' and ')}: after means the rows behind the id, or 400`,
        async () => {
          const { lines } = await linesOf(server, `/mixed${n}/stream`);
          const rest = (await linesOf(server, `/mixed${n}-half/stream`)).lines.map(({ line }) => line);
          assert.equal(lines.length, kinds.flatMap((kind) => KINDS[kind] ?? []).length);
          const ids = lines.map(({ id }) => id);
          const isOdd = kinds.includes('oddDocuments') || kinds.includes('others');
          const isPure = kinds.length === 1 && PLACES.includes(kinds[0] ?? '');
          await Promise.all(
            lines.map(async ({ id, line }, at) => {
              const isShared = ids.indexOf(id) !== ids.lastIndexOf(id);
              const after = `stream?after=${encodeURIComponent(id)}`;
              const [found, row, gone] = await Promise.all([
                linesOf(server, `/mixed${n}/${after}`),
                server.get(`/mixed${n}/${encodeURIComponent(id)}`),
                rest.includes(line) ? null : linesOf(server, `/mixed${n}-half/${after}`),
              ]);
              const text = await row.text();
              if (isPure) assert.deepEqual([found.status, gone?.status ?? 200], [200, 200], `after ${id}`);
              if (isShared) return;
              if (found.status !== 400) assert.deepEqual(found.lines, lines.slice(at + 1), `after ${id}`);
              if (row.status === 200 || !isOdd) assert.equal(text, line);
              if (!gone || gone.status === 400) return;
              assert.deepEqual(
                gone.lines.map((one) => one.line),
                lines.slice(at + 1).flatMap((one) => (rest.includes(one.line) ? one.line : [])),
                `after ${id}, which is gone`,
              );
            }),
          );
        },
      );

    for (const sort of ['id_asc', 'n_desc'])
      await t.test(`pages in order ${sort} continue after an id of any type`, async () => {
        const all = `/mixed${MIXED.length - 1}`;
        const { lines } = await linesOf(server, `${all}/stream?sort=${sort}`);
        const rows: string[] = [];
        for await (const { text } of pagesOf(server, `${all}?limit=1&sort=${sort}`))
          rows.push(text.slice('{"data":['.length, text.lastIndexOf('],"page":')));
        assert.deepEqual(
          rows,
          lines.map(({ line }) => line),
        );
      });

    for (const [n, [name, ids]] of strays.entries())
      await t.test(
        `${name}: each row is found by the text of its id, and reading continues from it`,
        async () => {
          const { lines } = await linesOf(server, `/stray${n}/stream`);
          assert.equal(lines.length, ids.length);
          await Promise.all(
            lines.map(async ({ id, line }, at) => {
              if (/^(null|\{.*|1970-.*)$/.test(id)) return;
              assert.equal(await (await server.get(`/stray${n}/${id}`)).text(), line);
              const { lines: found } = await linesOf(server, `/stray${n}/stream?after=${id}`);
              assert.deepEqual(found, lines.slice(at + 1), id);
            }),
          );
          assert.equal((await server.get(`/stray${n}/${'d'.repeat(24)}`)).status, 404);
        },
      );
  });
