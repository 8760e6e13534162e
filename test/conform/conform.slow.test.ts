import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, request, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { runConform } from '../../src/conform/command.ts';
import { EDITION_CHECKS } from '../../src/conform/editions.ts';
import { bearer, keyedServer } from '../support/access/keyed.ts';
import { temporaryFolder } from '../support/directory.ts';
import { itemEditions, ROWS as ROWS_OF_EDITION } from '../support/editions/edition-server.ts';
import { listening } from '../support/ports.ts';
import { STORES, testServer, type StoreName, type TestServer } from '../support/process/server.ts';
import { Kept } from '../support/pull/pulling.ts';

const ROWS = Array.from({ length: 300 }, (_, n) => ({
  _id: `r${String(n).padStart(4, '0')}`,
  category: n % 2 === 0 ? 'even' : 'odd',
  price: n,
  name: `Zürich ${n}`,
}));

async function filled(t: TestContext, store: StoreName): Promise<TestServer | null> {
  const server = await testServer(t, store, 'uws');
  await server?.insert(ROWS);
  return server;
}

async function conform(...argv: readonly string[]): Promise<{ code: number; lines: readonly string[] }> {
  const stdout = new Kept();
  const code = await runConform(argv, stdout);
  return { code, lines: stdout.bytes.toString().split('\n').slice(0, -1) };
}

for (const store of STORES)
  test(`${store}: a server keeps every promise of the protocol`, async (t) => {
    const server = await filled(t, store);
    if (!server) return;
    for (const url of [server.url, `${server.url}/items`, `${server.url}/items/`]) {
      const { code, lines } = await conform(url);
      assert.equal(code, 0, lines.join('\n'));
      // A set of so few rows has no checkpoint in its middle.
      assert.deepEqual(
        lines.filter((line) => !line.startsWith('ok  ')).map((line) => line.split(' - ')[0]),
        [
          'skip  a stream goes on behind the cursor of a checkpoint',
          'skip  another key is 401',
          ...EDITION_CHECKS.map(({ promise }) => `skip  ${promise}`),
          'every promise that was seen holds',
        ],
      );
    }
  });

for (const store of STORES)
  test(`${store}: a server keeps every promise about editions, also behind changes`, async (t) => {
    const editions = await itemEditions(t, store);
    if (!editions) return;
    const { server } = editions;
    for (const removed of [null, ROWS_OF_EDITION[0]?._id]) {
      if (removed !== null) await editions.remove(removed);
      const { code, lines } = await conform(`${server.url}/items`);
      assert.equal(code, 0, lines.join('\n'));
      for (const { promise } of EDITION_CHECKS)
        assert.ok(
          lines.some((line) => line.startsWith(`ok    ${promise}`)),
          `${promise}: ${lines.join('\n')}`,
        );
    }
  });

