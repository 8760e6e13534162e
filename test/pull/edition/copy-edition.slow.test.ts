import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { DatabaseSync } from '../../../src/base/sqlite.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { cli } from '../../support/process/child-server.ts';
import {
  editionServer,
  IDS,
  madeEdition,
  rowsOfIds,
  type EditionServer,
  type MadeEdition,
} from '../../support/pull/editions.ts';
import { NDJSON, runPullOf } from '../../support/pull/pulling.ts';
import { queryFile } from '../../support/store/sqlite/sqlite.ts';

const changedAt = (lines: readonly string[], at: number) =>
  lines.map((line, n) => (n === at ? `${line.slice(0, -1)},"new":${at}}` : line));
const isData = (path: string) => path.includes('.ndjson');

/** Answers streams that follow: changes since a cursor that is good, and 410 since others. */
function withChanges(server: EditionServer, good: ReadonlyMap<string, string>): void {
  server.handle = ({ url = '' }, response) => {
    if (!url.includes('/stream')) return false;
    const cursor = new URL(url, 'http://a').searchParams.get('cursor') ?? '';
    const lines = good.get(cursor);
    return lines === undefined ? gone(response) : answered(response, lines);
  };
}

function gone(response: ServerResponse): true {
  response.writeHead(410, { 'content-type': 'application/problem+json' });
  response.end('{"status":410,"detail":"The changes since this cursor are no longer kept."}');
  return true;
}

function answered(response: ServerResponse, lines: string): true {
  const bytes = Buffer.from(lines);
  const removed = lines.split('{"removed"').length - 1;
  const rows = lines.split('\n').length - 1 - removed;
  const sums = { rows, removed, bytes: bytes.length, crc32: crc32(bytes).toString(16).padStart(8, '0') };
  response.writeHead(200, NDJSON);
  response.write(
    `${lines}${JSON.stringify({ checkpoint: { cursor: `${lines.length}c`, ...sums, upToDate: true } })}\n`,
  );
  return true;
}

const rowsIn = (file: string) => new Set(queryFile(file, 'SELECT row FROM orders').map(([row]) => row));

for (const [kind, ids] of Object.entries(IDS))
  test(`a copy whose token has expired reads only what differs, and proves the end: ids are ${kind}`, async (t) => {
    const one = madeEdition(rowsOfIds(ids), { changes: 'c1' });
    // 100 rows are taken out of the beginning of the set, one is changed, one is new, and there is no delta.
    const two = madeEdition(changedAt(rowsOfIds(ids), 400).toSpliced(30, 1), { changes: 'c2' });
    const server = await editionServer(t, one);
    const file = join(await temporaryFolder(t), 'copy.sqlite');
    withChanges(server, new Map([['c1', '']]));
    const begun = await runPullOf([server.url, '--into', file]);
    assert.equal(begun.code, 0, begun.text);
    assert.match(begun.text, /proved that the copy is the edition/);
    assert.deepEqual(rowsIn(file), new Set(one.lines));
    server.publish(two);
    withChanges(server, new Map([['c2', `{"removed":{"id":${ids[0]}}}\n`]]));
    server.sent.bytes = 0;
    server.asked.length = 0;
    const { code, text } = await runPullOf([server.url.replace('/edition', ''), '--into', file]);
    assert.equal(code, 0, text);
    assert.match(
      text,
      /no longer kept.*reading what differs.*[\s\S]*proved that the copy is the edition.*[\s\S]*up to date/,
    );
    assert.deepEqual(rowsIn(file), new Set(two.lines.slice(1)));
    if (kind === 'objects') return; // they are in another order in SQLite
    assert.ok(server.asked.filter(isData).length <= 4, String(server.asked.filter(isData)));
    const index = [...two.files].filter(([path]) => path.endsWith('.index.json'));
    const read = index.reduce((sum, [, bytes]) => sum + 2 * bytes.length, 0);
    assert.ok(
      server.sent.bytes < read + two.rows.length / 4,
      `${server.sent.bytes} bytes, ${read} of them of indexes`,
    );
  });

