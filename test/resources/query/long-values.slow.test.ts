import assert from 'node:assert/strict';
import { jsonOf, textOf, type Page } from '../../support/answers.ts';
import { resourceServer } from '../../support/resources/resources.ts';
import { onStores } from '../../support/process/each-server.ts';

const ROWS = ['x', 'y', `y${'y'.repeat(1_900)}`, 'z'].map((ref, n) => ({
  _id: `${ref.slice(0, 40)}${n}`,
  ref,
}));

onStores(
  (t, store) => resourceServer(t, store, { name: 'orders', rows: ROWS, indexes: [['ref']] }),
  (test) => {
    test('a value longer than any that a row has is compared as every other', async (server) => {
      for (const length of [1, 1_900, 1_901, 1_902, 1_960, 1_970, 1_980, 3_000, 12_000]) {
        const given = 'y'.repeat(length);
        const where: [query: string, isMeant: (text: string) => boolean][] = [
          ['ref=', (text) => text === given],
          ['ref.gt=', (text) => text > given],
          ['ref.gte=', (text) => text >= given],
          ['sort=ref_desc&ref.lt=', (text) => text < given],
          ['ref.lte=', (text) => text <= given],
        ];
        for (const path of ['ref', 'id'] as const)
          for (const [query, isMeant] of where) {
            const url = `/orders?fields=id&${query.replaceAll('ref', path)}${given}`;
            const { data } = (await jsonOf(server.get(url))) as Page<{ readonly id: string }>;
            const meant = ROWS.filter((row) => isMeant(path === 'id' ? row._id : row.ref)).map(
              ({ _id }) => _id,
            );
            assert.deepEqual(
              data.map(({ id }) => id),
              query.includes('desc') ? meant.reverse() : meant,
              `${url.slice(0, 60)} of ${length}`,
            );
          }
      }
    });
  },
);

const LONGEST = 8_000;
const LONG_ROWS = Array.from({ length: 9 }, (_, n) => ({
  _id: `r${n}`,
  ref: `${'y'.repeat(LONGEST - 10 * (n % 3))}${n}`,
}));

onStores(
  (t, store) => resourceServer(t, store, { name: 'orders', rows: LONG_ROWS, indexes: [['ref']] }),
  (test) => {
    test('a stream goes on after a row with a long sort value, named by its text or by a cursor', async (server) => {
      const read = (query: string) => textOf(server.get(`/orders/stream?sort=ref_asc${query}`));
      const whole = (await read('')).split('\n');
      for (const [n, line] of whole.slice(0, -1).entries()) {
        const { id, ref } = JSON.parse(line) as { id: string; ref: string };
        const rest = whole.slice(n + 1).join('\n');
        for (const after of [`${ref},${id}`, JSON.stringify([ref, id])])
          assert.equal(await read(`&after=${encodeURIComponent(after)}`), rest, `after row ${n}`);
        const { page } = (await jsonOf(server.get(`/orders?sort=ref_asc&limit=${n + 1}`))) as Page;
        assert.ok((page.nextCursor ?? '').length > LONGEST);
        assert.equal(await read(`&cursor=${page.nextCursor}`), rest, `behind the cursor of row ${n}`);
      }
      const tooLong = await server.get(`/orders/stream?sort=ref_asc&after=${'y'.repeat(12_300)},r1`);
      assert.equal(tooLong.status, 400);
    });
  },
);
