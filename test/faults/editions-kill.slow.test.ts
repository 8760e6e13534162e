import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EditionHead } from '../../src/base/edition/head.ts';
import { filesOfIndex } from '../../src/base/edition/index-tree.ts';
import { temporaryFolder } from '../support/directory.ts';
import { childServer } from '../support/process/child-server.ts';
import { serverOn } from '../support/process/server.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { resourcesFile } from '../support/resources/resources.ts';

/** Its edition takes some seconds on a fast machine: progress is noted each second. */
const ROWS = 100_000;
/** The lease of the server that is killed lasts 10 s. A busy machine needs more. Milliseconds. */
const TAKEN_OVER_MS = 180_000;

/** What a server answers to who asks for the edition, once it is as expected. */
async function answerOf(url: string, isMeant: (status: number, text: string) => boolean): Promise<string> {
  const end = performance.now() + TAKEN_OVER_MS;
  for (;;) {
    const response = await fetch(`${url}/items/edition`);
    const text = await response.text();
    if (isMeant(response.status, text)) return text;
    assert.ok(performance.now() < end, `${response.status} ${text.slice(0, 300)}`);
    await sleep(20);
  }
}

test('another server takes over the first edition of one that was killed, and goes on behind its chunks', async (t) => {
  const DATA_DIR = await temporaryFolder(t);
  const filler = await serverOn(t, { MONGODB_URI: '', DATA_DIR });
  await filler.insert(catalogue(ROWS, 'string').map(({ document }) => document));
  const items = {
    editions: { every: '1 h', chunk: '16 KiB', formats: ['ndjson', 'ndjson.gz', 'ndjson.br'] },
  };
  const settings = {
    MONGODB_URI: '',
    DATA_DIR,
    RESOURCES_FILE: await resourcesFile(t, { resources: { items } }),
  };
  const killed = await childServer(t, settings);
  const begun = /is being made: ([1-9]\d*) of about 100000 rows are read/;
  await answerOf(killed.url.origin, (_, text) => begun.test(text));
  assert.equal(await killed.end('SIGKILL'), null);

  const other = await serverOn(t, settings);
  await answerOf(other.url, (status, text) => status === 503 && begun.test(text));
  const head = JSON.parse(await answerOf(other.url, (status) => status === 200)) as EditionHead;
  assert.equal(head.sequence, 0, 'no server had made one');
  assert.equal(head.rows, ROWS);
  const fileOf = async (name: string) => {
    const response = await other.get(`/items/chunks/${name}`);
    assert.equal(response.status, 200, name);
    return Buffer.from(await response.arrayBuffer());
  };
  const { chunks } = await filesOfIndex(head.index, (name) => fileOf(`${name}.index.json`));
  const texts: Buffer[] = [];
  for (const { name } of chunks) texts.push(await fileOf(`${name}.ndjson`));
  const stream = await other.get('/items/stream');
  assert.ok(Buffer.concat(texts).equals(Buffer.from(await stream.arrayBuffer())), 'the edition is the set');
});
