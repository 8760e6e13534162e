import assert from 'node:assert/strict';
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
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { compareValues } from '../../../src/store/values/order.ts';
import { linesOf } from '../../support/answers.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';
import { plainPart } from '../../support/resources/tokens.ts';
import { filled } from '../../support/resources/resources.ts';
import { SEED } from '../../support/seed.ts';
import { below, oneOf, randomFrom } from '../../support/store/random-collection.ts';
import { randomText } from '../../support/store/random-texts.ts';
import { EDGES } from '../../support/store/any-value.ts';

const TEXTS = process.env.LONG === '1' ? 100_000 : 1_500;
const AT_ONCE = 8;

const HEX = '303132333435363738393a3b';
const SUBTYPES = [0, 1, 3, 5, 6, 7, 8, 128];
/** Bytes that begin as a vector does, and are none. BSON checks the subtype 9, and writes the low byte of this number. */
const VECTORS = ['A001', 'EDGE', 'J012', 'EMEA0001'].map((text) =>
  Object.assign(new Binary(Buffer.from(text, 'base64')), { sub_type: 0x109 }),
);

/** Ids of each kind, of which many look alike in JSON. */
const KINDS: Readonly<Record<string, readonly unknown[]>> = {
  texts: ['A001', 'EDGE', 'abcd', '7', '0.1', 'true', '2026-01-01T00:00:00.000Z', '{"a":1}', HEX, 'null'],
  numbers: EDGES.filter(
    (value) => typeof value === 'object' && !(value instanceof ObjectId || value instanceof UUID),
  ),
  near: [
    ...['0.1000000000000000001', '0.1000000000000000002', '1E-400', '7.00000000000000001'].map((text) =>
      Decimal128.fromString(text),
    ),
    ...[
      new Double(0.1),
      new Int32(0),
      new Int32(7),
      new Double(2 ** 60),
      Long.fromString('1152921504606847000'),
    ],
  ],
  objectIds: [new ObjectId(HEX), new ObjectId('f'.repeat(24))],
  uuids: [new UUID('0'.repeat(32)), new UUID('f'.repeat(32))],
  binaries: [...SUBTYPES.map((subtype) => new Binary(Buffer.from('A001', 'base64'), subtype)), ...VECTORS],
  dates: [new Date(0), new Date('2026-01-01T00:00:00Z')],
  booleans: [true, false],
  /** A document with values that JSON does not have is found by no text. */
  documents: [{ a: 1 }, { b: { c: new Int32(1) } }],
  others: [null, new Double(NaN), new Timestamp({ t: 1, i: 1 }), new Code('f()')],
};
const KIND_NAMES = Object.keys(KINDS);

function rowsWith(ids: readonly unknown[]): readonly Document[] {
  const distinct = ids.filter((id, n) => ids.findIndex((other) => compareValues(other, id) === 0) === n);
  return distinct.map((_id, n) => ({ _id, s: n % 2 === 0 ? 'a' : 'b', v: _id, n }));
}

/** Collections whose ids are of one kind, and of several. */
const SETS = [
  ...KIND_NAMES.map((name) => [name]),
  ...Array.from({ length: 8 }, (_, n) => {
    const random = randomFrom(SEED + n);
    return KIND_NAMES.filter(() => random() < 0.35);
  }),
  KIND_NAMES,
].map((kinds, n) => ({
  name: `set${n}`,
  kinds,
  rows: rowsWith(kinds.flatMap((kind) => KINDS[kind] ?? [])),
  indexes: [['v'], ['s', 'v']],
}));

