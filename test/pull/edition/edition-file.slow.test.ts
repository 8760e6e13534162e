import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/directory.ts';
import { editionServer, IDS, madeEdition, rowsOfIds } from '../../support/pull/editions.ts';
import { runPullOf } from '../../support/pull/pulling.ts';

const LINES = rowsOfIds(IDS.texts ?? []);
const ONE = madeEdition(LINES);
/** One row changed, one removed, ten appended. */
const CHANGED = [
  ...LINES.slice(0, 100),
  `${LINES[100]?.slice(0, -1)},"new":true}`,
  ...LINES.slice(101, 300),
  ...LINES.slice(301),
  ...rowsOfIds(Array.from({ length: 10 }, (_, n) => `"e${n}"`)),
];
const TWO = madeEdition(CHANGED, { before: ONE });
const chunksOf = (asked: readonly string[]) => asked.filter((path) => path.endsWith('.ndjson.gz'));

async function inFolder(t: Parameters<typeof temporaryFolder>[0]) {
  const folder = await temporaryFolder(t);
  const file = join(folder, 'orders.ndjson');
  const left = async () => (await readdir(folder)).sort();
  return { folder, file, left };
}

/** Answers with the first bytes, as if there were more. */
function cut(response: ServerResponse, bytes: Buffer): true {
  response.writeHead(200, { 'content-length': bytes.length });
  response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  return true;
}

/** Ends an answer, and says that there was one. */
function ended(response: ServerResponse, bytes: Buffer = Buffer.alloc(0)): true {
  response.end(bytes);
  return true;
}

test('a pull of an edition joins its chunks, from a server and from a folder, in each format', async (t) => {
  assert.ok(ONE.chunks.length > 20 && ONE.head.index.some(({ level }) => level === 1));
  for (const formats of [['ndjson.gz'], ['ndjson.br', 'ndjson.gz'], ['ndjson'], ['parquet', 'ndjson']]) {
    const made = madeEdition(LINES, { formats });
    const { url, asked } = await editionServer(t, made);
    for (const address of [url, `${url}.json`, `${url}/${made.head.edition}`]) {
      const { file, left } = await inFolder(t);
      const { code, text } = await runPullOf([address, '-o', file]);
      assert.equal(code, 0, text);
      assert.match(text, new RegExp(`pulled and proved the edition ${made.head.edition} of 2026.*600 rows`));
      assert.ok((await readFile(file)).equals(made.rows));
      assert.deepEqual(await left(), ['orders.ndjson']);
    }
    const wanted = formats.find((format) => format !== 'parquet') ?? '';
    assert.equal(asked.filter((path) => path.endsWith(`.${wanted}`)).length, 3 * made.chunks.length);
  }
});

test('an edition goes to standard output, and one without rows is an empty file', async (t) => {
  const server = await editionServer(t, ONE);
  const { code, out } = await runPullOf([server.url, '-o', '-']);
  assert.equal(code, 0);
  assert.ok(out.equals(ONE.rows));
  const empty = madeEdition([]);
  server.publish(empty);
  assert.equal(empty.head.edition, createHash('sha256').digest('hex'));
  const { file } = await inFolder(t);
  for (const verb of ['pulled and proved', 'proved, and had already']) {
    const { code, text } = await runPullOf([server.url, '-o', file]);
    assert.equal(code, 0, text);
    assert.match(text, new RegExp(`^${verb}`, 'm'));
  }
  assert.equal((await readFile(file)).length, 0);
});

for (const [kind, ids] of Object.entries(IDS))
  test(`a file of an older edition needs only the chunks that differ: ids are ${kind}`, async (t) => {
    const lines = rowsOfIds(ids);
    const one = madeEdition(lines);
    const two = madeEdition(lines.toSpliced(300, 1, `${lines[300]?.slice(0, -1)},"new":1}`).toSpliced(20, 1));
    const server = await editionServer(t, one);
    const { file } = await inFolder(t);
    assert.equal((await runPullOf([server.url, '-o', file])).code, 0);
    server.publish(two, false);
    server.asked.length = 0;
    const { code, text } = await runPullOf([server.url, '-o', file]);
    assert.equal(code, 0, text);
    assert.ok((await readFile(file)).equals(two.rows));
    assert.ok(chunksOf(server.asked).length <= 4, String(chunksOf(server.asked)));
    server.asked.length = 0;
    const again = await runPullOf([server.url, '-o', file]);
    assert.match(again.text, /had already/);
    assert.deepEqual(server.asked, ['edition']);
  });

