import assert from 'node:assert/strict';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { jsonOf, linesOf, problemOf, type Page } from '../../support/answers.ts';
import { onMongo } from '../../support/process/each-server.ts';
import { testServer, type TestServer } from '../../support/process/server.ts';

interface Row {
  readonly id: string;
}

/** The longest cursor that the server accepts, in characters, and an id that is too long for one. */
const LONGEST = 12 * 1024;
const LONG = 'x'.repeat(13_000);

/** Whether the id of each row, in order, is too long for a cursor. */
const ROWS = [false, false, true, true, false, true, false, true];
const IDS = ROWS.map((isLong, n) => `${n}${isLong ? LONG : ''}`);

async function fill(server: TestServer, ids: readonly string[]): Promise<void> {
  await server.insert(ids.map((_id, n) => ({ _id, category: 'a', price: n })));
}

/** The number of rows of a page that starts there. null: none of its rows can end it. */
function rowsOfPage(rows: readonly boolean[], limit: number): number | null {
  if (limit >= rows.length) return rows.length;
  const fitting = rows.slice(0, limit).lastIndexOf(false);
  return fitting === -1 ? null : fitting + 1;
}

onMongo(
  (t) => testServer(t, 'mongodb', 'uws'),
  (test) => {
    for (const sort of ['id_asc', 'id_desc', 'price_asc', 'price_desc'])
      test(`every cursor of a page in order ${sort} is accepted, beside ids that are too long for one`, async (server) => {
        await fill(server, IDS);
        const isUp = sort.endsWith('asc');
        const [ids, rows] = isUp ? [IDS, ROWS] : [IDS.toReversed(), ROWS.toReversed()];
        for (let limit = 1; limit <= ids.length; limit++) {
          let cursor = '';
          for (let at = 0; at < ids.length;) {
            const answer = await server.get(`/items?sort=${sort}&limit=${limit}${cursor}`);
            const text = await answer.text();
            const expected = rowsOfPage(rows.slice(at), limit);
            if (expected === null) {
              assert.equal(answer.status, 422, text);
              const { code, detail } = JSON.parse(text) as { code: string; detail: string };
              assert.equal(code, 'sort-value-too-long');
              assert.ok(detail.includes(`{"id":"${ids[at]?.slice(0, 50)}`), detail);
              assert.ok(detail.length < 300, detail);
              break;
            }
            assert.equal(answer.status, 200, text);
            const { data, page } = JSON.parse(text) as Page<Row>;
            assert.deepEqual(
              data.map(({ id }) => id),
              ids.slice(at, at + expected),
            );
            at += expected;
            assert.equal(page.hasMore, at < ids.length);
            assert.equal(page.nextCursor === null, rows[at - 1], 'only the end of the set has no cursor');
            assert.ok((page.nextCursor ?? '').length <= LONGEST);
            cursor = `&cursor=${page.nextCursor}`;
          }
        }
      });

    test('pages by offset and by number include ids that are too long for a cursor', async (server) => {
      await fill(server, IDS);
      for (const [n, isLong] of ROWS.entries())
        for (const start of [`offset=${n}`, `page=${n + 1}`]) {
          const answer = await server.get(`/items?limit=1&${start}`);
          const { data, page } = (await answer.json()) as Page<Row>;
          assert.deepEqual(
            data.map(({ id }) => id),
            [IDS[n]],
          );
          assert.equal(page.nextCursor === null, isLong);
          assert.equal(answer.headers.get('link')?.includes('rel="next"'), n + 1 < IDS.length);
        }
    });

    test('a page of many megabytes ends with a row that has a cursor', async (server) => {
      const filler = 'f'.repeat(12_000);
      const ids = Array.from(
        { length: 700 },
        (_, n) => `${String(n).padStart(3, '0')}${n >= 400 && n < 690 ? LONG : ''}`,
      );
      await server.insert(ids.map((_id, n) => ({ _id, category: 'a', price: n, filler })));
      const first = (await jsonOf(server.get('/items?limit=650'))) as Page<Row>;
      assert.deepEqual(
        first.data.map(({ id }) => id),
        ids.slice(0, 400),
      );
      assert.equal(first.page.hasMore, true);
      const refused = await problemOf(server.get(`/items?limit=250&cursor=${first.page.nextCursor}`));
      assert.equal(refused.status, 422, 'no row in its first megabytes has a cursor');
      const rest = (await jsonOf(server.get('/items?limit=300&offset=400&fields=price'))) as Page;
      assert.equal(rest.data.length, 300);
    });

    test('a checkpoint that is due at ids too long for a cursor waits for the next id that is not', async (server) => {
      const ids = Array.from({ length: 10_020 }, (_, n) => {
        return `${String(n).padStart(5, '0')}${(n >= 9_990 && n < 10_005) || n === 10_019 ? LONG : ''}`;
      });
      for (let at = 0; at < ids.length; at += 5_010)
        await server.insert(
          ids.slice(at, at + 5_010).map((_id, n) => ({ _id, category: 'a', price: at + n })),
        );
      for (const sort of ['id_asc', 'price_asc']) {
        const stream = (query: string) =>
          linesOf(server.get(`/items/stream?sort=${sort}&checkpoints=true${query}`));
        const lines = await stream('');
        const rows = lines.filter((line) => line.startsWith('{"id":'));
        assert.equal(rows.length, ids.length);
        const [checkpoint, end, ...others] = lines
          .filter((line) => !line.startsWith('{"id":'))
          .map((line) => JSON.parse(line) as Record<string, unknown>);
        assert.deepEqual(others, []);
        const proved = checkpoint?.checkpoint as { cursor: string; rows: number };
        assert.equal(proved.rows, 10_006);
        assert.ok(proved.cursor.length <= LONGEST);
        const sum = crc32(rows.map((row) => `${row}\n`).join(''))
          .toString(16)
          .padStart(8, '0');
        const bytes = Buffer.byteLength(rows.join('\n')) + 1;
        const { changes, ...proof } = end?.end as Record<string, unknown>;
        assert.equal(typeof changes, 'string');
        assert.deepEqual(proof, { rows: rows.length, bytes, crc32: sum }, 'no cursor that is too long');
        const rest = await stream(`&cursor=${proved.cursor}`);
        assert.deepEqual(
          rest.filter((line) => line.startsWith('{"id":')),
          rows.slice(proved.rows),
        );
      }
    });
  },
);