/** An id as its JSON shows it, in a line whose next member is `s`. */
function idIn(line: string): string {
  const json = /^\{"id":(.*?),"s":/s.exec(line)?.[1] ?? '';
  return json.startsWith('"') ? String(JSON.parse(json)) : json;
}

/** Whether two texts are the same, or numbers of one value. */
function isSameText(one: string, other: string): boolean {
  if (one === other) return true;
  const isNumber = [one, other].every((text) => /^-?[\d.]+([eE][+-]?\d{1,15})?$/.test(text) && text !== '.');
  if (!isNumber) return false;
  const parts = [one, other].map((text) => {
    const [, sign = '', whole = '', fraction = '', exponent = '0'] =
      /^(-?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
    const digits = (whole + fraction).replace(/^0+/, '');
    const trimmed = digits.replace(/0+$/, '');
    return trimmed === ''
      ? '0'
      : `${sign}${trimmed}e${Number(exponent) - fraction.length + digits.length - trimmed.length}`;
  });
  return parts[0] === parts[1];
}

const opened = sharedByStore(async (t, store) => {
  const settings = await filled(t, store, SETS);
  // Without the comparison with /openapi.json, which compiles schemas for each resource.
  return settings && serverOn(t, { ...settings, STREAM_LIMIT: 'off' }, { tap: (serve) => serve });
});

/** Whatever comes from outside: the row, or a refusal with its reason. */
const STATUSES = [200, 400, 404, 410, 422];

async function asked(
  server: TestServer,
  path: string,
  at: string,
): Promise<{ status: number; text: string }> {
  const answer = await server.get(path, { 'accept-encoding': 'identity' });
  const text = await answer.text();
  assert.ok(STATUSES.includes(answer.status), `${at}: ${answer.status} ${text} of ${path}`);
  return { status: answer.status, text };
}

onStores(opened, (test) => {
  test(`${TEXTS} random texts are a row, or refused`, async (server) => {
    const random = randomFrom(SEED);
    const texts = Array.from({ length: TEXTS }, () => randomText(random));
    const next = texts.entries();
    const one = async (text: string, at: string) => {
      const { name } = oneOf(random, SETS);
      const given = encodeURIComponent(text);
      const ways: readonly (() => string)[] = [
        () => `stream?limit=2&after=${given}`,
        () => `stream?limit=2&sort=v_asc&after=${encodeURIComponent(JSON.stringify([text, text]))}`,
        () => `stream?limit=2&s=a&sort=v_desc&after=${given},${given}`,
        () => `stream?limit=2&v=${given}`,
        () => `stream?limit=2&s=a&v=${given}`,
        () => `stream?limit=2&s=${given}&sort=v_asc&v.gte=${given}`,
        () => `stream?limit=2&id=${given}&s=a`,
        () => `?limit=2&v.gte=${given}&v.lt=${given}`,
        () => `?limit=2&cursor=${given}`,
        () => `stream?limit=2&part=${given}`,
        () => `values?field=v&limit=2&s=${given}`,
        () => `changes?since=${given}`,
      ];
      await asked(server, `/${name}/${oneOf(random, ways)()}`, at);
      if (text.includes('/') || /^\.+$/.test(text)) return;
      const { status, text: row } = await asked(server, `/${name}/${given}`, at);
      if (status === 200 && row.startsWith('{"id":'))
        assert.ok(isSameText(idIn(row), text), `${text}: ${row}`);
    };
    const work = async () => {
      for (const [n, text] of next) await one(text, `SEED=${SEED} text ${n}, ${JSON.stringify(text)}`);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  });

  test('forged parts with any two ids are refused, or their rows', async (server) => {
    const random = randomFrom(SEED);
    const ids = SETS.at(-1)?.rows.map(({ _id }) => _id as unknown) ?? [];
    for (let n = 0; n < 60; n++) {
      const from = ids[below(random, ids.length)];
      const to = ids[below(random, ids.length)];
      const part = plainPart({ from: makeBookmark({ _id: from }), to: makeBookmark({ _id: to }) });
      const { status } = await asked(
        server,
        `/${SETS.at(-1)?.name}/stream?limit=2&part=${part}`,
        `part ${n}`,
      );
      const isTurned = compareValues(from, to) >= 0;
      assert.equal(status, isTurned ? 400 : 200, `part ${n} from ${String(from)} to ${String(to)}`);
    }
  });

  for (const { name, kinds, rows } of SETS)
    test(`the id of each row finds it where ids are ${kinds.join(' and ')}`, async (server) => {
      const lines = await linesOf(server.get(`/${name}/stream`));
      assert.equal(lines.length, rows.length);
      const ids = lines.map(idIn);
      for (const [n, id] of ids.entries()) {
        const { status, text } = await asked(server, `/${name}/${encodeURIComponent(id)}`, id);
        assert.equal(status, 200, `${id}: ${text}`);
        const isAlone = ids.every((other, at) => at === n || !isSameText(other, id));
        if (isAlone) assert.equal(text, lines[n]);
        assert.ok(isSameText(idIn(text), id), `${id}: ${text}`);
        const after = await asked(server, `/${name}/stream?after=${encodeURIComponent(id)}`, id);
        assert.equal(after.status, isAlone ? 200 : 400, `after ${id}: ${after.text}`);
        if (isAlone)
          assert.equal(
            after.text,
            lines
              .slice(n + 1)
              .map((line) => `${line}\n`)
              .join(''),
            id,
          );
      }
    });
});
