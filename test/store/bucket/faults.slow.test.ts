import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { AppError } from '../../../src/base/errors.ts';
import { BucketFiles } from '../../../src/store/bucket/files.ts';
import { FileGoneError, type FileStore } from '../../../src/store/files.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { filesAt, keysAt, newFiles, placeOf } from '../../support/store/bucket/bucket.ts';
import {
  faultyGateway,
  firstOf,
  IS,
  type Fault,
  type FaultyGateway,
} from '../../support/store/bucket/gateway.ts';
import { READER, Seaweed } from '../../support/store/bucket/seaweed.ts';
import { shared } from '../../support/tests-with.ts';

type Options = Partial<ConstructorParameters<typeof BucketFiles>[1]>;
/** Silence is noticed sooner than by default, and never while a slow machine works. */
const QUICK: Options = { idleMs: 5_000 };
/** Three parts, and a part of a fourth one. */
const LARGE = randomBytes(3 * 8 * 1024 * 1024 + 100_000);
const SMALL = randomBytes(200_000);

const seaweed = shared((t) => Seaweed.start(t));

interface Behind {
  readonly files: BucketFiles;
  readonly gateway: FaultyGateway;
  /** The same files for one that tries each request once. */
  readonly once: BucketFiles;
  /** The same files without the gateway. */
  readonly direct: BucketFiles;
  readonly keys: ReturnType<typeof keysAt>;
}

/** Files in a new place behind a gateway that makes faults. null: there is no store here. */
async function behind(t: TestContext, options: Options = QUICK, settings = {}): Promise<Behind | null> {
  const store = await seaweed(t);
  if (!store) return null;
  const gateway = await faultyGateway(t, store.endpoint);
  const place = await newFiles(store, gateway.endpoint);
  const open = (FILES: string, more = {}, how: Options = options) => {
    const files = new BucketFiles(placeOf({ FILES, ...more }), {
      folder: () => Promise.resolve('id0'),
      ...how,
    });
    t.after(() => files.close());
    return files;
  };
  const once = open(place, settings, { retryMs: 0 });
  const direct = place.replace(encodeURIComponent(gateway.endpoint), encodeURIComponent(store.endpoint));
  return { files: open(place, settings), once, gateway, direct: open(direct), keys: keysAt(t, direct) };
}

async function write(files: FileStore, name: string, bytes: Buffer, signal?: AbortSignal): Promise<void> {
  const writer = await files.create(name, signal);
  try {
    for (let at = 0; at < bytes.length; at += 500_000) await writer.write(bytes.subarray(at, at + 500_000));
    await writer.finish();
  } finally {
    await writer.close();
  }
}

