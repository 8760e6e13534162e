import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { openChromium, openTab } from '../support/web/chromium.ts';
import { startCutter } from '../support/faults/cutter.ts';
import { programIn } from '../support/papers/documents.ts';
import { program } from '../support/process/programs.ts';
import { testServer } from '../support/process/server.ts';
import { shared } from '../support/tests-with.ts';
import { temporaryFolder } from '../support/directory.ts';

const DOCUMENT = 'docs/streams.md';
const run = promisify(execFile);

const catalogueOfFile = shared(async (t) => {
  const server = await testServer(t, 'sqlite', 'uws', { SAMPLE: 'auto' });
  await server.insert(
    ['d0', 'd20000+', 'd99999'].map((_id) => ({ _id, id: 'own', category: 'Own', price: 1 })),
  );
  return server;
});
const catalogue = async (t: TestContext) => (await catalogueOfFile(t)) ?? assert.fail();

for (const [language, name] of [
  ['python', 'python3'],
  ['sh', 'sh'],
] as const) {
  test(`the ${language} program of the documents pulls the whole set through cuts, and verifies it`, async (t) => {
    const own = program(t, [name], []);
    const curl = program(t, ['curl'], []);
    if (own === null || curl === null) return;
    const server = await catalogue(t);
    const directory = await temporaryFolder(t);
    const source = programIn(DOCUMENT, language);
    const script = join(directory, 'client');
    const output = join(directory, 'items');
    await writeFile(script, source);

    const cutter = await startCutter(t, server.url);
    const sizes = [5_000_000, 200, 1_000_000, 4_000_000];
    cutter.nextAfter = () => sizes.shift() ?? Infinity;
    await run(own, [script, `${cutter.url}/items/stream?checkpoints=true`, output]);
    assert.equal(sizes.length, 0, 'every cut occurred');
    const plain = Buffer.from(await (await server.get('/items/stream')).arrayBuffer());
    assert.ok(plain.equals(await readFile(output)));
  });
}

test('the pandas program of the documents reads a stream', async (t) => {
  const python = program(t, ['python3', '/usr/bin/python3'], ['-c', 'import pandas']);
  if (python === null) return;
  const server = await catalogue(t);
  const { stdout } = await run(python, ['-c', programIn(DOCUMENT, 'py'), server.url]);
  const top = JSON.parse(stdout) as Record<string, number>;
  assert.equal(top.Fair, 18_574);
  assert.equal(Object.keys(top).length, 6);
});

test('the browser program of the documents reads a stream', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await catalogue(t);
  const { page } = await openTab(browser);
  await page.goto(`${server.url}/livez`);
  const rows: unknown = await page.evaluate(`(async () => { ${programIn(DOCUMENT, 'js')} return rows; })()`);
  assert.equal(rows, 1610);
});
