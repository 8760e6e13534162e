import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import { parseImportArguments, runImport } from '../../src/import/command.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { placeOf } from '../../src/process/store-name.ts';
import type { OwnedCollection } from '../../src/store/store.ts';
import { idsIn, linesOf } from '../support/answers.ts';
import { ImportStore, targetOf } from '../support/import/import-store.ts';
import { NEVER } from '../support/store/reading.ts';
import { onServers } from '../support/process/each-server.ts';

const CSV = 'id,category,price\nn1,new,1\nn2,new,2\n';
const OLD = Array.from({ length: 3 }, (_, n) =>
  BSON.serialize({ _id: `old ${n}`, category: 'old', price: n }),
);

interface Run {
  readonly store: Pick<OwnedCollection, 'fill' | 'count'>;
  readonly argv?: readonly string[];
  readonly content?: string;
}

/** Runs an import. The content comes from standard input. */
async function run({ store, argv, content = CSV }: Run) {
  const stderr = new PassThrough({ encoding: 'utf8' });
  const stdin = Readable.from([Buffer.from(content)]);
  const io = { stdin, stderr, isTTY: false, place: 'the shop', signal: NEVER };
  const code = await runImport(
    parseImportArguments(argv ?? ['-', '--into', 'items', '--format', 'csv', '--drop', '--yes']),
    targetOf(store),
    io,
  );
  return { code, text: String(stderr.read() ?? '') };
}

async function filled(): Promise<ImportStore> {
  const store = new ImportStore();
  await store.insert(OLD, 'fail');
  return store;
}

onServers('stores', (test) => {
  test('--drop removes and counts the items, and the file is what the server then has', async (server) => {
    await server.store.items.insert(OLD, 'fail');
    const { code, text } = await run({ store: server.store.items });
    assert.equal(code, 0, text);
    assert.match(text, /^removed 3 rows from the shop\n.*the import finished: 2 rows read, 2 written\n$/s);
    assert.deepEqual(idsIn(await linesOf(server.get('/items/stream'))), ['n1', 'n2']);
    const again = await run({ store: server.store.items });
    assert.match(again.text, /^removed 2 rows/);
    assert.equal(again.code, 0);
  });
});

test('With --drop, a file without a row that can be imported leaves the store as it is', async () => {
  for (const [content, expected, message] of [
    ['id,category,price\n', 1, /nothing was removed, because the source has no rows/],
    ['id,category,prize\n1,a,1\n', 2, /no column "price"/],
    [
      'id,category,price\n1,a,x\n2,b,y\n',
      1,
      /^line 2: column "price": "x" is not a number\n.*\nnothing was removed, because no row can be imported\n$/s,
    ],
  ] as const) {
    const store = await filled();
    const { code, text } = await run({ store, content });
    assert.equal(code, expected, text);
    assert.match(text, message);
    assert.deepEqual([store.size, store.calls.length], [3, 1]);
  }
});

test('An import says that the indexes are made after the rows', async () => {
  const store = await filled();
  const fill: ImportStore['fill'] = (rows, how) => {
    how.onPostponed?.();
    return store.fill(rows, how);
  };
  const { code, text } = await run({
    store: { count: () => store.count(), fill },
    argv: ['--generate', '2', '--drop', '--yes'],
  });
  assert.equal(code, 0, text);
  assert.match(text, /^the indexes are made after the rows; if this import is killed, run it again /);
});

test('--drop needs --yes where there are rows, and says how many it would remove, and from where', async () => {
  const argv = ['--generate', '5', '--drop'];
  const store = await filled();
  const { code, text } = await run({ store, argv });
  assert.deepEqual([code, store.size], [2, 3]);
  assert.equal(text, 'sluice: --drop removes 3 rows from the shop: confirm it with --yes\n');
  assert.equal((await run({ store: new ImportStore(), argv })).code, 0);
});

test('A refusal names the place without a password', () => {
  const places: [uri: string | undefined, place: string][] = [
    [undefined, 'the embedded store in ./data'],
    ['mongodb://user:secret@a:1,b:2/shop?replicaSet=r', 'database shop of MongoDB at a:1,b:2'],
    ['mongodb+srv://cluster.example.org', 'database sluice of MongoDB at cluster.example.org'],
    ['mongodb://user:se%40cret@host/?tls=true', 'database sluice of MongoDB at host'],
  ];
  for (const [uri, place] of places)
    assert.equal(placeOf({ DATA_DIR: './data', ...(uri !== undefined && { MONGODB_URI: uri }) }), place);
});
