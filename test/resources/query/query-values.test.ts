import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Double, Int32, Long, BSONRegExp, type Document } from '../../../src/store/bson.ts';
import { problemOf, textOf } from '../../support/answers.ts';
import { awaited, decompressed, fileOf, order } from '../../support/exports/exports.ts';
import { resourceServer } from '../../support/resources/resources.ts';
import { STORES, type TestServer } from '../../support/process/server.ts';

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

async function idsOf(server: TestServer, path: string): Promise<number> {
  return (await textOf(server.get(path))).split('"id":').length - 1;
}

for (const store of STORES)
  describe(`values in queries on ${store}`, () => {
    test('a bound that is a date is found in every spelling, on every route', async (t) => {
      const server = await resourceServer(t, store, { name: 'd', rows: DAYS, indexes: [['t']] });
      if (!server) return;
      for (const [text, rows] of SINCE) {
        const from = `t.gte=${encodeURIComponent(text)}`;
        assert.equal(await idsOf(server, `/d?limit=50&${from}`), rows, text);
        assert.equal(await idsOf(server, `/d/stream?sort=t_asc&${from}`), rows, text);
        const to = `t.lt=${encodeURIComponent(text)}`;
        assert.equal(await idsOf(server, `/d/stream?sort=t_desc&${to}`), 20 - rows, text);
      }
      const { id } = await order(server.url, { resource: 'd', 't.gte': '2026-01-11T11:00:00+0100' });
      const done = await awaited(server.url, id);
      const file = decompressed(await fileOf(server.url, done), done);
      assert.equal(file.toString().split('"id":').length - 1, 10);
    });

    test('a moment between two milliseconds equals no date, and a blank in place of a plus is named', async (t) => {
      const server = await resourceServer(t, store, { name: 'd', rows: DAYS, indexes: [['t']] });
      if (!server) return;
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

    test('numbers beyond 2^53 are found by the digits that rows show', async (t) => {
      const numbers = [2 ** 60, 2 ** 60 + 2 ** 57, 2 ** 61].map((double) => new Double(double));
      const rows = numbers.map((number, n) => ({ _id: number, v: number, n }));
      rows.push({
        _id: Long.fromString('9007199254740993'),
        v: Long.fromString('9007199254740993'),
        n: 3,
      } as never);
      const server = await resourceServer(t, store, { name: 'm', rows, indexes: [['v']] });
      if (!server) return;
      const lines = (await (await server.get('/m/stream')).text()).trim().split('\n');
      for (const [n, line] of lines.entries()) {
        const digits = /"id":(\d+)/.exec(line)?.[1] ?? '';
        assert.equal(await (await server.get(`/m/${digits}`)).text(), line);
        for (const query of [
          `id=${digits}`,
          `v=${digits}`,
          `v=num:${digits}`,
          `id.gte=${digits}&id.lte=${digits}`,
          `v.gte=${digits}&v.lte=num:${digits}`,
        ])
          assert.equal(await (await server.get(`/m/stream?${query}`)).text(), `${line}\n`, query);
        assert.equal(await idsOf(server, `/m/stream?v.gt=${digits}`), lines.length - n - 1);
        assert.equal(await idsOf(server, `/m/stream?v.lt=${digits}`), n);
      }
    });

    test('a page ends before a regular expression, or the answer says why it cannot', async (t) => {
      const rows = [1, 2].flatMap((n) => [
        { _id: n, v: `text ${n}` },
        { _id: 10 + n, v: new BSONRegExp(`r${n}`) },
      ]);
      const server = await resourceServer(t, store, { name: 'm', rows, indexes: [['v']] });
      if (!server) return;
      const page = (await (await server.get('/m?sort=v_asc&limit=3')).json()) as {
        data: { id: number }[];
        page: { hasMore: boolean; nextCursor: string };
      };
      assert.deepEqual([page.data.map(({ id }) => id), page.page.hasMore], [[1, 2], true]);
      const next = server.get(`/m?sort=v_asc&limit=1&cursor=${page.page.nextCursor}`);
      const { status, code, detail } = await problemOf(next);
      assert.deepEqual([status, code], [422, 'sort-value-too-long']);
      assert.match(detail, /regular expression/);
      const last = await server.get(`/m?sort=v_asc&limit=2&cursor=${page.page.nextCursor}`);
      const end = (await last.json()) as typeof page;
      assert.deepEqual([end.data.length, end.page.hasMore, end.page.nextCursor], [2, false, null]);
    });
  });
