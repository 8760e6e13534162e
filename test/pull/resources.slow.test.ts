import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { cli } from '../support/process/child-server.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { ordersOf } from '../support/resources/orders.ts';
import { withOrders } from '../support/store/orders-store.ts';
import { folder, runPullOf } from '../support/pull/pulling.ts';
import { serverOn } from '../support/process/server.ts';

const ROWS = ordersOf(12_000);
/** All rows, in another order than that of ids. */
const ALL = 'total.gte=0&sort=total_desc';
const PAID = 'status=paid&sort=createdAt_desc';

const proofIn = (text: string) => /proved (.*CRC-32 \w+)/.exec(text)?.[1];

for (const store of ['sqlite', 'mongodb'] as const)
  test(`${store}: a pull of a resource writes the bytes of its stream, whole and in parts`, async (t) => {
    const settings = await withOrders(t, store, ROWS);
    if (!settings) return;
    const server = await serverOn(t, settings);
    const directory = await folder(t);
    for (const query of [
      PAID,
      'total.gte=500&total.lt=600&fields=total,customer.country',
      'status=none&sort=createdAt_asc',
    ]) {
      const file = join(directory, 'orders.ndjson');
      const { code, text } = await runPullOf([`${server.url}/orders?${query}`, '-o', file]);
      assert.equal(code, 0, text);
      const streamed = await (await server.get(`/orders/stream?${query}`)).text();
      assert.equal(await readFile(file, 'utf8'), streamed, query);
    }
    const parts = join(directory, 'parts.ndjson');
    const all = await runPullOf([`${server.url}/orders/stream`, '-o', parts, '--parallel', '3']);
    assert.equal(all.code, 0, all.text);
    assert.equal(await readFile(parts, 'utf8'), await (await server.get('/orders/stream')).text());
    assert.match(all.text, /3 parts|12,000 rows/);
    const refused = await runPullOf([`${server.url}/orders?status=paid`, '-o', parts, '--parallel', '3']);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /No index answers this query.*without --parallel, one stream pulls the set/s);
    const unknown = await runPullOf([`${server.url}/nowhere`, '-o', parts]);
    assert.equal(unknown.code, 1);
    assert.match(unknown.text, /\/nowhere\/stream/);
  });

test('a pull of a resource that is killed goes on behind its proved rows, with the proof of an uncut one', async (t) => {
  const settings = await withOrders(t, 'sqlite', ROWS);
  if (!settings) return;
  const server = await serverOn(t, settings);
  const directory = await folder(t);
  const uncut = await runPullOf([`${server.url}/orders?${ALL}`, '-o', join(directory, 'uncut')]);
  assert.equal(uncut.code, 0, uncut.text);

  const cutter = await startCutter(t, server.url);
  const [url, file] = [`${cutter.url}/orders?${ALL}`, join(directory, 'orders.ndjson')];
  let streams = 0;
  cutter.nextAfter = () => (streams++ < 2 ? 2_900_000 : 0); // the estimate and a part of the stream, then nothing
  const argv = ['pull', url, '-o', file, '--compression', 'none'];
  const child = spawn(process.execPath, [await cli(), ...argv], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const gone = once(child, 'exit');
  for await (const line of createInterface({ input: child.stderr })) if (line.includes('retrying')) break;
  child.kill('SIGKILL');
  await gone;
  assert.ok((await readdir(directory)).includes('orders.ndjson.part.state'), 'it left its proofs');

  cutter.nextAfter = () => Infinity;
  const { code, text } = await runPullOf(argv.slice(1));
  assert.equal(code, 0, text);
  assert.match(text, /continuing after [\d,]+ rows/);
  assert.ok(proofIn(uncut.text));
  assert.equal(proofIn(text), proofIn(uncut.text));
  assert.ok((await readFile(file)).equals(await readFile(join(directory, 'uncut'))));
  assert.deepEqual((await readdir(directory)).toSorted(), ['orders.ndjson', 'uncut']);
});