test('a row of many megabytes is a chunk of its own', async (t) => {
  const long = `{"id":"d0000301","text":"${'x'.repeat(20_000_000)}"}`;
  const made = madeEdition([...LINES.slice(0, 101), long, ...LINES.slice(101)]);
  const server = await editionServer(t, made);
  const { file } = await inFolder(t);
  const { code, text } = await runPullOf([server.url, '-o', file]);
  assert.equal(code, 0, text);
  assert.ok((await readFile(file)).equals(made.rows));
});

test('cut bodies, busy servers and files without a length are fetched again', async (t) => {
  const server = await editionServer(t, ONE);
  const { file } = await inFolder(t);
  let n = 0;
  server.handle = ({ url = '' }, response) => {
    const bytes = server.files.get(url.replace('/orders/', ''));
    n++;
    if (n % 5 === 0) return ended(response.writeHead(503));
    if (n % 7 === 0) return ended(response.destroy());
    if (n % 3 === 0 && bytes) return cut(response, bytes);
    if (n % 2 === 0 && bytes) return ended(response.writeHead(200), bytes);
    return false;
  };
  const { code, text } = await runPullOf([server.url, '-o', file]);
  assert.equal(code, 0, text);
  assert.match(text, /retrying/);
  assert.ok((await readFile(file)).equals(ONE.rows));
});

test('a chunk that is not its name is fetched again past caches, and then named in the error', async (t) => {
  const { name = '' } = ONE.chunks[7] ?? {};
  const path = `chunks/${name}.ndjson.gz`;
  const real = ONE.files.get(path) ?? Buffer.alloc(0);
  const other = ONE.files.get(`chunks/${ONE.chunks[8]?.name}.ndjson.gz`) ?? Buffer.alloc(0);
  const wrong: [string, Buffer][] = [
    ['another chunk', other],
    ['gzip that ends early', real.subarray(0, -9)],
    ['an error page', Buffer.from('<html>Bad gateway</html>')],
    ['nothing', Buffer.alloc(0)],
    ['rows that are too many', Buffer.alloc(3_000_000)],
  ];
  for (const [what, bytes] of wrong) {
    const server = await editionServer(t, ONE);
    server.files.set(path, bytes);
    const { file, left } = await inFolder(t);
    const { code, text } = await runPullOf([server.url, '-o', file]);
    assert.equal(code, 1, what);
    assert.match(text, new RegExp(`sluice: .*${name}.ndjson.gz is not what its name says`), what);
    assert.equal(server.asked.filter((one) => one === path).length, 3, what);
    assert.deepEqual(await left(), ['orders.ndjson.part', 'orders.ndjson.part.state']);
    // A cache had it, and the server has another.
    server.handle = ({ url, headers }, response) => {
      if (url !== `/orders/${path}` || headers['cache-control'] !== 'no-cache') return false;
      return ended(response.writeHead(200, { 'content-length': real.length }), real);
    };
    server.asked.length = 0;
    const again = await runPullOf([server.url, '-o', file]);
    assert.equal(again.code, 0, again.text);
    assert.ok((await readFile(file)).equals(ONE.rows), what);
    assert.ok(
      chunksOf(server.asked).length <= ONE.chunks.length - 6,
      'the chunks before it are not fetched again',
    );
  }
});

test('a head that is none, an index that is not its name, and sums that are wrong are refused', async (t) => {
  const { file } = await inFolder(t);
  const wrong: [string, (head: typeof ONE.head) => unknown, RegExp][] = [
    ['an error page', () => '<html>', /edition is not what its name says, and was fetched 3 times/],
    ['no index', (head) => ({ ...head, index: null }), /edition is not what its name says/],
    ['rows', (head) => ({ ...head, rows: 601 }), /rows is 600, not 601/],
    ['crc32', (head) => ({ ...head, crc32: '00000000' }), /crc32 is/],
    ['edition', (head) => ({ ...head, edition: 'a'.repeat(64) }), /edition is .*, not aaa/],
    ['an index', (head) => ({ ...head, index: head.index.slice(1) }), /edition is/],
    ['a place', (head) => ({ ...head, files: 'ftp://a/' }), /no place of its files/],
    [
      'a level',
      (head) => ({ ...head, index: head.index.map((one) => ({ ...one, level: 0 })) }),
      /not what its entry says/,
    ],
  ];
  for (const [what, change, reason] of wrong) {
    const server = await editionServer(t, ONE);
    server.files.set('edition.json', Buffer.from(JSON.stringify(change(ONE.head))));
    const { code, text } = await runPullOf([server.url, '-o', file, '--restart']);
    assert.equal(code, 1, what);
    assert.match(text, reason, what);
  }
  const server = await editionServer(t, ONE);
  server.files.clear();
  const none = await runPullOf([server.url, '-o', file, '--restart']);
  assert.match(none.text, /404: It is not here/);
});

