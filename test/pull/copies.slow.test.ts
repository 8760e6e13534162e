import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { DatabaseSync } from '../../src/base/sqlite.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { cli } from '../support/process/child-server.ts';
import { NDJSON, proofOf, runPullOf, scriptedServer, streamOnly } from '../support/pull/pulling.ts';
import { queryFile } from '../support/store/sqlite/sqlite.ts';
import { temporaryFolder } from '../support/directory.ts';

/** The lines of a feed, with the control line that proves them. */
function proved(lines: string, cursor: string, extra: { upToDate?: boolean; more?: boolean } = {}): string {
  const removed = lines.split('{"removed"').length - 1;
  const sums = {
    rows: lines.split('\n').length - 1 - removed,
    removed,
    bytes: Buffer.byteLength(lines),
    crc32: hex(lines),
  };
  const kind = extra.more === undefined ? 'checkpoint' : 'end';
  return `${lines}${JSON.stringify({ [kind]: { cursor, ...sums, ...extra } })}\n`;
}

function hex(lines: string): string {
  return crc32(Buffer.from(lines)).toString(16).padStart(8, '0');
}

/** An answer with this body. It stays open when it is not cut. */
function answer(body: string, cut = true): RequestListener {
  return streamOnly((_, response) => {
    response.writeHead(200, NDJSON);
    response.write(body, () => cut && response.destroy());
  });
}

const START = proved('', 's0');
/** The answer to the request for the number of rows, which a new copy sends first. */
const noEstimate = streamOnly((_, response) => response.destroy());
const gone = streamOnly((_, response) =>
  response
    .writeHead(410, { 'content-type': 'application/problem+json' })
    .end('{"status":410,"detail":"The changes since this cursor are no longer kept."}'),
);

/** The ids and rows of a table, in order of id. */
function rowsOf(path: string, table = 'items'): unknown[][] {
  return queryFile(path, `SELECT id, row FROM "${table}" ORDER BY typeof(id), id`);
}

test('a copy in SQLite applies rows and removals in their order, and only what is proved', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const first =
    '{"id":"a","n":1}\n{"id":2,"n":2}\n{"id":2.5}\n{"id":{"x":1}}\n{"id":{"x":2}}\n{"removed":{"id":{"x":2}}}\n{"removed":{"id":"a"}}\n{"id":"b","n":3}\n';
  const ids = '{"id":"b"}\n{"id":2.5}\n{"id":{"x":1}}\n';
  const { url, asked } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved(first, 's1') + '{"id":"unproved"}\n'),
    answer(proved('{"removed":{"id":2}}\n{"id":"b","n":4}\n', 's2', { upToDate: true }), false),
    answer(ids + proofOf('end', ids, 3)),
  ]);
  const { code, text } = await runPullOf([`${url}?category=x`, '--into', file]);
  assert.equal(code, 0, text);
  assert.match(text, /proved 10 lines of rows and removals: .*copy\.sqlite, table items/);
  assert.deepEqual(rowsOf(file), [
    [Buffer.from('{"x":1}'), '{"id":{"x":1}}'],
    [2.5, '{"id":2.5}'],
    ['b', '{"id":"b","n":4}'],
  ]);
  const streams = asked.filter((path) => path.startsWith('/items/stream'));
  assert.deepEqual(streams, [
    '/items/stream?category=x&follow=true',
    '/items/stream?category=x&follow=true&cursor=s1',
    '/items/stream?category=x&fields=_id&format=ndjson&checkpoints=true',
  ]);
});

test('the table has a column for each field, and for each one that the URL asks for', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const rows = '{"id":1,"name":"a \\"b\\"","deep":{"x":7},"ROW":1}\n{"id":2,"name":null}\n';
  const { url } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved(rows, 's1', { upToDate: true }), false),
  ]);
  assert.equal((await runPullOf([url, '--into', file])).code, 0);
  const orders = url.replace('items', 'orders');
  const other = await scriptedServer(t, [
    (_, response) => {
      response.writeHead(200, NDJSON).write(START + proved(rows, 's1', { upToDate: true }));
    },
  ]);
  const asked = `${other.url.replace('/items/', '/orders/')}?fields=name,deep.x`;
  assert.equal((await runPullOf([asked, '--into', file])).code, 0, orders);
  assert.deepEqual(queryFile(file, 'SELECT name, deep FROM items ORDER BY id'), [
    ['a "b"', '{"x":7}'],
    [null, null],
  ]);
  assert.deepEqual(queryFile(file, 'SELECT "deep.x" FROM orders ORDER BY id'), [[7], [null]]);
});

