import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { openSqlite } from '../../src/store/sqlite/sqlite-store.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { again } from '../support/again.ts';
import { idsIn, linesOf, pagesOf } from '../support/answers.ts';
import { temporaryFolder } from '../support/directory.ts';
import { childServer } from '../support/process/child-server.ts';
import { run, sluice } from '../support/process/commands.ts';
import { onStores } from '../support/process/each-server.ts';
import { provedIn } from '../support/resources/proved.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import type { StoreName } from '../support/process/server.ts';

const LONG = Boolean(process.env.LONG);
/** Streams that are open when a load begins. */
const STREAMS = LONG ? 600 : 200;
/** Of these, streams whose readers read all the time, and begin anew at their ends. */
const READING = STREAMS / 20;
/** Streams whose readers stop behind their first bytes until the load has ended. The others read a piece now and then. */
const PAUSED = STREAMS / 2;
const LOADS = LONG ? 8 : 1;
/** Rows of the first file. Each later one has as many and `MORE`, so that the number tells the files apart. */
const ROWS = LONG ? 6_000 : 2_000;
const MORE = 100;
/** Rows that are written when a load has ended. */
const WRITTEN_AFTER = 5;
/** More than the kernel takes for a client that does not read: some 5 MB a stream. */
const FILL = 'lorem ipsum '.repeat(230);
const PATHS = ['', '?sort=price_desc', '?checkpoints=true', '?checkpoints=true&sort=price_asc'].map(
  (query) => `/orders/stream${query}`,
);

interface Row {
  readonly id: number | string;
  /** The number of the file that has it. Absent: the writer wrote it. */
  readonly file?: number;
}

/** A row that the store has acknowledged. */
interface Acknowledged {
  readonly id: string;
  /** How many loads had ended when it was sent. */
  readonly loads: number;
}

interface Ground {
  readonly settings: Record<string, string>;
  readonly folder: string;
  /** Writes a row as another program does. Resolves when the store has acknowledged it. */
  readonly write: (row: { _id: string; price: number }) => Promise<void>;
}

/** An empty store, and a writer beside the server. Null, and the test skipped, without a mongod. */
async function prepare(t: TestContext, store: StoreName): Promise<Ground | null> {
  const limits = { SAMPLE: 'off', RATE_LIMIT: 'off', STREAM_LIMIT: 'off', STALL_TIMEOUT: '10 min' };
  const folder = await temporaryFolder(t);
  if (store === 'mongodb') {
    const uri = await testMongo(t);
    if (uri === null) return null;
    const orders = testClient(t, uri).db().collection<{ _id: string; price: number }>('orders');
    const write: Ground['write'] = async (row) => {
      await orders.insertOne(row, { writeConcern: { w: 'majority' } });
    };
    return {
      settings: { ...limits, MONGODB_URI: uri, MONGODB_PREFIX: 'own_', EXPOSE: 'orders' },
      folder,
      write,
    };
  }
  const DATA_DIR = join(folder, 'data');
  const opened = await openSqlite({ directory: DATA_DIR, slots: new Slots() });
  t.after(() => opened.close());
  const write: Ground['write'] = async (row) => {
    const orders = await opened.open({ name: 'orders', collection: 'orders', indexes: [['price']] });
    const { written, refused } = await orders.insert([BSON.serialize(row)], 'fail');
    assert.equal(written, 1, refused[0]?.reason);
  };
  return { settings: { ...limits, MONGODB_URI: '', DATA_DIR }, folder, write };
}

/** The file of a number, with keys that all files share. */
async function fileOf(folder: string, file: number): Promise<string> {
  const path = join(folder, `file-${file}.ndjson`);
  const lines = Array.from(
    { length: rowsOf(file) },
    (_, _id) => `${JSON.stringify({ _id, file, price: (_id * 7_919) % 97, fill: FILL })}\n`,
  );
  await writeFile(path, lines);
  return path;
}

function rowsOf(file: number): number {
  return ROWS + file * MORE;
}

/** A stream that has begun. */
interface Stream {
  /** Whether it has brought its first bytes and has not ended. */
  readonly isOpen: boolean;
  readonly ended: Promise<{ readonly isWhole: boolean; readonly bytes: Buffer }>;
  /** Reads no further. */
  pause(): void;
  /** Reads a piece more. */
  step(): void;
  resume(): void;
}

