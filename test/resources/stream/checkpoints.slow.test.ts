import assert from 'node:assert/strict';
import { problemOf, textOf } from '../../support/answers.ts';
import { hexCrc, provedIn } from '../../support/resources/proved.ts';
import { catalogue } from '../../support/resources/catalogue.ts';
import { fetchUntilCut } from '../../support/faults/cutter.ts';
import { type TestServer } from '../../support/process/server.ts';
import { onServers } from '../../support/process/each-server.ts';

async function fill(server: TestServer, count: number): Promise<void> {
  const rows = catalogue(count).map(({ document }) => ({ ...document, filler: 'x'.repeat(40) }));
  for (let at = 0; at < count; at += 10_000) await server.insert(rows.slice(at, at + 10_000));
}

onServers('combinations', (test) => {
  test('control lines stand between the lines of the plain stream, and hold in every coding, limit and choice of fields', async (server) => {
    await fill(server, 23_000);
    const cases = ['', 'fields=n', 'limit=10001', 'limit=1', 'sort=price_desc', 'category=music&limit=3000'];
    for (const query of cases) {
      const plain: Buffer = Buffer.from(await (await server.get(`/items/stream?${query}`)).arrayBuffer());
      for (const coding of ['identity', 'gzip', 'br']) {
        const response = await server.get(`/items/stream?checkpoints=true&${query}`, {
          'accept-encoding': coding,
        });
        const { rows, tally, ended } = provedIn(Buffer.from(await response.arrayBuffer()));
        assert.ok(ended && Buffer.concat(rows).equals(plain), `${query} ${coding}`);
        assert.equal(tally?.crc32, hexCrc(plain));
      }
    }
  });

  test('a stream that fails says why in its last line, and is cut', async (server) => {
    await fill(server, 23_000);
    for (const coding of ['identity', 'gzip', 'br']) {
      let reads = 0;
      server.instead.read = (read, ...call) =>
        ++reads === 3 ? Promise.reject(new Error('broken')) : read(...call);
      const { bytes, whole } = await fetchUntilCut(`${server.url}/items/stream?checkpoints=true`, {
        'accept-encoding': coding,
        'x-request-id': 'mine',
      });
      const { error, ended } = provedIn(bytes);
      assert.deepEqual([whole, ended], [false, false], 'a cut is not a clean end');
      assert.deepEqual([error?.code, error?.requestId], ['internal', 'mine'], coding);
    }
  });

  test('checkpoints are refused in any form but lines', async (server) => {
    for (const [query, accept] of [
      ['format=json', '*/*'],
      ['', 'application/json'],
    ] as const) {
      const asked = server.get(`/items/stream?checkpoints=true&${query}`, { accept });
      const { status, code } = await problemOf(asked);
      assert.deepEqual([status, code], [400, 'conflicting-parameters']);
    }
    const empty = await textOf(server.get('/items/stream?checkpoints=true&limit=9'));
    assert.equal(empty, '{"end":{"cursor":null,"rows":0,"bytes":0,"crc32":"00000000"}}\n');
  });
});
