import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edition } from '../../../clients/javascript/sluice.ts';
import { editionServer, IDS, madeEdition, rowsOfIds } from '../../support/pull/editions.ts';

const LINES = rowsOfIds(IDS.escapes ?? []);
const ONE = madeEdition(LINES, { formats: ['ndjson.br', 'ndjson.gz'] });

test('sluice.mjs gives the rows and the chunks of an edition, from a server and from a folder', async (t) => {
  const server = await editionServer(t, ONE);
  for (const url of [server.url, `${server.url}.json`, `${server.url}/${ONE.head.edition}`]) {
    const found = edition(url);
    assert.equal((await found.head()).edition, ONE.head.edition);
    const rows: unknown[] = [];
    for await (const row of found) rows.push(row);
    assert.deepEqual(
      rows,
      LINES.map((line) => JSON.parse(line) as unknown),
    );
    const pieces: Uint8Array[] = [];
    for await (const { bytes } of found.chunks()) pieces.push(bytes);
    assert.ok(Buffer.concat(pieces).equals(ONE.rows));
  }
  assert.ok(server.asked.every((path) => !path.endsWith('.br')));
  server.publish(madeEdition([]));
  for await (const row of edition(server.url)) assert.fail(JSON.stringify(row));
});

test('sluice.mjs names a chunk that is not its name, and gives no edition that is not the one of its head', async (t) => {
  const server = await editionServer(t, ONE);
  const path = `chunks/${ONE.chunks[5]?.name}.ndjson.gz`;
  const real = server.files.get(path) ?? Buffer.alloc(0);
  for (const bytes of [real.subarray(0, -9), Buffer.from('<html>'), Buffer.alloc(10)]) {
    server.files.set(path, bytes);
    await assert.rejects(
      async () => {
        for await (const { name } of edition(server.url).chunks()) assert.notEqual(name, ONE.chunks[5]?.name);
      },
      { name: 'Refused', message: new RegExp(`${ONE.chunks[5]?.name}.* is not what its name says`) },
    );
  }
  server.files.set(path, real);
  server.files.set('edition.json', Buffer.from(JSON.stringify({ ...ONE.head, rows: 601 })));
  let rows = 0;
  await assert.rejects(
    async () => {
      for await (const row of edition(server.url)) rows += Object(row) === row ? 1 : 0;
    },
    { name: 'Refused', message: /rows is 600, not 601/ },
  );
  assert.ok(rows < 600, 'whoever has all rows has a proved edition');
  server.files.delete(path);
  await assert.rejects(edition(`${server.url}/${'a'.repeat(64)}`).head(), { name: 'NotFound', status: 404 });
});
