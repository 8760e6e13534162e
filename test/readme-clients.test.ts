import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startCutter } from './support/cutter.ts';
import { testServer } from './support/server.ts';

const README = join(import.meta.dirname, '../README.md');
const run = promisify(execFile);

for (const [language, program] of [
  ['python', 'python3'],
  ['sh', 'sh'],
] as const) {
  test(`the ${language} program of the README pulls the whole set through cuts, and verifies it`, async (t) => {
    const missing = await run(program, ['-c', language === 'sh' ? 'command -v curl' : '']).then(
      () => null,
      (error: unknown) => String(error),
    );
    if (missing !== null) {
      t.skip(missing);
      return;
    }
    const server = await testServer(t, 'lmdb', 'uws', { SAMPLE: 'auto' });
    if (!server) return;
    const directory = await mkdtemp(join(tmpdir(), 'sluice-clients-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const [, source = ''] =
      new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(await readFile(README, 'utf8')) ?? [];
    const [script, output] = [join(directory, 'client'), join(directory, 'items')];
    await writeFile(script, source);

    const cutter = await startCutter(t, server.url);
    const sizes = [5_000_000, 200, 1_000_000, 4_000_000];
    cutter.nextAfter = () => sizes.shift() ?? Infinity;
    await run(program, [script, `${cutter.url}/items/stream?checkpoints=true`, output]);
    assert.equal(sizes.length, 0, 'every cut was met');
    const plain = Buffer.from(await (await server.get('/items/stream')).arrayBuffer());
    assert.ok(plain.equals(await readFile(output)));
  });
}
