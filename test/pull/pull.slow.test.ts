import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { appendFile, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { editionUrls } from '../../src/pull/edition/edition-url.ts';
import { parsePullArguments } from '../../src/pull/command.ts';
import { UsageError } from '../../src/terminal/arguments.ts';
import { catalogue } from '../support/resources/catalogue.ts';
import { startCutter, type Cutter } from '../support/faults/cutter.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { SEED } from '../support/seed.ts';
import { shared } from '../support/tests-with.ts';
import { serverOn } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';

const CUTS = process.env.LONG ? 200 : 8;
const ROWS = 21_000;

/** One server for all tests. Its items have awkward values of every kind. */
const opened = shared(async (t) => {
  const awkward = ['a,"b"\n\u2028 \\', '', null, { deep: [1, { '"]}': '}{,"' }] }, [], '007', true, -0.5];
  const server = await serverOn(t, {});
  const documents = catalogue(ROWS).map(({ document }, n) => ({
    ...document,
    'odd, "name"': awkward[n % awkward.length],
    ...(n % 3 === 0 && { sometimes: n }),
  }));
  await server.insert(documents);
  return server;
});

async function setting(t: TestContext) {
  const server = (await opened(t)) ?? assert.fail();
  /** The bytes of a stream, read without a pull. */
  const streamed = async (query: string): Promise<Buffer> =>
    Buffer.from(await (await server.get(`/items/stream?${query}`)).arrayBuffer());
  return { server, streamed, cutter: await startCutter(t, server.url), directory: await temporaryFolder(t) };
}

/** Cuts the next connections somewhere in the `bytes` of their answers, always at the same places. */
function cutting(bytes: number): () => number {
  let cuts = 0;
  return () => (cuts++ < CUTS ? 1 + Math.floor((((cuts * 7919 + SEED - 1) % 97) / 97) * bytes) : Infinity);
}

describe('a pull', () => {
  test('writes the same bytes as the stream of the server in every order and selection', async (t) => {
    const { server, streamed, directory } = await setting(t);
    const queries = [
      '',
      'sort=price_desc',
      'category=music&limit=1500',
      'fields=n,odd%2C%20%22name%22',
      'limit=1',
      'category=none',
    ];
    for (const query of queries) {
      const file = join(directory, 'items.ndjson');
      const { code, text } = await runPullOf([`${server.url}/items/stream?${query}`, '-o', file]);
      assert.equal(code, 0, text);
      const pulled = await readFile(file);
      const expected = await streamed(query);
      assert.ok(pulled.equals(expected), query);
      const piped = await runPullOf([`${server.url}/items/stream?${query}&format=ndjson`, '-o', '-']);
      assert.ok(piped.code === 0 && piped.out.equals(expected), `${query} into a pipe`);
    }
  });

  for (const compression of ['br', 'gzip', 'none'] as const) {
    test(`continues after its last proved row when it is cut, compressed by ${compression}`, async (t) => {
      const { streamed, cutter, directory } = await setting(t);
      const file = join(directory, 'items.ndjson');
      for (const query of ['', 'sort=price_asc&limit=20001']) {
        const expected = await streamed(query);
        const wire = compression === 'none' ? expected.length : expected.length / 14;
        cutter.nextAfter = cutting(wire);
        const { code, text } = await runPullOf([
          ...[`${cutter.url}/items/stream?${query}`, '-o', file],
          ...['--compression', compression],
        ]);
        assert.equal(code, 0, text);
        assert.match(text, /; retrying in [\d.]+ s\n/);
        assert.ok((await readFile(file)).equals(expected), query);
        assert.deepEqual(await readdir(directory), ['items.ndjson'], 'the pull leaves no other file');
      }
    });
  }

  test('writes one ordered file from several connections', async (t) => {
    const { streamed, cutter, directory } = await setting(t);
    const file = join(directory, 'items.ndjson');
    cutter.nextAfter = cutting(300_000);
    const pulled = await runPullOf([`${cutter.url}/items/stream`, '-o', file, '--parallel', '4']);
    assert.equal(pulled.code, 0, pulled.text);
    const expected = await streamed('');
    assert.ok((await readFile(file)).equals(expected));
    assert.equal((await readdir(directory)).filter((name) => name.includes('.part')).length, 0);
  });

  for (const parallel of ['1', '3']) {
    test(`that was interrupted continues in the next run, even with damaged files (${parallel} at once)`, async (t) => {
      const { streamed, cutter, directory } = await setting(t);
      const file = join(directory, 'items.ndjson');
      const options = ['--parallel', parallel, '--compression', 'none'];
      const args = [`${cutter.url}/items/stream`, '-o', file, ...options];
      const expected = await streamed('');
      const damages: [what: string, damage: (part: string) => Promise<void>][] = [
        ['nothing', () => Promise.resolve()],
        ['rows without a proof', (part) => appendFile(part, '{"id":1}\n{"id"')],
        ['a torn proof', () => appendFile(`${file}.part.state`, '{"part":0,"place":{"cur')],
        ['a lost row', (part) => truncate(part, 1000)],
        ['other bytes', (part) => writeFile(part, Buffer.alloc(500_000))],
      ];
      for (const [what, damage] of damages) {
        await damage(await interrupted(cutter, args, directory));
        const { code, text } = await runPullOf(args);
        assert.equal(code, 0, `${what}: ${text}`);
        if (what !== 'a lost row' && what !== 'other bytes')
          assert.match(text, /^continuing after [\d,]+ rows\n/, what);
        assert.ok((await readFile(file)).equals(expected), what);
      }
    });
  }

  test('refuses to continue the file of another pull', async (t) => {
    const { cutter, directory } = await setting(t);
    const file = join(directory, 'items.ndjson');
    await interrupted(cutter, [`${cutter.url}/items/stream`, '-o', file, '--compression', 'none'], directory);
    const other = [`${cutter.url}/items/stream?sort=id_desc`, '-o', file];
    const refused = await runPullOf(other);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /belongs to a pull of http.*: --restart discards it\n$/);
    assert.equal((await runPullOf([...other, '--restart'])).code, 0);
  });
});

