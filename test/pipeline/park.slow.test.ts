import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from '../support/fast-check.ts';
import type { Framing, RowEncoder } from '../../src/rows/rows.ts';
import { createTranscoder } from '../../src/rows/transcoder.ts';
import { noneOf } from '../../src/store/batch.ts';
import { keyOf, type Bookmark } from '../../src/store/bookmark.ts';
import { BSON } from '../../src/store/values/bson.ts';
import { chain, chainAfter, FIRST_BATCH } from '../../src/pipeline/chain.ts';
import type { Plan } from '../../src/store/store.ts';
import { CheckpointEncoder } from '../../src/pipeline/checkpoints.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { withHeartbeats } from '../../src/pipeline/heartbeats.ts';
import { pump } from '../../src/pipeline/pump.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import { testSqlite } from '../support/store/sqlite/sqlite.ts';
import { NEVER } from '../support/store/reading.ts';

const ROWS = 1200;
/** Of a stream that stalls: the encoder's own state and its output, and no batch. */
const MOST_HELD = 2;

/** Short and long, flat and nested rows, so that stalls hit every state of the transcoder. */
function makeRow(n: number): Uint8Array {
  const long = n % 50 === 0 ? 'é"\n'.repeat(3000) : 'x'.repeat(n % 90);
  const nested = { list: [n, { deep: long, at: new Date(n) }], empty: {} };
  return BSON.serialize({ category: 'c', price: n % 7, long, nested, bytes: Buffer.alloc(n % 40), _id: n });
}

/** A sink where some writes stall, as long as `stalled` takes. */
function stallingSink(stalls: ReadonlySet<number>, stalled: () => Promise<void>) {
  const chunks: Buffer[] = [];
  let writes = 0;
  const sink: Sink = {
    chunkBytes: 700,
    signal: NEVER,
    write(chunk) {
      chunks.push(Buffer.from(chunk));
      if (stalls.has(writes++)) return stalled();
    },
    flush: () => undefined,
    end: () => undefined,
    fail: () => undefined,
  };
  return { sink, text: () => Buffer.concat(chunks) };
}

/** The cursor of a checkpoint here: the id of the row that it continues after. */
function idOf(bookmark: Bookmark): string {
  return String(keyOf(bookmark)._id);
}

/** The row lines of a stream with checkpoints. Checks each control line against the rows before it. */
function checkedRows(text: Buffer): Buffer {
  const rows: string[] = [];
  let controls = 0;
  for (const line of text.toString().split('\n').slice(0, -1)) {
    if (line.startsWith('{"id":')) {
      rows.push(`${line}\n`);
      continue;
    }
    const [tally] = Object.values(JSON.parse(line) as Record<string, Record<string, unknown>>);
    const before = Buffer.from(rows.join(''));
    const last = String((JSON.parse(rows.at(-1) ?? '{}') as { id: number }).id);
    const crc = crc32(before).toString(16).padStart(8, '0');
    assert.deepEqual(tally, { cursor: last, rows: rows.length, bytes: before.length, crc32: crc });
    controls++;
  }
  assert.ok(controls > 0);
  return Buffer.from(rows.join(''));
}