async function read(files: FileStore, name: string, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of files.read(name, 0, length)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

const isCode =
  (code: AppError['code'], words = /./) =>
  (error: unknown) =>
    error instanceof AppError && error.code === code && words.test(error.message);

const SLOW_DOWN: Fault = { status: 503, code: 'SlowDown' };
/** Faults that pass, at each kind of request of a write. */
const PASSING: readonly [string, keyof typeof IS, Fault][] = [
  ...(['begin', 'part', 'complete', 'put'] as const).flatMap((kind): [string, keyof typeof IS, Fault][] => [
    ['a refused connection', kind, 'refuse'],
    ['503', kind, SLOW_DOWN],
    ['a lost answer', kind, 'lose'],
    ['silence', kind, 'hang'],
  ]),
  ['a cut in the middle', 'part', 'cut'],
  ['a changed byte', 'part', 'flip'],
  ['a cut in the middle', 'put', 'cut'],
  ['a changed byte', 'put', 'flip'],
  ['an error in an answer of 200', 'complete', { status: 200, code: 'InternalError' }],
];

for (const [name, kind, fault] of PASSING)
  test(`${name} at '${kind}': the file is whole all the same, and nothing is left beside it`, async (t) => {
    const opened = await behind(t);
    if (!opened) return;
    const { files, gateway, direct, keys } = opened;
    const bytes = kind === 'put' ? SMALL : LARGE;
    const decide = firstOf(1, IS[kind], fault);
    let struck = false;
    gateway.decide = (seen) => {
      const chosen = decide(seen);
      struck ||= chosen !== null;
      return chosen;
    };
    await write(files, 'a.b', bytes);
    assert.ok(struck);
    assert.ok((await read(direct, 'a.b', bytes.length)).equals(bytes));
    assert.deepEqual(
      (await keys()).map((key) => key.replace(/^.*\//, '')),
      ['a.b'],
      'no upload is left of a file that is whole',
    );
    await files.remove('a.b');
    assert.deepEqual(await direct.names(), []);
  });

test('an upload whose completion was done and lost is a file, and one that is gone without a file is told', async (t) => {
  const opened = await behind(t);
  if (!opened) return;
  const { files, gateway, direct } = opened;
  for (const first of ['lose', 'refuse'] as const) {
    const faults: Fault[] = [first, { status: 404, code: 'NoSuchUpload' }]; // as MinIO and R2 say
    gateway.decide = (seen) => (IS.complete(seen) ? (faults.shift() ?? null) : null);
    const written = write(files, 'a.b', LARGE);
    if (first === 'refuse') await assert.rejects(written, isCode('store-unavailable', /NoSuchUpload/));
    else await written;
    assert.equal(await direct.size('a.b'), first === 'refuse' ? null : LARGE.length);
    await direct.remove('a.b');
  }
});

test('a download goes on behind cuts, refusals and 503, and gives up while nothing comes', async (t) => {
  const opened = await behind(t);
  if (!opened) return;
  const { files, once, gateway, direct } = opened;
  await write(direct, 'a.b', LARGE);
  const faults: (Fault | null)[] = ['cut-answer', 'refuse', 'cut-answer', SLOW_DOWN, 'hang', 'cut-answer'];
  gateway.decide = (seen) => (IS.get(seen) ? (faults.shift() ?? null) : null);
  assert.ok((await read(files, 'a.b', LARGE.length)).equals(LARGE));
  assert.equal(faults.length, 0);
  gateway.decide = () => 'refuse';
  await assert.rejects(read(once, 'a.b', LARGE.length), isCode('store-unavailable'));
  await assert.rejects(once.size('a.b'), isCode('store-unavailable'));
  await assert.rejects(once.names(), isCode('store-unavailable'));
  await assert.rejects(files.ping(), isCode('store-unavailable'));
  gateway.decide = () => null;
  await files.ping();
  await files.remove('a.b');
  await assert.rejects(read(files, 'a.b', 10), FileGoneError);
});

test('a signal ends a write at once, whatever it waits for, with its reason', async (t) => {
  const opened = await behind(t, {});
  if (!opened) return;
  const { files, gateway } = opened;
  const reason = new Error('the server stops');
  for (const fault of ['hang', 'refuse'] as const) {
    const stop = new AbortController();
    let tried = 0;
    gateway.decide = (seen) => {
      if (!IS.part(seen)) return null;
      if (++tried >= (fault === 'hang' ? 1 : 3)) stop.abort(reason);
      return fault;
    };
    await assert.rejects(write(files, 'a.b', LARGE, stop.signal), reason);
    gateway.decide = () => null;
    assert.deepEqual(await files.names('a'), ['a.b'], 'what was begun is listed');
    await files.remove('a.b');
    assert.deepEqual(await files.names(), []);
  }
});

test('a close ends what waits for a bucket that is away', async (t) => {
  const opened = await behind(t, {});
  if (!opened) return;
  const { files, gateway } = opened;
  for (const fault of ['refuse', 'hang'] as const) {
    gateway.decide = () => {
      setImmediate(() => {
        files.close();
      });
      return fault;
    };
    const began = performance.now();
    await assert.rejects(files.remove('a.b'), isCode('store-unavailable'));
    assert.ok(performance.now() - began < 10_000, 'without it: 30 s');
  }
});

test('a clock that is 20 minutes off signs by the time of the store', async (t) => {
  for (const offMs of [20 * 60_000, -20 * 60_000]) {
    const opened = await behind(t, { now: () => Date.now() + offMs });
    if (!opened) return;
    const { files } = opened;
    await write(files, 'a.b', LARGE);
    assert.ok((await read(files, 'a.b', LARGE.length)).equals(LARGE));
    const linked = await fetch(files.link('a.b', { seconds: 30, headers: {} }));
    assert.ok(Buffer.from(await linked.arrayBuffer()).equals(LARGE), `${offMs} ms`);
  }
});

test('credentials of files are read again when the store refuses them, and nothing shows them', async (t) => {
  const folder = await temporaryFolder(t);
  const file = join(folder, 'secret');
  await writeFile(file, 'of-yesterday\n');
  const settings = { S3_SECRET_ACCESS_KEY: undefined, S3_SECRET_ACCESS_KEY_FILE: file };
  const opened = await behind(t, { ...QUICK, retryMs: 300 }, settings);
  if (!opened) return;
  const { files } = opened;
  await assert.rejects(write(files, 'a.b', SMALL), (error) => {
    assert.ok(isCode('store-unavailable', /SignatureDoesNotMatch/)(error));
    assert.doesNotMatch(JSON.stringify([String(error), String((error as Error).cause)]), /of-yesterday/);
    return true;
  });
  await writeFile(file, 'admin-secret\n');
  await write(files, 'a.b', SMALL);
  assert.equal(await files.size('a.b'), SMALL.length);
});

test('temporary credentials send their token in every request and in links, signed', async (t) => {
  const opened = await behind(t, { retryMs: 0 }, { S3_SESSION_TOKEN: 'a-token/+=' });
  if (!opened) return;
  const { files, gateway } = opened;
  gateway.decide = () => ({ status: 200, code: 'None' });
  await files.remove('a.b').catch(() => undefined);
  assert.ok(gateway.seen.length > 0);
  for (const { headers } of gateway.seen) {
    assert.equal(headers['x-amz-security-token'], 'a-token/+=');
    assert.match(String(headers.authorization), /SignedHeaders=[^,]*x-amz-security-token/);
  }
  const link = new URL(files.link('a.b', { seconds: 30, headers: {} }));
  assert.equal(link.searchParams.get('X-Amz-Security-Token'), 'a-token/+=');
});

test('a bucket that is missing or read only is refused by its reason, and no file is taken for lost', async (t) => {
  const store = await seaweed(t);
  if (!store) return;
  const open = (FILES: string, keys = {}) => {
    const place = placeOf({ FILES, ...keys });
    const files = new BucketFiles(place, { folder: () => Promise.resolve('id0'), ...QUICK });
    t.after(() => files.close());
    return files;
  };
  const missing = open(filesAt('there-is-none', store.endpoint));
  const isMissing = isCode('insufficient-storage', /NoSuchBucket/);
  await assert.rejects(write(missing, 'a.b', SMALL), isMissing);
  await assert.rejects(missing.size('a.b'), isMissing);
  await assert.rejects(read(missing, 'a.b', 1), isMissing);
  await assert.rejects(missing.ping(), isMissing);
  const place = await newFiles(store);
  await write(open(place), 'a.b', SMALL);
  const readOnly = open(place, READER);
  await readOnly.ping();
  assert.equal(await readOnly.size('a.b'), SMALL.length);
  const isRefused = isCode('insufficient-storage', /AccessDenied/);
  await assert.rejects(write(readOnly, 'a.c', SMALL), isRefused);
  await assert.rejects(readOnly.remove('a.b'), isRefused);
});

test('a volume server and the gateway are killed in the middle of an upload and of a download', async (t) => {
  const store = await Seaweed.start(t);
  if (!store) return;
  const place = placeOf({ FILES: await newFiles(store) });
  const files = new BucketFiles(place, { folder: () => Promise.resolve('id0'), retryMs: 60_000 });
  t.after(() => files.close());
  const writer = await files.create('a.b');
  const [victim = ''] = Seaweed.VOLUMES;
  const killing = [() => store.kill(victim), () => store.restart('gateway')];
  for (let at = 0; at < LARGE.length; at += 1_000_000) {
    await writer.write(LARGE.subarray(at, at + 1_000_000));
    if (at === 9_000_000 || at === 18_000_000) await killing.shift()?.();
  }
  assert.equal(killing.length, 0);
  await writer.finish();
  await writer.close();
  await store.restart(victim);
  const chunks: Buffer[] = [];
  let killed = false;
  for await (const chunk of files.read('a.b', 0, LARGE.length)) {
    chunks.push(Buffer.from(chunk));
    if (!killed) await store.restart('gateway');
    killed = true;
  }
  assert.ok(Buffer.concat(chunks).equals(LARGE));
  assert.deepEqual(await files.names(), ['a.b']);
});