/** Runs a pull, and interrupts it when rows are proved. Returns the part file with the most rows. */
async function interrupted(cutter: Cutter, args: readonly string[], directory: string): Promise<string> {
  const enough = new AbortController();
  const state = (name: string) => name.endsWith('.state') && /"rows":[1-9]/.test(readFileSync(name, 'utf8'));
  const files = () => readdirSync(directory).map((name) => join(directory, name));
  let connections = 0;
  // The side requests and one stream pass. The other streams are cut after their first checkpoint.
  cutter.nextAfter = () =>
    args.includes('3') && ++connections <= 3 ? Infinity : 1_300_000 / (args.includes('3') ? 4 : 1);
  const { code, text } = await runPullOf(args, {
    signal: enough.signal,
    seen: (line) => {
      if (line.includes('retrying in') && files().some(state)) enough.abort();
    },
  });
  assert.equal(code, 1);
  assert.match(text, /sluice: interrupted; run the same command again to continue\n$/);
  cutter.nextAfter = () => Infinity;
  const [largest = ''] = files()
    .filter((name) => /\.part(\.\d)?$/.test(name))
    .toSorted((a, b) => statSync(b).size - statSync(a).size);
  return largest;
}

test('the arguments of a pull become a command', () => {
  const url = 'http://a.example/items/stream';
  const command = {
    url: new URL(url),
    output: 'a.ndjson',
    parallel: 1,
    compression: 'br',
    keyFile: null,
    restart: false,
    retryForMs: 300_000,
    follow: false,
    into: null,
    isExport: false,
    edition: null,
    isEdition: false,
    mirror: null,
  };
  const edition = editionUrls(new URL('http://a.example/items/edition'));
  const commands: [argv: string[], changes: object][] = [
    [[url, '-o', 'a.ndjson'], {}],
    [['http://a.example/items', '-o', 'a.ndjson'], {}],
    [
      ['http://a.example/api/orders/?status=paid&min_price.gte=5', '-o', 'a.ndjson'],
      { url: new URL('http://a.example/api/orders/stream?status=paid&min_price.gte=5') },
    ],
    [[`${url}?format=ndjson&checkpoints=true`, '-o', '-'], { output: '-' }],
    [
      `${url} -o a --parallel 8 --snapshot --compression gzip --key-file k --restart --retry-for 5`.split(
        ' ',
      ),
      {
        output: 'a',
        url: new URL(`${url}?consistency=snapshot`),
        parallel: 8,
        compression: 'gzip',
        keyFile: 'k',
        restart: true,
        retryForMs: 5000,
      },
    ],
    [
      ['--export', 'http://a.example/b/exports/1f/file?proxy=true', '-o', 'a.csv.gz', '--key-file', 'k'],
      {
        url: new URL('http://a.example/b/exports/1f/file?proxy=true'),
        output: 'a.csv.gz',
        compression: 'none',
        keyFile: 'k',
        isExport: true,
      },
    ],
    [[url, '--into', 'a.db', '--follow'], { output: 'a.db', into: 'a.db', follow: true, edition }],
    [[`${url}?a=1`, '--into', 'a.db'], { url: new URL(`${url}?a=1`), output: 'a.db', into: 'a.db' }],
    [
      ['http://a.example/items/edition', '--into', 'a.db'],
      { output: 'a.db', into: 'a.db', edition, isEdition: true, parallel: 4 },
    ],
    [
      ['http://a.example/items/edition', '--mirror', 'b', '--parallel', '9'],
      {
        url: edition?.head,
        output: 'b',
        mirror: 'b',
        edition,
        isEdition: true,
        parallel: 9,
        compression: 'none',
      },
    ],
  ];
  for (const [argv, changes] of commands)
    assert.deepEqual(parsePullArguments(argv), { ...command, ...changes }, argv.join(' '));
});