test('a copy that is run again continues, and begins anew with an empty table when the changes are gone', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const { url, asked } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved('{"id":1}\n{"id":2}\n', 's1', { upToDate: true }), false),
    gone,
    answer(START + proved('{"id":2}\n{"id":3}\n', 's2', { upToDate: true }), false),
  ]);
  const begun = await runPullOf([url, '--into', file]);
  assert.equal(begun.code, 0, begun.text);
  const { code, text } = await runPullOf([url, '--into', file]);
  assert.equal(code, 0, text);
  assert.match(text, /no longer kept.*; starting again with an empty copy/);
  assert.deepEqual(
    rowsOf(file).map(([id]) => id),
    [2, 3],
  );
  assert.ok(asked.includes('/items/stream?follow=true&cursor=s1'));
});

test('a table of something else is refused, and --restart replaces it', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const { url } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved('{"id":1}\n', 's1', { upToDate: true }), false),
  ]);
  const database = new DatabaseSync(file);
  database.exec('CREATE TABLE items (mine TEXT)');
  database.close();
  const refused = await runPullOf([url, '--into', file]);
  assert.equal(refused.code, 1);
  assert.match(refused.text, /has a table items that is not a copy: --restart replaces it/);
  assert.equal((await runPullOf([url, '--into', file, '--restart'])).code, 0);
  const other = await runPullOf([`${url}?category=x`, '--into', file]);
  assert.match(other.text, /is a copy of .*: --restart replaces it/);
  const text = join(await temporaryFolder(t), 'text.sqlite');
  await writeFile(text, 'this is no database, but a text that is long enough to be read as one'.repeat(20));
  const wrong = await runPullOf([url, '--into', text]);
  assert.match(wrong.text, /cannot be used as a SQLite file/);
});

test('a followed file grows by proved lines, and continues where an earlier run was', async (t) => {
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const stop = new AbortController();
  const { url, asked } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved('{"id":1}\n{"id":2}\n', 's1') + '{"id":3}\n'),
    answer(proved('{"removed":{"id":1}}\n', 's2', { upToDate: true }), false),
  ]);
  const seen = (said: string) => said.includes('up to date') && stop.abort();
  const run = await runPullOf([url, '-o', file, '--follow'], { signal: stop.signal, seen });
  assert.equal(run.code, 0, run.text);
  const first = '{"id":1}\n{"id":2}\n{"removed":{"id":1}}\n';
  assert.equal(await readFile(file, 'utf8'), first);
  await writeFile(file, `${first}{"id":"half`); // as a kill leaves it
  const again = new AbortController();
  const more = await scriptedServer(t, [
    answer(proved('{"id":4}\n', 's3', { more: true }), true),
    answer(proved('{"id":5}\n', 's4', { upToDate: true }), false),
  ]);
  const state = await readFile(`${file}.state`, 'utf8');
  await writeFile(`${file}.state`, state.replaceAll(url, more.url));
  const next = await runPullOf([more.url, '-o', file, '--follow'], {
    signal: again.signal,
    seen: (said) => said.includes('up to date') && again.abort(),
  });
  assert.equal(next.code, 0, next.text);
  assert.doesNotMatch(next.text, /cut/, 'an answer that says that more follows is no failure');
  assert.equal(await readFile(file, 'utf8'), `${first}{"id":4}\n{"id":5}\n`);
  assert.ok(asked.includes('/items/stream?follow=true&cursor=s1'));
  assert.ok(more.asked.includes('/items/stream?follow=true&cursor=s2'));
});

