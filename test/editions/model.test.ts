import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { Cutter } from '../../src/base/edition/cut.ts';
import { AppError } from '../../src/base/errors.ts';
import { deltaFile, nameText } from '../../src/base/edition/names.ts';
import { Double, Int32 } from '../../src/store/values/bson.ts';
import { EditionMaker, HOUR_MS, rowsOfEdition, sha256 } from '../support/editions/edition-maker.ts';
import { MemoryObjects } from '../support/editions/memory-objects.ts';
import { twoHandles, type Handle } from '../support/exports/export-worker.ts';
import { SEED } from '../support/seed.ts';
import { makeItem } from '../support/store/items.ts';
import { below, randomFrom } from '../support/store/random-collection.ts';
import { bookmarkOf } from '../../src/store/bookmark.ts';

const HISTORIES = process.env.LONG === '1' ? 200 : 2;
const ROUNDS = 10;
const IDS = 120;

type Random = ReturnType<typeof randomFrom>;

/** Ids of several types, of which some share a place with one of another type. */
function idOf(n: number) {
  if (n % 5 === 0) return `text ${n}`;
  return n % 7 === 0 ? new Double(n) : new Int32(n);
}

async function writeSome({ store }: Handle, random: Random, most: number): Promise<void> {
  const { items } = store;
  for (let n = below(random, most + 1); n > 0; n--) {
    const item = makeItem(
      idOf(below(random, IDS)),
      'b',
      new Int32(below(random, 99)),
      `${below(random, 1e9)}`,
    );
    if (below(random, 3) === 0) await items.remove([bookmarkOf(item.bytes, { sort: '_id' })]);
    else await items.insert([item.bytes], 'replace');
  }
}

/** The rows of an edition and its delta, put into a copy of the edition before. */
function applied(before: Buffer, delta: Buffer): string[] {
  const copy = new Map(linesOf(before).map((line) => [idOfLine(line), line]));
  for (const line of linesOf(delta)) {
    const { removed } = JSON.parse(line) as { readonly removed?: { readonly id: unknown } };
    if (removed) copy.delete(JSON.stringify(removed.id));
    else copy.set(idOfLine(line), line);
  }
  return [...copy.values()].toSorted();
}

const linesOf = (text: Buffer) => text.toString().split('\n').slice(0, -1);
const idOfLine = (line: string) => JSON.stringify((JSON.parse(line) as { readonly id: unknown }).id);

/** The name that a reader computes who has the rows. */
function nameOf(rows: Buffer, target: number): string {
  const cutter = new Cutter(target);
  const names: string[] = [];
  let begin = 0;
  for (let at = cutter.take(rows); at >= 0; at = cutter.take(rows, at)) {
    names.push(sha256(rows.subarray(begin, at)));
    begin = at;
  }
  if (begin < rows.length) names.push(sha256(rows.subarray(begin)));
  return sha256(nameText(names));
}

for (const name of ['sqlite', 'mongodb'] as const)
  test(`${name}: editions of random histories are the rows of their time, whatever ends the making`, async (t) => {
    for (let history = 0; history < HISTORIES; history++) {
      const random = randomFrom(SEED + history);
      const handles = await twoHandles(t, name);
      if (!handles) return;
      const objects = new MemoryObjects();
      const makers = await Promise.all(handles.map((handle) => EditionMaker.open(handle, objects)));
      await runHistory(handles[0], makers, objects, random);
      for (const { slots } of handles) assert.equal(slots.taken, 0);
    }
  });

/** Histories with writers, kills, states that end and changes that are lost. */
async function runHistory(
  writer: Handle,
  makers: readonly EditionMaker[],
  objects: MemoryObjects,
  random: Random,
): Promise<void> {
  let before = { edition: '', rows: Buffer.alloc(0) as Buffer };
  let time = Date.now();
  objects.now = () => time;
  for (let round = 0; round < ROUNDS; round++) {
    const maker = makers[below(random, makers.length)];
    assert.ok(maker);
    await writeSome(writer, random, round === 0 ? IDS : 12);
    const fault = below(random, 5);
    let steps = below(random, 12);
    objects.before = async () => {
      if (below(random, 4) === 0) await writeSome(writer, random, 3);
      if (fault === 1 && steps-- === 0) throw new Error('killed');
    };
    let ends = fault === 2 ? 1 + below(random, 4) : 0; // the read of a state at which it is over
    maker.hooks = {
      snapshot: async (state) => {
        if (below(random, 2) === 0) await writeSome(writer, random, 12);
        return state;
      },
      reads: async () => {
        if (below(random, 3) === 0) await writeSome(writer, random, 2);
        if (ends > 0 && maker.state.length > 0 && --ends === 0)
          throw new AppError('snapshot-expired', 'the state is over');
      },
      ...(fault === 3 && { changes: lost(writer, random) }),
    };
    maker.state = Buffer.alloc(0);
    maker.time = time += HOUR_MS / 4;
    await maker.make();
    const head = await maker.head();
    if (!head) continue;
    const rows = await rowsOfEdition(head, maker.files());
    for (const { edition } of head.kept) await assertThere(edition, maker);
    const isNew = head.edition !== before.edition;
    if (isNew) assert.equal(rows.toString(), maker.state.toString(), 'the rows of the state');
    assert.equal(nameOf(rows, head.target), head.edition);
    const [delta] = head.deltas;
    if (isNew && delta?.from === before.edition) {
      const file = await objects.get(maker.files().pathOf(deltaFile(delta.name)));
      const lines = gunzipSync(file ?? '');
      assert.equal(sha256(lines), delta.name);
      assert.equal(linesOf(lines).length, delta.rows + delta.removed);
      assert.deepEqual(
        applied(before.rows, lines),
        linesOf(rows).toSorted(),
        'the delta leads to the edition',
      );
    }
    before = { edition: head.edition, rows };
  }
  assert.notEqual(before.edition, '');
}

async function assertThere(edition: string, maker: EditionMaker): Promise<void> {
  const head = await maker.files().head(edition);
  assert.ok(head, `the kept edition ${edition}`);
  await rowsOfEdition(head, maker.files());
}

/** Changes of which the first read says that they are lost. */
function lost({ store: { items } }: Handle, random: Random) {
  const { changes } = items;
  assert.ok(changes);
  let times = 1;
  const read: typeof changes.read = (...call) =>
    times-- > 0 && below(random, 2) === 0
      ? Promise.reject(new AppError('changes-expired', 'the log was rolled over'))
      : changes.read(...call);
  return {
    now: (signal: AbortSignal) => changes.now(signal),
    at: (time: bigint) => changes.at(time),
    reaches: (...places: Parameters<typeof changes.reaches>) => changes.reaches(...places),
    lookUp: (...call: Parameters<typeof changes.lookUp>) => changes.lookUp(...call),
    read,
  };
}
