import assert from 'node:assert/strict';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { problemOf } from '../../support/answers.ts';
import { catalogue } from '../../support/resources/catalogue.ts';
import { fetchUntilCut } from '../../support/faults/cutter.ts';
import { type TestServer } from '../../support/process/server.ts';
import { onServers } from '../../support/process/each-server.ts';

interface Tally {
  cursor: string | null;
  rows: number;
  bytes: number;
  crc32: string;
}

interface Proved {
  /** The row lines that the last control line covers. */
  readonly lines: Buffer;
  readonly tally: Tally | null;
  readonly ended: boolean;
  readonly error: { code: string; requestId: string } | null;
}

/** Reads as a client does: keeps the rows that a control line has proved, and checks the proof. */
function prove(bytes: Buffer): Proved {
  let tally: Tally | null = null;
  let [ended, proved, rows] = [false, 0, 0];
  let error: Proved['error'] = null;
  let lines = '';
  for (const line of bytes.toString().split('\n').slice(0, -1)) {
    if (line.startsWith('{"id":')) {
      lines += `${line}\n`;
      rows++;
      continue;
    }
    if (line.startsWith('{"error":')) {
      error = (JSON.parse(line) as { error: { code: string; requestId: string } }).error;
      continue;
    }
    const control = JSON.parse(line) as { checkpoint?: Tally; end?: Tally };
    tally = control.checkpoint ?? control.end ?? null;
    ended = control.end !== undefined;
    proved = Buffer.byteLength(lines);
    assert.deepEqual(tally, { ...tally, rows, bytes: proved, crc32: hex(crc32(lines)) });
  }
  return { lines: Buffer.from(lines).subarray(0, proved), tally, ended, error };
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}

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
        const { lines, tally, ended } = prove(Buffer.from(await response.arrayBuffer()));
        assert.ok(ended && lines.equals(plain), `${query} ${coding}`);
        assert.equal(tally?.crc32, hex(crc32(plain)));
      }
    }
  });

  test('a stream that fails says why in its last line, and is cut', async (server) => {
    await fill(server, 23_000);
    const { items } = server.store;
    const read = items.read.bind(items);
    for (const coding of ['identity', 'gzip', 'br']) {
      let reads = 0;
      items.read = (...call) => (++reads === 3 ? Promise.reject(new Error('broken')) : read(...call));
      const { bytes, whole } = await fetchUntilCut(`${server.url}/items/stream?checkpoints=true`, {
        'accept-encoding': coding,
        'x-request-id': 'mine',
      });
      const { error, ended } = prove(bytes);
      assert.deepEqual([whole, ended], [false, false], 'a cut is not a clean end');
      assert.deepEqual([error?.code, error?.requestId], ['internal', 'mine'], coding);
    }
  });

  test('checkpoints are refused in any form but lines', async (server) => {
    for (const [query, accept] of [
      ['format=json', '*/*'],
      ['', 'application/json'],
    ]) {
      const response = await server.get(`/items/stream?checkpoints=true&${query}`, {
        accept: accept ?? '',
      });
      const { status, code } = await problemOf(response);
      assert.deepEqual([status, code], [400, 'conflicting-parameters']);
    }
    const empty = await (await server.get('/items/stream?checkpoints=true&limit=9')).text();
    assert.equal(empty, '{"end":{"cursor":null,"rows":0,"bytes":0,"crc32":"00000000"}}\n');
  });
});