test('a file that is not that of an earlier run is refused and stays as it is', async (t) => {
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const { url } = await scriptedServer(t, [noEstimate, answer(START + proved('{"id":1}\n', 's1'), false)]);
  await writeFile(file, 'precious');
  const refused = await runPullOf([url, '-o', file, '--follow']);
  assert.match(refused.text, /exists and is not the file of a followed set: --restart replaces it/);
  assert.equal(await readFile(file, 'utf8'), 'precious');
  const lines = '{"id":1}\n';
  const place = { cursor: 's1', rows: 1, bytes: 9, crc32: crc32(Buffer.from(lines)), ended: false };
  const state = [
    { version: 1, task: { url, parts: [url] } },
    { part: 0, place },
  ];
  await writeFile(`${file}.state`, state.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await writeFile(file, '{"id":2}\n');
  const changed = await runPullOf([url, '-o', file, '--follow']);
  assert.match(changed.text, /is not what the earlier run wrote: --restart begins it anew/);
  assert.equal(await readFile(file, 'utf8'), '{"id":2}\n');
});

test('a followed file whose changes are gone stops, and says what to do', async (t) => {
  const file = join(await temporaryFolder(t), 'items.ndjson');
  const { url } = await scriptedServer(t, [noEstimate, answer(START + proved('{"id":1}\n', 's1')), gone]);
  const { code, text } = await runPullOf([url, '-o', file, '--follow']);
  assert.equal(code, 1);
  assert.match(text, /can no longer be brought up to date: --restart begins it anew/);
  assert.equal(await readFile(file, 'utf8'), '{"id":1}\n');
});

test('standard output gets the proved lines of a followed set', async (t) => {
  const stop = new AbortController();
  const { url } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved('{"id":1}\n', 's1') + '{"id":2}\n'),
    answer(proved('{"id":2}\n{"removed":{"id":1}}\n', 's2', { upToDate: true }), false),
  ]);
  const { code, out, text } = await runPullOf([url, '-o', '-', '--follow'], {
    signal: stop.signal,
    seen: (said) => said.includes('up to date') && stop.abort(),
  });
  assert.equal(code, 0, text);
  assert.equal(out.toString(), '{"id":1}\n{"id":2}\n{"removed":{"id":1}}\n');
});

test('a follower ends when the reader of its standard output has gone', async (t) => {
  let lines = '';
  let count = 0;
  let timer = setTimeout(() => undefined);
  const { url } = await scriptedServer(t, [
    noEstimate,
    streamOnly((request, response) => {
      response.writeHead(200, NDJSON);
      timer = setInterval(() => {
        const line = `{"id":${count++},"text":"${'x'.repeat(3000)}"}\n`;
        lines += line;
        response.write(line + proved(lines, `s${count}`, { upToDate: true }).slice(lines.length));
      }, 5);
      request.socket.on('close', () => clearInterval(timer));
    }),
  ]);
  const child = spawn(process.execPath, [await cli(), 'pull', url, '-o', '-', '--follow'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  child.stdout.once('data', () => child.stdout.destroy());
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number]>]);
  assert.deepEqual([code, said], [1, 'the copy is up to date\nsluice: write EPIPE\n']);
});

/** Answers the requests for the ids of all rows with these, and the others with a followed stream of these lines. */
function followedAnd(lines: string, ids: string): RequestListener {
  return (request, response) => {
    const asksIds = request.url?.includes('fields=_id') ?? false;
    if (asksIds) response.writeHead(200, NDJSON).end(ids + proofOf('end', ids, ids.split('\n').length - 1));
    else answer(START + proved(lines, 's1', { upToDate: true }), false)(request, response);
  };
}

test('a copy in SQLite keeps ids apart that SQLite cuts at NUL, or that UTF-8 does not have', async (t) => {
  const ids = ['', '\0', 'a', 'a\0', 'a\0b', 'a\0c', 'ab', '\ud800', '\ud801', '\ufffd', '\u{1f600}'];
  const lines = ids.map((id) => `{"id":${JSON.stringify(id)}}\n`);
  const removals = ['a\0b', '\ud800'].map((id) => `{"removed":{"id":${JSON.stringify(id)}}}\n`);
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const left = lines.filter((line) => !removals.some((removal) => removal.includes(line.slice(0, -1))));
  const all = left.join('');
  const { url } = await scriptedServer(t, [
    noEstimate,
    answer(proved(lines.join(''), 's1')),
    answer(proved(removals.join(''), 's2', { upToDate: true }), false),
    answer(all + proofOf('end', all, left.length)),
  ]);
  const { code, text } = await runPullOf([url, '--into', file]);
  assert.equal(code, 0, text);
  assert.deepEqual(
    rowsOf(file)
      .map(([, row]) => `${String(row)}\n`)
      .sort(),
    left.sort(),
  );
});

