import assert from 'node:assert/strict';
import { Double, Int32, Long, BSONRegExp, type Document } from '../../../src/store/values/bson.ts';
import { jsonOf, linesOf, problemOf, textOf, type Page } from '../../support/answers.ts';
import { awaited, decompressed, fileOf, order } from '../../support/exports/exports.ts';
import { filled } from '../../support/resources/resources.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';
import { onStores, sharedByStore } from '../../support/process/each-server.ts';

const DAYS: readonly Document[] = Array.from({ length: 20 }, (_, n) => ({
  _id: new Int32(n),
  t: new Date(Date.UTC(2026, 0, n + 1, 10)),
}));

/** Lower bounds in spellings that state the same moment, and the number of rows from there on. */
const SINCE: readonly (readonly [text: string, rows: number])[] = [
  ['2026-01-11T10:00:00.000Z', 10],
  ['2026-01-11T10:00:00.000000Z', 10],
  ['2026-01-11T10:00:00.000000001Z', 9],
  ['2026-01-11T10:00:00.123456+00:00', 9],
  ['2026-01-11 10:00:00Z', 10],
  ['2026-01-11 10:00:00', 10],
  ['2026-01-11T11:00:00+0100', 10],
  ['2026-01-11T11:00:00+01', 10],
  ['2026-01-11t10:00:00z', 10],
  ['+002026-01-11T10:00:00.000Z', 10],
  ['2026-01-11', 10],
  ['-000001-01-01T00:00:00.000Z', 20],
  ['date:2026-01-11 10:00:00,000Z', 10],
];

const NUMBERS: readonly Document[] = [
  ...[2 ** 60, 2 ** 60 + 2 ** 57, 2 ** 61].map((double) => new Double(double)),
  Long.fromString('9007199254740993'),
].map((number) => ({ _id: number, v: number }));

const EXPRESSIONS: readonly Document[] = [1, 2].flatMap((n) => [
  { _id: n, v: `text ${n}` },
  { _id: 10 + n, v: new BSONRegExp(`r${n}`) },
]);

/** The number of rows in an answer. */
async function countAt(server: TestServer, path: string): Promise<number> {
  return (await textOf(server.get(path))).split('"id":').length - 1;
}

const opened = sharedByStore(async (t, store) => {
  const settings = await filled(t, store, [
    { name: 'd', rows: DAYS, indexes: [['t']] },
    { name: 'm', rows: NUMBERS, indexes: [['v']] },
    { name: 'r', rows: EXPRESSIONS, indexes: [['v']] },
  ]);
  return settings && serverOn(t, settings);
});

onStores(opened, (test) => {
  test('a bound that is a date is found in every spelling, on every route', async (server) => {
    for (const [text, rows] of SINCE) {
      const from = `t.gte=${encodeURIComponent(text)}`;
      assert.equal(await countAt(server, `/d?limit=50&${from}`), rows, text);
      assert.equal(await countAt(server, `/d/stream?sort=t_asc&${from}`), rows, text);
      const to = `t.lt=${encodeURIComponent(text)}`;
      assert.equal(await countAt(server, `/d/stream?sort=t_desc&${to}`), 20 - rows, text);
    }
    const { id } = await order(server.url, { resource: 'd', 't.gte': '2026-01-11T11:00:00+0100' });
    const done = await awaited(server.url, id);
    const file = decompressed(await fileOf(server.url, done), done);
    assert.equal(file.toString().split('"id":').length - 1, 10);
  });

  test('a moment between two milliseconds equals no date, and a blank in place of a plus is named', async (server) => {
    for (const query of [
      't=2026-01-11T10:00:00.123456Z',
      't.gte=2026-01-11T10:00:00+0100',
      't.gte=2026-01-11%2010:00:00+01:00',
      't.gte=+002026-01-11T10:00:00.000Z',
    ]) {
      const { status, parameter, detail } = await problemOf(server.get(`/d/stream?${query}`));
      assert.deepEqual([status, parameter], [400, 't'], query);
      assert.equal(detail.includes('%2B'), !query.endsWith('456Z'), detail);
    }
  });

  test('numbers beyond 2^53 are found by the digits that rows show', async (server) => {
    const lines = await linesOf(server.get('/m/stream'));
    for (const [n, line] of lines.entries()) {
      const digits = /"id":(\d+)/.exec(line)?.[1] ?? '';
      assert.equal(await textOf(server.get(`/m/${digits}`)), line);
      for (const query of [
        `id=${digits}`,
        `v=${digits}`,
        `v=num:${digits}`,
        `id.gte=${digits}&id.lte=${digits}`,
        `v.gte=${digits}&v.lte=num:${digits}`,
      ])
        assert.deepEqual(await linesOf(server.get(`/m/stream?${query}`)), [line], query);
      assert.equal(await countAt(server, `/m/stream?v.gt=${digits}`), lines.length - n - 1);
      assert.equal(await countAt(server, `/m/stream?v.lt=${digits}`), n);
    }
  });

  test('a page ends before a regular expression, or the answer says why it cannot', async (server) => {
    const pageAt = async (query: string) => (await jsonOf(server.get(`/r?sort=v_asc&${query}`))) as Page;
    const { data, page } = await pageAt('limit=3');
    assert.deepEqual([data.map(({ id }) => id), page.hasMore], [[1, 2], true]);
    const next = server.get(`/r?sort=v_asc&limit=1&cursor=${page.nextCursor}`);
    const { status, code, detail } = await problemOf(next);
    assert.deepEqual([status, code], [422, 'sort-value-too-long']);
    assert.match(detail, /regular expression/);
    const end = await pageAt(`limit=2&cursor=${page.nextCursor}`);
    assert.deepEqual([end.data.length, end.page.hasMore, end.page.nextCursor], [2, false, null]);
  });
});