/** Begins a stream. Resolves with its first bytes. */
async function begin(agent: Agent, url: URL): Promise<Stream> {
  const [message] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
  assert.equal(message.statusCode, 200, `${url.pathname} ${message.statusCode}`);
  const pieces: Buffer[] = [];
  const state = { isOpen: true };
  const ended = new Promise<void>((resolve) => message.once('close', () => resolve())).then(() => {
    state.isOpen = false;
    return { isWhole: message.complete, bytes: Buffer.concat(pieces) };
  });
  message.on('error', () => undefined); // a cut: `complete` tells it
  message.on('data', (piece: Buffer) => pieces.push(piece));
  await Promise.race([once(message, 'data'), ended]);
  return {
    get isOpen() {
      return state.isOpen;
    },
    ended,
    pause: () => message.pause(),
    step: () => message.once('data', () => message.pause()).resume(),
    resume: () => message.resume(),
  };
}

/** The rows of a stream that ended, and whether they are proved to be all. */
function rowsIn(bytes: Buffer, isWhole: boolean, path: string) {
  if (path.includes('checkpoints')) {
    const { rows, ended, error } = provedIn(bytes);
    assert.ok(isWhole || !ended, 'an answer that is cut behind its last line has no end');
    assert.ok(!isWhole || ended || error, `a clean end without a proof: ${bytes.subarray(-200).toString()}`);
    return { isWhole: ended, rows: rows.map((row) => JSON.parse(row.toString()) as Row) };
  }
  const lines = bytes.toString().split('\n');
  lines.pop(); // nothing, or what came of the last row
  return { isWhole, rows: lines.map((line) => JSON.parse(line) as Row) };
}

/** What a client may have: rows of one file, each once, and when the stream is whole all of them and all that was written. */
class Judge {
  readonly acknowledged: Acknowledged[] = [];
  /** Ids that later loads have removed. They are told apart when all streams have ended. */
  readonly #missing: string[] = [];
  whole = 0;
  cut = 0;

  judge(path: string, { isWhole, bytes }: { isWhole: boolean; bytes: Buffer }, written: number): void {
    const found = rowsIn(bytes, isWhole, path);
    const files = new Set(found.rows.flatMap(({ file }) => (file === undefined ? [] : [file])));
    assert.ok(files.size <= 1, `${path} has rows of the files ${[...files].join()}`);
    const ids = new Set(found.rows.map(({ id }) => id));
    assert.equal(ids.size, found.rows.length, `${path} has a row twice`);
    if (!found.isWhole) {
      this.cut++;
      return;
    }
    this.whole++;
    const [file = assert.fail(`${path} ended without a row of a file`)] = files;
    const ofFile = found.rows.filter((row) => row.file === file).length;
    assert.equal(ofFile, rowsOf(file), `${path} ended with a part of file ${file}`);
    for (const { id, loads } of this.acknowledged.slice(0, written))
      if (loads === file) assert.ok(ids.has(id), `${path}: ${id} was written into the rows of file ${file}`);
      else if (!ids.has(id)) this.#missing.push(id);
  }

  /** What was acknowledged is there, but for what a load removed with the rows of before: these are the first ones. */
  assertKept(rows: ReadonlySet<unknown>, removed: number | null): void {
    const kept = this.acknowledged.findIndex(({ id }) => rows.has(id));
    assert.ok(kept >= 0, 'what was written behind the load is there');
    for (const { id } of this.acknowledged.slice(kept)) assert.ok(rows.has(id), `${id} is lost`);
    if (removed !== null) assert.equal(kept, removed, 'rows that were not removed with those of before');
    const gone = new Set(this.acknowledged.slice(0, kept).map(({ id }) => id));
    assert.deepEqual(
      this.#missing.filter((id) => !gone.has(id)),
      [],
      'rows that only some streams lack',
    );
  }
}

