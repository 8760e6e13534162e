import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Interruption, pull, Refusal } from '../../src/pull/pull.ts';
import { sluice } from '../support/process/commands.ts';
import { INSTANT, NDJSON, proofOf, ROWS_OF_TWO, runPullOf, scriptedServer } from '../support/pull/pulling.ts';
import { until } from '../support/store/changes.ts';
import { temporaryFolder } from '../support/directory.ts';

test('a pull that SIGINT ends continues in the next run', async (t) => {
  const directory = await temporaryFolder(t);
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(404).end(),
    (_, response) =>
      response.writeHead(200, NDJSON).write(ROWS_OF_TWO + proofOf('checkpoint', ROWS_OF_TWO, 2)),
    (_, response) => response.writeHead(404).end(),
    (_, response) => response.writeHead(200, NDJSON).end(proofOf('end', '', 0)),
  ]);
  const file = join(directory, 'items.ndjson');
  const { code, said } = await sluice(['pull', url, '-o', file], {}, (child) => {
    const proved = async () =>
      (await readFile(`${file}.part.state`, 'utf8').catch(() => '')).includes('"rows":2');
    void until('two rows are proved', proved).then(() => child.kill('SIGINT'));
  });
  assert.equal(code, 1);
  assert.match(said, /sluice: interrupted; run the same command again to continue\n$/);
  const next = await runPullOf([url, '-o', file]);
  assert.match(next.text, /^continuing after 2 rows\npulled and proved 2 rows, /);
  assert.equal(await readFile(file, 'utf8'), ROWS_OF_TWO);
});

test('rows that no checkpoint proves are not written, and the exit code is 1', async (t) => {
  const answers: [what: string, body: string][] = [
    ['rows without an end', ROWS_OF_TWO],
    ['a row too few', ROWS_OF_TWO + proofOf('end', ROWS_OF_TWO, 3)],
    ['a line of HTML', `${ROWS_OF_TWO}<html>\n`],
    ['an error of the server', `${ROWS_OF_TWO}{"error":{"status":500,"detail":"it broke"}}\n`],
  ];
  for (const [what, body] of answers) {
    const { url } = await scriptedServer(t, [
      (_, response) => response.writeHead(404).end(), // no estimate of the number of rows
      (_, response) =>
        response.writeHead(200, NDJSON).end(ROWS_OF_TWO + proofOf('checkpoint', ROWS_OF_TWO, 2) + body),
      (_, response) => response.writeHead(200, NDJSON).end(body),
    ]);
    const { code, out } = await runPullOf([url, '-o', '-', '--retry-for', '0']);
    assert.equal(code, 1, what);
    assert.equal(out.toString(), ROWS_OF_TWO, `${what}: only the proved rows`);
  }
});

test('the pause between attempts doubles, follows Retry-After, and ends after the time limit', async (t) => {
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(503, { 'retry-after': '7' }).end(),
    (_, response) => response.writeHead(429).end(),
    (_, response) => response.destroy(),
  ]);
  const waits: number[] = [];
  let now = 0;
  const clock = {
    now: () => now,
    sleep: (ms: number) => {
      now += ms;
      return Promise.resolve();
    },
    random: () => 1,
  };
  const pulling = async () => {
    for await (const piece of pull(url, { clock, onInterrupted: (_, ms) => waits.push(ms) }))
      assert.fail(String(piece.rows));
  };
  await assert.rejects(pulling, Interruption);
  assert.deepEqual(waits.slice(0, 9), [7000, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
  assert.ok(now > 250_000 && now <= 300_000);
});

test('a pull asks a server that refuses only once, and cuts a silent connection', async (t) => {
  for (const status of [400, 401, 404, 410]) {
    const problem = JSON.stringify({ detail: 'so it is' });
    const { url, asked } = await scriptedServer(t, [
      (_, response) =>
        response.writeHead(status, { 'content-type': 'application/problem+json' }).end(problem),
    ]);
    const pulling = pull(url, { clock: INSTANT }).next();
    await assert.rejects(pulling, new Refusal(`the server answered ${status}: so it is`, { status }));
    assert.equal(asked.length, 1);
    const { text } = await runPullOf([url, '-o', '-']);
    assert.equal(text.includes('--key-file FILE'), status === 401, text);
  }
  const { url } = await scriptedServer(t, [
    (_, response) => response.writeHead(200, NDJSON).write(ROWS_OF_TWO),
    (_, response) => response.writeHead(200, NDJSON).end(proofOf('end', '', 0)),
  ]);
  const cuts = new Set<string>(); // on a slow machine the second answer may take too long, too
  for await (const { rows } of pull(url, {
    idleMs: 100,
    clock: INSTANT,
    onInterrupted: (cut) => cuts.add(cut.message),
  }))
    assert.equal(rows, 0);
  assert.deepEqual(cuts, new Set(['the server sent nothing for 0.1 s']));
});
