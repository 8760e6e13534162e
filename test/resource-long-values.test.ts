import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resourceServer } from './support/resources.ts';
import type { StoreName } from './support/server.ts';

const STORES: readonly StoreName[] = ['lmdb', 'mongodb'];

for (const store of STORES)
  test(`${store}: a value longer than any that a row has is compared as every other`, async (t) => {
    const texts = ['x', 'y', `y${'y'.repeat(1_900)}`, 'z'];
    const rows = texts.map((ref, n) => ({ _id: `${ref.slice(0, 40)}${n}`, ref }));
    const server = await resourceServer(t, store, { name: 'orders', rows, indexes: [['ref']] });
    if (!server) return;
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
          const response = await server.get(url);
          const text = await response.text();
          assert.equal(response.status, 200, `${url.slice(0, 60)} of ${length}: ${text}`);
          const { data } = JSON.parse(text) as { data: { id: string }[] };
          const meant = rows
            .filter((row) => isMeant(path === 'id' ? row._id : row.ref))
            .map(({ _id }) => _id);
          assert.deepEqual(
            data.map(({ id }) => id),
            query.includes('desc') ? meant.reverse() : meant,
            `${url.slice(0, 60)} of ${length}`,
          );
        }
    }
  });
