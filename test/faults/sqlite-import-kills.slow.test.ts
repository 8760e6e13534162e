/** `sluice import` into a resource that a server serves, killed at random moments, with readers beside. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as moment } from 'node:timers/promises';
import { temporaryFolder } from '../support/directory.ts';
import { childServer } from '../support/process/child-server.ts';
import { run, sluice } from '../support/process/commands.ts';
import { SEED } from '../support/seed.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';

const OLD = 300;
const NEW = 20_000;
const KILLS = process.env.LONG ? 60 : 2;

/** How rows are imported, and the numbers of rows that a reader may see meanwhile and after a kill. */
const WAYS: Record<string, { old: number; args: readonly string[]; isRight: (rows: number) => boolean }> = {
  'into a new resource': { old: 0, args: [], isRight: (rows) => rows === NEW },
  'beside rows': { old: OLD, args: [], isRight: (rows) => rows >= OLD && rows <= OLD + NEW },
  'in place of rows': {
    old: OLD,
    args: ['--drop', '--yes', '--on-conflict', 'replace'],
    isRight: (rows) => rows === OLD || rows === NEW,
  },
};

for (const [name, { old, args, isRight }] of Object.entries(WAYS))
  test(`an import ${name}, killed ${KILLS} times at random moments, shows readers the rows of before or all`, async (t) => {
    const DATA_DIR = await temporaryFolder(t);
    const settings = { DATA_DIR, SAMPLE: 'off', MONGODB_URI: '', RATE_LIMIT: 'off' };
    const lines = (from: number, rows: number) =>
      Array.from({ length: rows }, (_, n) => {
        const _id = from + ((n * 7_919) % rows);
        return `${JSON.stringify({ _id, total: n % 97, text: 'x'.repeat(200) })}\n`;
      });
    const before = join(DATA_DIR, 'before.ndjson');
    const after = join(DATA_DIR, 'after.ndjson');
    await writeFile(before, lines(-OLD, OLD));
    await writeFile(after, lines(0, NEW));
    if (old > 0) await run(['import', before, '--into', 'orders', '--index', 'total'], settings);
    const server = await childServer(t, settings);
    const command = ['import', after, '--into', 'orders', '--index', 'total', ...args];
    const random = randomFrom(SEED);

    /** The rows that a reader gets now. Null: it has no such resource, or its response was cut because the rows were replaced. */
    const look = async (): Promise<number | null> => {
      const asked = fetch(new URL('/orders/stream', server.url), { headers: { connection: 'close' } });
      const answer = await asked.catch(() => null);
      if (answer === null) return null; // cut before its first byte
      const said = await answer.text().catch(() => null);
      if (answer.status === 404 && old === 0) return null;
      assert.equal(answer.status, 200, said ?? 'cut');
      return said === null ? null : said.split('\n').length - 1;
    };
    /** The rows that a reader gets as soon as the server serves them. Null: not within half a minute. */
    const untilServed = async (rows?: number): Promise<number | null> => {
      let seen: number | null = null;
      for (const end = performance.now() + 30_000; performance.now() < end;) {
        seen = await look();
        if (rows === undefined ? seen !== null : seen === rows) break;
      }
      return seen;
    };
    let looks = 0;
    /** Looks until the process has ended. */
    const importing = async (killedAfterMs?: number): Promise<number | null> => {
      const state = { isOver: false };
      const ended = sluice(command, settings, (child) => {
        if (killedAfterMs !== undefined) void moment(killedAfterMs).then(() => child.kill('SIGKILL'));
      }).finally(() => (state.isOver = true));
      while (!state.isOver) {
        const rows = await look();
        assert.ok(rows === null || isRight(rows), `${rows} rows during the import`);
        looks++;
      }
      return (await ended).code;
    };

    let longest = 4_000;
    for (let kill = 0; kill < KILLS; kill++) {
      const began = performance.now();
      const code = await importing(300 + below(random, longest));
      if (code !== null) longest = performance.now() - began;
      const rows = await look();
      assert.ok(rows === null || isRight(rows), `${rows} rows after kill ${kill + 1}`);
      if (rows === null) {
        const index = await sluice(['index', 'orders', 'text'], settings);
        // Killed behind its last transaction, it has stored all rows: the server serves them within seconds.
        if (index.code === 0) assert.equal(await untilServed(), NEW, index.said);
        else assert.match(index.said, /there is no resource/);
      }
      const checked = await sluice(['check'], settings);
      assert.equal(checked.code, 0, checked.stdout);
    }
    const conflict = name === 'in place of rows' ? [] : ['--on-conflict', 'skip'];
    await run([...command, ...conflict], settings);
    const whole = name === 'beside rows' ? OLD + NEW : NEW;
    assert.equal(await untilServed(whole), whole);
    assert.ok(looks >= KILLS, `${looks} looks`);
    assert.equal(await server.end('SIGTERM'), 0);
  });
