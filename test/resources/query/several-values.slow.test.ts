import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KeyGiven, Rows } from '../../support/access/keyed.ts';
import { idsIn, linesOf, textOf } from '../../support/answers.ts';
import type { StoreName } from '../../support/process/server.ts';
import { openParts } from '../../support/store/parts.ts';

const ORDERS: Rows = {
  name: 'orders',
  rows: Array.from({ length: 900 }, (_, n) => ({
    _id: `r${String(n).padStart(3, '0')}`,
    tenant: n % 3 === 0 ? 'acme' : 'other',
    status: ['paid', 'open', 'new'][n % 2 === 0 ? 0 : 1 + (n % 4 === 1 ? 0 : 1)],
    filler: 'x'.repeat(600),
  })),
  indexes: [['status'], ['tenant'], ['tenant', 'status']],
};
const KEYS: readonly KeyGiven[] = [{ name: 'all' }, { name: 'acme', where: { orders: { tenant: 'acme' } } }];

function idsOf(statuses: readonly string[], isOwn: (tenant: unknown) => boolean = () => true): string[] {
  return statuses.flatMap((status) =>
    ORDERS.rows.flatMap((row) => (row.status === status && isOwn(row.tenant) ? [String(row._id)] : [])),
  );
}

/** What an answer about changes says: ids of rows, those of removed ones, and its last cursor. */
function changesIn(text: string) {
  const lines = text.trim().split('\n');
  const removed = lines.flatMap((line) => /"removed":\{"id":"(\w+)"/.exec(line)?.[1] ?? []);
  const rows = lines.flatMap((line) => /^\{"id":"(\w+)"/.exec(line)?.[1] ?? []);
  const cursor = /"cursor":"([\w.-]+)"/.exec(lines.at(-1) ?? '')?.[1] ?? '';
  return { rows: rows.toSorted(), removed: removed.toSorted(), cursor };
}

for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
  test(`${store}: changes, exports and tables of several values`, async (t) => {
    const opened = await openParts(t, store, KEYS, ORDERS);
    if (!opened) return;
    const { server, table } = opened;
    const path = '/orders/stream?status.in=new,paid';

    await t.test('a stream that is cut goes on from each checkpoint, also for a part', async () => {
      for (const [name, isOwn] of [
        ['all', () => true],
        ['acme', (one: unknown) => one === 'acme'],
      ] as const) {
        const wanted = idsOf(['new', 'paid'], isOwn);
        const text = await textOf(server.as(name, `${path}&checkpoints=true`));
        const cursors = [...text.matchAll(/"cursor":"([\w-]+)"/g)].map(([, cursor]) => cursor);
        assert.deepEqual(
          idsIn(
            text
              .trim()
              .split('\n')
              .filter((line) => line.startsWith('{"id"')),
          ),
          wanted,
        );
        const parts = await Promise.all(
          [1, 149, 150, 151].map(async (limit) => {
            const piece = await textOf(server.as(name, `${path}&checkpoints=true&limit=${limit}`));
            const [, cursor] = /"cursor":"([\w-]+)"[^\n]*\n?$/.exec(piece) ?? [];
            const rest = idsIn(await linesOf(server.as(name, `${path}&cursor=${cursor}`)));
            assert.deepEqual(rest, wanted.slice(limit), `${name}: behind ${limit} rows`);
            return cursor;
          }),
        );
        assert.equal(new Set([...cursors, ...parts]).size, cursors.length + parts.length);
      }
    });

    await t.test('changes are those of rows that have, or had, one of the values', async () => {
      const stream = await server.as('all', path);
      const since = stream.headers.get('changes-from') ?? assert.fail();
      await stream.text();
      await table.set('r000', { status: 'new' });
      await table.set('r002', { status: 'open' });
      await table.set('r001', { note: 'open before and after' });
      await table.remove('r004');
      await table.put({ _id: 's1', tenant: 'acme', status: 'paid' });
      const all = changesIn(
        await textOf(server.as('all', `/orders/changes?status.in=new,paid&since=${since}`)),
      );
      assert.deepEqual(all.rows, ['r000', 's1']);
      for (const id of ['r002', 'r004']) assert.ok(all.removed.includes(id), `${id} is gone from the values`);
      const other = await server.as('all', `/orders/changes?status.in=new&since=${since}`);
      assert.equal(other.status, 400, 'a place belongs to its values');

      const now = changesIn(await textOf(server.as('acme', '/orders/changes?status.in=new,paid')));
      await table.set('r003', { status: 'paid' });
      await table.set('r008', { status: 'new' });
      const own = await server.as('acme', `/orders/changes?status.in=new,paid&since=${now.cursor}`);
      assert.deepEqual(changesIn(await textOf(own)).rows, ['r003']);
    });

    await t.test(
      'an export has the rows of the stream in its order, and several sets follow them',
      async () => {
        const body = { resource: 'orders', 'status.in': ['new', 'open'] };
        const { id } = await server.exported('all', body);
        const file = idsIn((await textOf(server.as('all', `/exports/${id}/file`))).trim().split('\n'));
        assert.deepEqual(file, idsIn(await linesOf(server.as('all', '/orders/stream?status.in=new,open'))));
        const several = await textOf(server.as('all', '/changes?resources=orders&orders.status.in=new,open'));
        assert.match(several, /"cursor":/);
      },
    );

    await t.test('tables have the columns of all values', async () => {
      const csv = await textOf(server.as('all', `${path}&format=csv`));
      assert.equal(csv.trim().split('\n').length - 1, (await linesOf(server.as('all', path))).length);
      const arrow = await server.as('all', `${path}&format=arrow`);
      assert.equal(arrow.status, 200);
      assert.ok((await arrow.arrayBuffer()).byteLength > 10_000);
    });
  });