test('a wrong argument is refused with a message that names it', () => {
  const url = 'http://a.example/items/stream';
  const wrong: [argv: string[], message: RegExp][] = [
    [['-o', 'a'], /the URL of a stream; it got none/],
    [[url], /-o FILE, -o - for standard output, or --into FILE\.sqlite; it got none of them/],
    [[url, 'b', '-o', 'a'], /one URL; it also got "b"/],
    [['items', '-o', 'a'], /a URL such as .*; it got "items"/],
    [['ftp://a.example/items/stream', '-o', 'a'], /http or https/],
    [['http://a.example/', '-o', 'a'], /of \/items\/stream; it got/],
    [['http://key@a.example/items/stream', '-o', 'a'], /no key in the URL; .* --key-file FILE/],
    [[url, '-o', 'a.ndjson.gz'], /writes NDJSON or SQLite; it got "a\.ndjson\.gz"/],
    [[`${url}?format=csv`, '-o', 'a'], /writes NDJSON or SQLite; it got format=csv in the URL.*curl/],
    [[url, '-o', 'a.csv'], /writes NDJSON or SQLite; it got "a\.csv"/],
    [[url, '-o', 'a.parquet'], /it got "a\.parquet".*Parquet from an export/],
    [[url, '-o', 'a.sqlite'], /-o writes NDJSON, and --into keeps a SQLite file; pull got "a\.sqlite"/],
    [[url, '--into', 'a.ndjson'], /-o writes NDJSON, and --into .* pull got "a\.ndjson"/],
    [[url, '-o', 'a', '--parallel', '65'], /--parallel must be an integer from 1 to 64; got "65"/],
    [[url, '-o', '-', '--parallel', '2'], /--parallel requires -o FILE/],
    [[`${url}?sort=price_asc`, '-o', 'a', '--parallel', '2'], /does not support "sort=price_asc"/],
    [[`${url}?limit=5`, '-o', 'a', '--parallel', '2'], /does not support "limit"/],
    [[url, '-o', 'a', '--compression', 'zip'], /--compression must be one of br, gzip, none/],
    [[url, '-o', 'a', '--retry-for', 'ever'], /--retry-for must be an integer/],
    [[url, '-o', 'a', '-o', 'b'], /--output is given twice/],
    [[url, '-o', 'a', '--into', 'b'], /one of -o and --into; it got both/],
    [[url, '--into', 'a', '--parallel', '2'], /--into does not support --parallel/],
    [[`${url}?limit=5`, '-o', 'a', '--follow'], /--follow keeps whole sets; it does not support "limit"/],
    [[url, '--export', '-o', 'a'], /--export takes the URL of an export, such as .*; it got ".*items/],
    [['http://a.example/exports/1', '--export', '-o', '-'], /only the whole file is proved/],
    [['http://a.example/exports/1', '--export'], /--export takes -o FILE/],
    [['http://k@a.example/exports/1', '--export', '-o', 'a'], /no key in the URL/],
    [['http://a.example/exports/1', '--export', '-o', 'a', '--parallel', '2'], /does not support --parallel/],
    [[url, '-o', 'a', '--fast'], /'--fast'/],
  ];
  for (const [argv, message] of wrong) {
    assert.throws(
      () => parsePullArguments(argv),
      (error) => error instanceof UsageError && message.test(error.message),
      argv.join(' '),
    );
  }
});

test('a file that cannot be is refused with what is wrong, and not said to be another run away', async (t) => {
  const home = await temporaryFolder(t);
  const url = 'http://127.0.0.1:1/items/stream'; // no request is sent
  const none = join(home, 'none');
  const key = join(home, 'key');
  await writeFile(key, '\n');
  for (const [argv, message] of [
    [['-o', join(none, 'a')], `there is no folder ${none} for ${join(none, 'a')}`],
    [['-o', join(none, 'a'), '--follow'], `there is no folder ${none} for ${join(none, 'a')}`],
    [['--into', join(none, 'a.db')], `there is no folder ${none} for ${join(none, 'a.db')}`],
    [['-o', home], `${home} is a folder; name a file in it`],
    [['-o', join(key, 'a')], `there is no folder ${key} for ${join(key, 'a')}`],
    [
      ['-o', '-', '--key-file', none],
      `the key file cannot be read: ENOENT: no such file or directory, open '${none}'`,
    ],
    [['-o', join(home, 'a'), '--key-file', key], `the first line of the key file ${key} is empty`],
  ] as const) {
    const { code, text } = await runPullOf([url, ...argv, '--retry-for', '0']);
    assert.deepEqual([code, text], [1, `sluice: ${message}\n`]);
  }
  assert.deepEqual(await readdir(home), ['key'], 'nothing is left behind');
});