test('a copy in SQLite refuses ids that JSON cannot distinguish, in each run', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const lines = '{"id":"5","v":1}\n{"id":"5","v":2}\n{"id":1}\n';
  const ids = '{"id":"5"}\n{"id":"5"}\n{"id":1}\n';
  const { url } = await scriptedServer(t, [followedAnd(lines, ids)]);
  for (let run = 0; run < 2; run++) {
    const { code, text } = await runPullOf([url, '--into', file]);
    assert.equal(code, 1);
    assert.match(text, /two rows have the id "5".*of different kinds/);
  }
});

test('rows that changed while they were copied are no reason to refuse a copy, and are compared once', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const lines = '{"id":"5","v":1}\n{"id":"5","v":2}\n{"id":1}\n';
  const ids = '{"id":"5"}\n{"id":1}\n';
  const { url, asked } = await scriptedServer(t, [followedAnd(lines, ids)]);
  for (let run = 0; run < 2; run++) {
    const { code, text } = await runPullOf([url, '--into', file]);
    assert.equal(code, 0, text);
  }
  assert.equal(asked.filter((path) => path.includes('fields=_id')).length, 1);
});

test('a full disk is named, with the file', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const database = new DatabaseSync(file);
  database.exec(
    `CREATE TABLE sluice_pulls (name TEXT PRIMARY KEY, url TEXT, place TEXT);
     CREATE TRIGGER full BEFORE INSERT ON sluice_pulls BEGIN SELECT RAISE(ROLLBACK, 'database or disk is full'); END`,
  );
  database.close();
  const { url } = await scriptedServer(t, [
    noEstimate,
    answer(START + proved('{"id":1}\n', 's1', { upToDate: true }), false),
  ]);
  const { code, text } = await runPullOf([url, '--into', file]);
  assert.equal(code, 1);
  assert.match(text, /copy\.sqlite, table items: database or disk is full; run the same command again/);
});

test('a column has the array that its path leads to, and a name that JSON escapes has no column', async (t) => {
  const file = join(await temporaryFolder(t), 'copy.sqlite');
  const escaped = '{"id":1,"path\\\\name":"a","tab\\tname":"b","plain":"c"}\n';
  const lines =
    '{"id":1,"lines":[{"sku":"x"},{"sku":"y"}]}\n{"id":2,"lines":{"sku":"z"}}\n{"id":3,"lines":5}\n';
  const deep = '{"id":1,"lines":[{"a":{"sku":"x"}},{"a":{"sku":"y"}}]}\n{"id":2,"lines":{"a":{"sku":"z"}}}\n';
  for (const [name, body, query] of [
    ['items', escaped, ''],
    ['orders', lines, '?fields=lines.sku'],
    ['deep', deep, '?fields=lines.a.sku'],
  ] as const) {
    const { url } = await scriptedServer(t, [
      (_, response) =>
        void response.writeHead(200, NDJSON).write(START + proved(body, 's1', { upToDate: true })),
    ]);
    const { code, text } = await runPullOf([
      `${url.replace('/items/', `/${name}/`)}${query}`,
      '--into',
      file,
    ]);
    assert.equal(code, 0, text);
  }
  assert.deepEqual(columnsOf(file, 'items'), ['id', 'row', 'plain']);
  const values = (sql: string) => queryFile(file, sql);
  assert.deepEqual(values('SELECT plain FROM items'), [['c']]);
  assert.deepEqual(values('SELECT "lines.sku" FROM orders ORDER BY id'), [
    ['[{"sku":"x"},{"sku":"y"}]'],
    ['z'],
    [null],
  ]);
  const [array, member] = values('SELECT "lines.a.sku" FROM deep ORDER BY id');
  assert.deepEqual([array, member], [['[{"a":{"sku":"x"}},{"a":{"sku":"y"}}]'], ['z']]);
});

function columnsOf(file: string, table: string): unknown[] {
  return queryFile(file, `SELECT name FROM pragma_table_xinfo('${table}')`).flat();
}