onStores(prepare, (test, store) => {
  test(`${LOADS} loads beside ${STREAMS} streams and two writers: each stream is of one state or cut, and no acknowledged write is lost`, async (ground, t) => {
    const { settings, folder, write } = ground;
    await run(['import', await fileOf(folder, 0), '--into', 'orders', '--index', 'price'], settings);
    const { url } = await childServer(t, settings);
    const agent = new Agent();
    const judge = new Judge();
    const state = { loads: 0, sent: 0, removed: 0 };
    /** With each row that is written, one of them reads on. */
    const stepping: Stream[] = [];
    const stream = async (n: number): Promise<{ stream: Stream; isJudged: Promise<void> }> => {
      const path = PATHS[n % PATHS.length] ?? assert.fail();
      const written = judge.acknowledged.length;
      const stream = await begin(agent, new URL(path, url));
      return { stream, isJudged: stream.ended.then((end) => judge.judge(path, end, written)) };
    };
    const rows = again(async () => {
      const { loads } = state;
      const id = `written ${String(state.sent++).padStart(6, '0')}`;
      await write({ _id: id, price: state.sent % 97 });
      judge.acknowledged.push({ id, loads });
      stepping[state.sent % Math.max(1, stepping.length)]?.step();
    });
    const users: string[] = [];
    const people = again(async () => {
      const id = `user-${users.length}`;
      const body = JSON.stringify({ name: id, email: 'somebody@example.org' });
      const headers = { 'content-type': 'application/json' };
      const { status } = await fetch(new URL(`/api/users/${id}`, url), { method: 'PUT', headers, body });
      assert.equal(status, 201, id);
      users.push(id);
    });

    for (let file = 1; file <= LOADS; file++) {
      const path = await fileOf(folder, file);
      const held = await Promise.all(
        Array.from({ length: STREAMS - READING }, async (_, n) => {
          const one = await stream(n);
          one.stream.pause();
          return one;
        }),
      );
      stepping.push(...held.slice(PAUSED).map((one) => one.stream));
      const begun: Promise<unknown>[] = [];
      const readers = Array.from({ length: READING }, (_, n) =>
        again(async () => {
          const beginning = stream(n);
          begun[n] ??= beginning;
          await (
            await beginning
          ).isJudged;
        }),
      );
      await Promise.all(begun);
      const open = held.filter((one) => one.stream.isOpen).length;
      const { code, said } = await sluice(['import', path, '--into', 'orders', '--drop', '--yes'], settings);
      assert.equal(code, 0, said);
      state.loads = file;
      const removed = Number(/removed ([\d,]+) rows/.exec(said)?.[1]?.replaceAll(',', ''));
      state.removed += removed - rowsOf(file - 1);
      const behind = judge.acknowledged.length + WRITTEN_AFTER;
      const now = await linesOf(fetch(new URL('/orders/stream', url)));
      assert.equal(now.filter((line) => line.includes(`"file":${file},`)).length, rowsOf(file), said);
      await Promise.all(readers.map((reader) => reader.end()));
      stepping.length = 0;
      held.forEach((one) => one.stream.resume());
      await Promise.all(held.map((one) => one.isJudged));
      await rows.until(() => judge.acknowledged.length >= behind);
      t.diagnostic(
        `load ${file}: ${open} streams held open, ${judge.whole} whole and ${judge.cut} cut so far, ${judge.acknowledged.length} rows and ${users.length} users written; ${said.split('\n')[0]}`,
      );
    }
    await Promise.all([rows.end(), people.end()]);
    assert.ok(judge.cut > 0 && judge.whole > 0, `${judge.cut} cut, ${judge.whole} whole`);
    const kept = new Set(idsIn(await linesOf(fetch(new URL('/orders/stream', url)))));
    judge.assertKept(kept, store === 'sqlite' ? state.removed : null);
    const byPrice = idsIn(await linesOf(fetch(new URL('/orders/stream?sort=price_desc', url))));
    assert.deepEqual(new Set(byPrice), kept);
    const ofUsers = new Set<unknown>();
    const get = (path: string) => fetch(new URL(path, url));
    for await (const { data } of pagesOf<{ id: string }>({ get }, '/api/users?limit=1000'))
      for (const { id } of data) ofUsers.add(id);
    assert.deepEqual(
      users.filter((id) => !ofUsers.has(id)),
      [],
    );
  });
});
