import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { problemOf } from '../support/answers.ts';
import { awaited, order } from '../support/exports/exports.ts';
import { onStores } from '../support/process/each-server.ts';
import { serverOn } from '../support/process/server.ts';
import { filled, resourcesFile } from '../support/resources/resources.ts';

const ROWS = [{ _id: 1, total: 5, margin: 7 }];
const SHOWN = { resources: { orders: {} } };
const OTHER = { resources: { others: {} } };
const MOVED = { resources: { orders: { collection: 'others' } } };

/** What the operator may do after an export, with whether its file may still be had. */
const CHANGES: readonly (readonly [name: string, declared: object, status: number])[] = [
  ['nothing', SHOWN, 200],
  ['declares kinds', { resources: { orders: { fields: { total: 'number' } } } }, 200],
  ['hides a field', { resources: { orders: { hide: ['margin'] } } }, 410],
  ['shows the whole again', SHOWN, 200],
  ['shows one field', { resources: { orders: { show: ['total'] } } }, 410],
  ['gives the name to another collection', MOVED, 410],
  ['takes the resource away', OTHER, 410],
  ['declares it again', SHOWN, 200],
];

onStores(
  async (t, store) => {
    const place = await filled(
      t,
      store,
      ['orders', 'others'].map((name) => ({ name, rows: ROWS, indexes: [] })),
    );
    if (!place) return null;
    const file = await resourcesFile(t, SHOWN);
    const server = await serverOn(t, { ...place, EXPOSE: '', RESOURCES_FILE: file });
    const declare = async (declared: object) => {
      await writeFile(file, JSON.stringify(declared));
      assert.ok(await server.reload());
    };
    return { server, declare };
  },
  (test, store) => {
    test('the file of an export is gone while its resource shows something else than it has', async ({
      server,
      declare,
    }) => {
      const { id } = await order(server.url, { resource: 'orders' });
      await awaited(server.url, id);
      for (const [name, declared, status] of CHANGES) {
        // The embedded store serves each collection under its own name, whatever is declared.
        if (store === 'sqlite' && (declared === OTHER || declared === MOVED)) continue;
        await declare(declared);
        for (const headers of [{}, { range: 'bytes=0-3' }, { 'if-none-match': '"x"' }]) {
          const answer = await server.get(`/exports/${id}/file`, headers);
          assert.equal(answer.ok ? 200 : answer.status, status, name);
          if (answer.ok) await answer.arrayBuffer();
          else assert.equal((await problemOf(answer)).code, 'collection-replaced', name);
        }
      }
    });

    test('a file has what its resource showed when it was written, not when it was ordered', async ({
      server,
      declare,
    }) => {
      await declare({ resources: { orders: { hide: ['margin'] } } });
      const { id } = await order(server.url, { resource: 'orders' });
      await awaited(server.url, id);
      const file = await server.get(`/exports/${id}/file`);
      assert.equal(await file.text(), '{"id":1,"total":5}\n');
      await declare(SHOWN);
      assert.equal((await server.get(`/exports/${id}/file`)).status, 410);
    });
  },
);