interface Sent {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** What a server does to an answer. `path`: what was asked, with its query. */
type Fault = (path: string, sent: Sent, asked: IncomingHttpHeaders) => void;

/** A server that answers as another one does, but for one fault. Answers without an end pass as they come. */
async function faulty(t: TestContext, real: string, fault: Fault): Promise<string> {
  const server = createServer((asked, answer) => {
    const { url = '', method, headers } = asked;
    const passed = request(`${real}${url}`, {
      method,
      headers: { ...headers, 'accept-encoding': 'identity' },
      agent: false, // a connection that is used again may end meanwhile
    });
    passed.on('response', (came) => {
      const status = came.statusCode ?? 0;
      if (url.includes('follow=true') || headers.accept === 'text/event-stream') {
        answer.writeHead(status, came.headers);
        came.pipe(answer);
        answer.on('close', () => passed.destroy());
        return;
      }
      const pieces: Buffer[] = [];
      came.on('data', (piece: Buffer) => pieces.push(piece));
      came.on('end', () => {
        const sent: Sent = { status, headers: came.headers, text: Buffer.concat(pieces).toString('latin1') };
        fault(url, sent, headers);
        delete sent.headers['content-length'];
        delete sent.headers['transfer-encoding'];
        answer.writeHead(sent.status, sent.headers).end(sent.text, 'latin1');
      });
    });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  return `http://127.0.0.1:${await listening(t, server)}`;
}

const isPage = (path: string) => /^\/items(\?|$)/.test(path);
const isStream = (path: string) => path.startsWith('/items/stream?');

/** A fault, and the promise that it breaks. */
const FAULTS: Readonly<Record<string, readonly [Fault, promise: string]>> = {
  'a wrong CRC in the end line': [
    (path, sent) => {
      if (isStream(path)) sent.text = sent.text.replace(/"crc32":"\w{8}"\}\}\n$/, '"crc32":"00000000"}}\n');
    },
    'a stream proves its rows, each once',
  ],
  'a wrong count in the end line': [
    (path, sent) => {
      if (isStream(path)) sent.text = sent.text.replace(/"rows":300,/, '"rows":301,');
    },
    'a stream proves its rows, each once',
  ],
  'no end line': [
    (path, sent) => {
      if (isStream(path)) sent.text = sent.text.replace(/\{"end":.*\n$/, '');
    },
    'a stream proves its rows, each once',
  ],
  'no cursor in the end line': [
    (path, sent) => {
      if (isStream(path)) sent.text = sent.text.replace(/"cursor":"[^"]*",/, '');
    },
    'a stream goes on behind the cursor of an end, and the proofs combine',
  ],
  'a row twice in a page': [
    (path, sent) => {
      if (isPage(path)) sent.text = sent.text.replace(/\{"data":\[(\{.*?\}),\{.*?\}/, '{"data":[$1,$1');
    },
    'pages by cursor have the rows of the stream, each once',
  ],
  'a cursor of a page that skips a row': [
    (path, sent) => {
      if (isPage(path) && path.includes('cursor=') && path.includes('limit=5'))
        sent.text = sent.text.replace(/\{"data":\[\{.*?\},/, '{"data":[');
    },
    'pages by cursor have the rows of the stream, each once',
  ],
  'a stream that begins anew': [
    (path, sent) => {
      if (isStream(path) && path.includes('cursor=')) sent.text = sent.text.replaceAll('r0150', 'r0001');
    },
    'a stream goes on behind the cursor of an end, and the proofs combine',
  ],
  'an array that lacks a row': [
    (path, sent) => {
      if (path.includes('format=json')) sent.text = sent.text.replace(/^\[\{.*?\},/, '[');
    },
    'format=json is one array of the same rows',
  ],
  'an ETag without 304': [
    (path, sent) => {
      if (isPage(path) && sent.status === 304) {
        sent.status = 200;
        sent.text = '{"data":[],"page":{}}';
      }
    },
    'a page has an ETag, and an unchanged one is 304',
  ],
  '304 whatever the tag': [
    (path, sent, asked) => {
      if (isPage(path) && asked['if-none-match'] !== undefined)
        Object.assign(sent, { status: 304, text: '' });
    },
    'a page has an ETag, and an unchanged one is 304',
  ],
  'no Link': [
    (_path, sent) => {
      delete sent.headers.link;
    },
    'a page links to the next one',
  ],
  'an unknown parameter that is ignored': [
    (path, sent) => {
      if (path.includes('no-such-parameter')) Object.assign(sent, { status: 200, text: '{}' });
    },
    'an unknown parameter is refused',
  ],
  'another code': [
    (_path, sent) => {
      sent.text = sent.text.replace('"code":"invalid-cursor"', '"code":"oops"');
    },
    'a broken cursor is refused',
  ],
  '405 without Allow': [
    (_path, sent) => {
      delete sent.headers.allow;
    },
    'another method is 405 with Allow',
  ],
  'rows of any type': [
    (_path, sent) => {
      if (sent.status === 406) Object.assign(sent, { status: 200, text: '{}' });
    },
    'a type that no rows have is 406',
  ],
  'a part that comes twice': [
    (path, sent) => {
      if (path.includes('/partitions')) sent.text = sent.text.replace(/\[(\{.*?\}),/, '[$1,$1,');
    },
    'partitions are together the set',
  ],
  'changes without a checkpoint': [
    (path, sent) => {
      if (path === '/items/changes') sent.text = sent.text.replace(/^\{"checkpoint":.*\n/, '');
    },
    'changes without since are a place',
  ],
  'a broken place that is taken': [
    (path, sent) => {
      if (path.includes('since=broken')) Object.assign(sent, { status: 200, text: '' });
    },
    'a broken place is refused',
  ],
  'no Changes-From': [
    (_path, sent) => {
      delete sent.headers['changes-from'];
    },
    'a stream says from where its changes follow',
  ],
};

const isChunk = (path: string) => path.endsWith('.ndjson.gz');

/** Faults of a server with editions. */
const EDITION_FAULTS: typeof FAULTS = {
  'a chunk of other rows': [
    (path, sent) => {
      if (isChunk(path) && sent.status === 200) sent.text = gzipSync('{"id":"other"}\n').toString('latin1');
    },
    'an edition and its files are what their names say',
  ],
  'a wrong number of rows in the head': [
    (path, sent) => {
      if (path === '/items/edition') sent.text = sent.text.replace(/"rows":\d+/, '"rows":7');
    },
    'an edition and its files are what their names say',
  ],
  'another target in the head': [
    (path, sent) => {
      if (path === '/items/edition') sent.text = sent.text.replace(/"target":\d+/, '"target":5000');
    },
    'chunks end where the rule says',
  ],
  'a row that is in no edition': [
    (path, sent) => {
      if (isStream(path)) sent.text = sent.text.replace(/\{"id":[^\n]*\n/, '');
    },
    'a stream proves its rows, each once',
  ],
  'an edition of other rows': [
    (path, sent) => {
      if (path.startsWith('/items/changes?since='))
        sent.text = sent.text.replace(/^.*"removed".*\n/m, '').replaceAll('"removed":1', '"removed":0');
    },
    'an edition has the rows of the stream',
  ],
  'a head without 304': [
    (path, sent) => {
      if (path === '/items/edition' && sent.status === 304) Object.assign(sent, { status: 200, text: '{}' });
    },
    'the head of an edition has an ETag, and an unchanged one is 304',
  ],
  'a file that caches ask for again': [
    (path, sent) => {
      if (isChunk(path)) sent.headers['cache-control'] = 'no-cache';
    },
    'files of editions never change, and are sent in ranges',
  ],
  'a range that is the whole file': [
    (path, sent) => {
      if (isChunk(path) && sent.status === 206) sent.status = 200;
    },
    'files of editions never change, and are sent in ranges',
  ],
  'a head for any name': [
    (path, sent) => {
      if (path.includes('/edition/000')) sent.status = 200;
    },
    'an edition is found by its name, and another name is 404',
  ],
};

test('a server whose editions have one fault is told of it', async (t) => {
  const editions = await itemEditions(t, 'sqlite');
  assert.ok(editions);
  await editions.remove(ROWS_OF_EDITION[0]?._id);
  await assertTold(t, editions.server.url, EDITION_FAULTS);
});

test('a server with one fault is told of it', async (t) => {
  const server = await filled(t, 'sqlite');
  assert.ok(server);
  await assertTold(t, server.url, FAULTS);
});

async function assertTold(t: TestContext, url: string, faults: typeof FAULTS): Promise<void> {
  const told = Object.entries(faults).map(async ([what, [fault, promise]]) => {
    const { code, lines } = await conform(`${await faulty(t, url, fault)}/items`);
    const failed = lines
      .filter((line) => line.startsWith('FAIL  '))
      .map((line) => line.slice(6).split(' - ')[0]);
    assert.equal(code, 1, what);
    assert.ok(failed.includes(promise), `${what}: ${failed.join('; ')}`);
    assert.match(lines.at(-1) ?? '', /^promises that do not hold: \d+$/, what);
  });
  await Promise.all(told);
}

test('a key opens the rows, and another one is refused', async (t) => {
  const server = await keyedServer(t, 'sqlite', [{ name: 'ada' }], []);
  await server.insert(ROWS);
  const file = join(await temporaryFolder(t), 'key');
  await writeFile(file, `${bearer('ada').authorization.slice('Bearer '.length)}\n`);
  const { code, lines } = await conform(`${server.url}/items`, '--key-file', file);
  assert.equal(code, 0, lines.join('\n'));
  assert.ok(lines.some((line) => line.startsWith('ok    another key is 401')));
});

test('a server that is away fails, and a wrong argument is refused', async () => {
  await assert.rejects(conform('http://127.0.0.1:1/items'), /ECONNREFUSED/);
  for (const argv of [[], ['items'], ['http://a', 'http://b'], ['http://me:secret@a/']])
    await assert.rejects(conform(...argv), { name: 'UsageError' });
});