test('a copy applies the deltas from the edition that it was, of several steps, after changes of its own', async (t) => {
  const ids = IDS.texts ?? [];
  const one = madeEdition(rowsOfIds(ids), { changes: 'c1' });
  const two = madeEdition(changedAt(one.lines, 100), { before: one, changes: 'c2' });
  const three = madeEdition(changedAt(two.lines, 500).toSpliced(7, 3), { before: two, changes: 'c3' });
  const server = await editionServer(t, one);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  withChanges(server, new Map([['c1', `${two.lines[100]}\n`]]));
  assert.equal((await runPullOf([server.url, '--into', file])).code, 0);
  assert.ok(rowsIn(file).has(two.lines[100]));
  for (const edition of [two, three]) server.publish(edition);
  withChanges(server, new Map([['c3', '']]));
  server.asked.length = 0;
  const { code, text } = await runPullOf([server.url, '--into', file]);
  assert.equal(code, 0, text);
  assert.deepEqual(rowsIn(file), new Set(three.lines));
  assert.deepEqual(
    server.asked.filter((path) => path.startsWith('chunks/')).map((path) => path.slice(71)),
    ['.delta.ndjson.gz', '.delta.ndjson.gz'],
  );
});

test('a copy that is not what its state says is brought to the edition by chunks, and a wrong delta does no harm', async (t) => {
  const one = madeEdition(rowsOfIds(IDS.numbers ?? []), { changes: 'c1' });
  const two = madeEdition(changedAt(one.lines, 100), { before: one, changes: 'c2' });
  const server = await editionServer(t, one);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const address = `${server.url}.json`;
  assert.equal((await runPullOf([address, '--into', file])).code, 0);
  const database = new DatabaseSync(file);
  database.exec(
    'DELETE FROM orders WHERE n BETWEEN 300 AND 305; UPDATE orders SET row = \'{"id":3}\' WHERE id = 3',
  );
  database.exec('INSERT INTO orders (id, row) VALUES (\'x\', \'{"id":"x"}\'), (-5000, \'{"id":-5000}\')');
  database.close();
  server.publish(two);
  server.asked.length = 0;
  const { code, text } = await runPullOf([address, '--into', file]);
  assert.equal(code, 0, text);
  assert.deepEqual(rowsIn(file), new Set(two.lines));
  assert.ok(server.asked.filter((path) => path.endsWith('.ndjson.gz')).length < 8);
});

async function killed(url: string, file: string, server: EditionServer, at: number): Promise<void> {
  const reached = new AbortController();
  const isReached = once(reached.signal, 'abort');
  let n = 0;
  server.handle = ({ url: path = '' }, response) => {
    if (path.includes('/stream')) return gone(response);
    if (!isData(path) || ++n < at) return false;
    reached.abort();
    return true;
  };
  const child = spawn(process.execPath, [await cli(), 'pull', url, '--into', file], { stdio: 'ignore' });
  await isReached;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

test('a copy that is killed anywhere is what it was before, or has chunks that the next run keeps', async (t) => {
  const one = madeEdition(rowsOfIds(IDS.uuids ?? []), { changes: 'c1' });
  const two: MadeEdition = madeEdition(changedAt(changedAt(one.lines, 50), 450), { changes: 'c2' });
  const server = await editionServer(t, one);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const address = `${server.url}.json`;
  await killed(address, file, server, 20);
  server.handle = () => false;
  server.asked.length = 0;
  assert.equal((await runPullOf([address, '--into', file])).code, 0);
  assert.ok(server.asked.filter(isData).length < one.chunks.length - 10, 'chunks are fetched again');
  assert.deepEqual(rowsIn(file), new Set(one.lines));
  server.publish(two);
  await killed(address, file, server, 2);
  assert.deepEqual(rowsIn(file), new Set(one.lines));
  server.handle = () => false;
  assert.equal((await runPullOf([address, '--into', file])).code, 0);
  assert.deepEqual(rowsIn(file), new Set(two.lines));
});

test('a copy that an edition began and that is not whole begins anew when a stream fills it', async (t) => {
  const one = madeEdition(rowsOfIds(IDS.texts ?? []));
  const server = await editionServer(t, one);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  await killed(server.url, file, server, 20);
  withChanges(server, new Map([['', '{"id":"only"}\n']]));
  const { code, text } = await runPullOf([server.url.replace('/edition', ''), '--into', file]);
  assert.equal(code, 0, text);
  assert.deepEqual(rowsIn(file), new Set(['{"id":"only"}']));
});

test('a copy refuses an edition whose ids look alike, and stays what it was', async (t) => {
  const one = madeEdition(rowsOfIds(['"a"', '"b"']));
  const server = await editionServer(t, one);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  assert.equal((await runPullOf([`${server.url}.json`, '--into', file])).code, 0);
  server.publish(madeEdition([...one.lines, '{"id":"a","n":3}']));
  const { code, text } = await runPullOf([`${server.url}.json`, '--into', file]);
  assert.equal(code, 1);
  assert.match(text, /ids of different kinds look alike/);
  assert.deepEqual(rowsIn(file), new Set(one.lines));
});