test('a pull that was interrupted finishes the edition that it began, while that is kept', async (t) => {
  const server = await editionServer(t, ONE);
  const { file, left } = await inFolder(t);
  const stop = new AbortController();
  let n = 0;
  server.handle = ({ url = '' }) => {
    if (url.endsWith('.gz') && ++n === 12) stop.abort(new Error('interrupted'));
    return n >= 12;
  };
  assert.equal((await runPullOf([server.url, '-o', file], { signal: stop.signal })).code, 1);
  assert.deepEqual(await left(), ['orders.ndjson.part', 'orders.ndjson.part.state']);
  server.handle = () => false;
  server.publish(TWO);
  server.asked.length = 0;
  const { code, text } = await runPullOf([server.url, '-o', file]);
  assert.equal(code, 0, text);
  assert.ok((await readFile(file)).equals(ONE.rows));
  assert.ok(chunksOf(server.asked).length < ONE.chunks.length, 'it has fetched all chunks again');
  assert.equal(server.asked[0], `edition/${ONE.head.edition}`);
});

test('a pull whose edition is removed begins with the newest, and keeps the chunks that it has', async (t) => {
  for (const isKilled of [false, true]) {
    const server = await editionServer(t, ONE);
    const { file, left } = await inFolder(t);
    const stop = new AbortController();
    let n = 0;
    server.handle = ({ url = '' }) => {
      if (!url.endsWith('.gz') || ++n !== 15) return false;
      server.publish(TWO, false);
      if (isKilled) stop.abort(new Error('killed'));
      return false;
    };
    const first = await runPullOf([server.url, '-o', file], { signal: stop.signal });
    assert.equal(first.code, isKilled ? 1 : 0, first.text);
    if (isKilled) assert.equal((await runPullOf([server.url, '-o', file])).code, 0);
    else assert.match(first.text, /beginning with the newest edition/);
    assert.ok((await readFile(file)).equals(TWO.rows));
    assert.deepEqual(await left(), ['orders.ndjson']);
    const asked = chunksOf(server.asked);
    assert.ok(asked.length < TWO.chunks.length + 12, `${asked.length} of ${TWO.chunks.length}`);
  }
});

test('a chunk that is missing while its edition is the newest is an error', async (t) => {
  const server = await editionServer(t, ONE);
  const { file } = await inFolder(t);
  server.files.delete(`chunks/${ONE.chunks[3]?.name}.ndjson.gz`);
  const { code, text } = await runPullOf([server.url, '-o', file]);
  assert.equal(code, 1);
  assert.match(text, new RegExp(`${ONE.chunks[3]?.name}.*404`));
});

test('files elsewhere get no key, and a file with rows of others is refused', async (t) => {
  const elsewhere = await editionServer(t, ONE);
  const made = madeEdition(LINES, { files: `${elsewhere.origin}/orders/chunks/` });
  const server = await editionServer(t, made);
  const { folder, file } = await inFolder(t);
  await writeFile(join(folder, 'key'), 'secret\n');
  const keys: (string | undefined)[] = [];
  elsewhere.handle = ({ headers }) => (keys.push(headers.authorization), false);
  server.handle = ({ headers }) => (keys.push(headers.authorization), false);
  const { code, text } = await runPullOf([server.url, '-o', file, '--key-file', join(folder, 'key')]);
  assert.equal(code, 0, text);
  assert.deepEqual([keys.shift(), new Set(keys)], ['Bearer secret', new Set([undefined])]);
  await writeFile(
    `${file}.part.state`,
    `${JSON.stringify({ version: 1, task: { url: 'http://a/', parts: [] } })}\n`,
  );
  const refused = await runPullOf([server.url, '-o', file]);
  assert.match(refused.text, /belongs to a pull of http:\/\/a\//);
});

test('the command line of editions', async (t) => {
  const { url } = await editionServer(t, ONE);
  const wrong: [string[], RegExp][] = [
    [[`${url}?category=x`, '-o', 'a'], /takes no parameters/],
    [[url, '-o', 'a', '--snapshot'], /does not support --snapshot/],
    [[url, '-o', 'a.parquet'], /writes NDJSON/],
    [[url, '-o', 'a', '--follow'], /--follow needs/],
    [[url], /takes -o FILE/],
  ];
  for (const [argv, reason] of wrong) await assert.rejects(() => runPullOf(argv), reason);
});