test('a stream that stalls at any byte releases its batches and continues with the very next byte', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store, slots } = await testSqlite(t);
  const documents = Array.from({ length: ROWS }, (_, n) => makeRow(n));
  await store.items.insert(documents, 'fail');
  const transcoder = createTranscoder(slots);

  let time = 0;
  const run = async (
    encoder: RowEncoder,
    plan: Plan,
    limit: number,
    stalls: ReadonlySet<number>,
  ): Promise<{ text: Buffer; rows: number; held: number[] }> => {
    const held: number[] = [];
    const { sink, text } = stallingSink(stalls, async () => {
      await nextTurn();
      t.mock.timers.tick(1); // the pump's own timer
      for (let turns = 0; slots.taken > MOST_HELD && turns < 1_000; turns++) await nextTurn();
      held.push(slots.taken);
    });
    const first = await store.items.read(plan, {}, { ...FIRST_BATCH, rows: Math.min(250, limit) }, NEVER);
    const rows = await pump(
      {
        first: chain(store.items, plan, first, limit, NEVER),
        again: {
          plan,
          after: (bookmark, given) => chainAfter(store.items, plan, bookmark, limit - given, NEVER),
        },
        parkAfterMs: 1,
      },
      encoder,
      { head: '', tail: () => (encoder instanceof CheckpointEncoder ? encoder.end() : '') },
      sink,
    );
    return { text: text(), rows, held };
  };

  const plans = fc.record({
    sort: fc.constantFrom('_id', 'price'),
    direction: fc.constantFrom(1 as const, -1 as const),
  });
  const property = fc.asyncProperty(
    fc.constantFrom<Framing>('lines', 'array'),
    fc.boolean(),
    plans,
    fc.constantFrom(1, 250, 777, Infinity),
    fc.array(fc.nat(900), { minLength: 1, maxLength: 5 }),
    async (framing, checkpoints, plan, limit, stalls) => {
      const encoder = (): RowEncoder => {
        const rows = transcoder.encoder(framing);
        if (!checkpoints || framing !== 'lines') return rows;
        // A clock in seconds makes control lines frequent, at places that the stalls determine.
        return new CheckpointEncoder(rows, { plan, cursorOf: idOf, start: null, now: () => (time += 700) });
      };
      const whole = await run(encoder(), plan, limit, new Set());
      const stalled = await run(encoder(), plan, limit, new Set([0, ...stalls]));
      const lines = checkpoints && framing === 'lines';
      const text = lines ? checkedRows(stalled.text) : stalled.text;
      assert.ok(text.equals(lines ? checkedRows(whole.text) : whole.text), 'the same bytes');
      assert.equal(stalled.rows, whole.rows);
      assert.ok(stalled.held.length > 0);
      for (const held of stalled.held) assert.ok(held <= MOST_HELD, `${held} slots are taken`);
    },
  );
  await fc.assert(property, { numRuns: process.env.LONG ? 2000 : 25 });
  assert.equal(slots.taken, 0);
});

test('while the store is slow, a checkpoint covers the rows that were sent', async (t) => {
  const { store, slots } = await testSqlite(t);
  await store.items.insert(
    Array.from({ length: 600 }, (_, n) => makeRow(n)),
    'fail',
  );
  const plan: Plan = { sort: '_id', direction: 1 };
  const read = (rows: number, after?: Bookmark) =>
    store.items.read(plan, after ? { after } : {}, { rows, bytes: 1e9 }, NEVER);
  const written: string[] = [];
  let sawCheckpoint: () => void = () => undefined;
  const checkpoint = new Promise<void>((resolve) => (sawCheckpoint = resolve));
  const { sink } = stallingSink(new Set(), () => Promise.resolve());
  const first = await read(250);
  const slow = async function* () {
    yield first;
    await checkpoint; // the store answers only then
    yield await read(1000, first.last ?? undefined);
  };
  const lines = createTranscoder(slots).encoder('lines', undefined);
  const encoder = new CheckpointEncoder(lines, { plan, cursorOf: idOf, start: null, now: () => 0 });
  const rows = await pump(
    { first: withHeartbeats(slow(), noneOf(first), 5) },
    encoder,
    { head: '', tail: () => encoder.end() },
    {
      ...sink,
      write: (chunk) => {
        written.push(Buffer.from(chunk).toString());
        if (written.at(-1)?.startsWith('{"checkpoint"') === true) sawCheckpoint();
      },
    },
  );
  assert.equal(rows, 600);
  assert.ok(checkedRows(Buffer.from(written.join(''))).length > 0);
  assert.equal(slots.taken, 0);
});
