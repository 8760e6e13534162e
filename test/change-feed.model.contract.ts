import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BSON, Int32 } from '../src/store/bson.ts';
import { makeBookmark } from '../src/store/bookmark.ts';
import type { Plan } from '../src/store/store.ts';
import type { OpenFeed, OpenFeedForTest } from './change-feed.contract.ts';
import { compareBson } from './support/bson-order.ts';
import { Follower, nameOf } from './support/following.ts';
import { below, oneOf, randomFrom, type Random } from './support/random-collection.ts';

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.LONG ? 5_000 : 12));
/** Histories of one test, so that a failure names its seed soon. */
const GROUP = Math.max(6, HISTORIES / 40);
const STEPS = 50;
const FOLLOWERS = 4;

/** Random writers beside followers that are cut and resumed: each copy equals the set in the end. */
export function changeFeedModelContract(name: string, open: OpenFeedForTest): void {
  const first = Number(process.env.SEED ?? 1);
  for (let begin = first; begin < first + HISTORIES; begin += GROUP)
    test(`${name}: the copy of each follower equals the set after random writes, cuts and resumes (seeds from ${begin})`, async (t) => {
      const opened = await open(t);
      if (!opened) return;
      for (let seed = begin; seed < Math.min(begin + GROUP, first + HISTORIES); seed++)
        await runHistory(opened, seed);
      assert.equal(opened.slots.taken, 0);
    });
}

async function runHistory(opened: OpenFeed, seed: number): Promise<void> {
  const random = randomFrom(seed);
  const { rows, field, values } = opened;
  const writer = new RandomWriter(opened, random);
  await writer.writeSome(30);
  const plans: Plan[] = Array.from({ length: FOLLOWERS }, (_, n) => ({
    ...{ sort: '_id', direction: 1 },
    ...(n % 2 === 1 && { equals: [{ path: field, value: oneOf(random, values) }] }),
  }));
  const followers: Follower[] = [];
  for (let step = 0; step < STEPS; step++) {
    const plan = step % 5 === 0 ? plans[followers.length] : undefined;
    if (plan) followers.push(await Follower.begin(rows, plan, random));
    if (random() < 0.4) await writer.writeSome(1 + below(random, 4));
    for (const follower of followers) await follower.step();
  }
  for (const [n, follower] of followers.entries()) {
    await follower.finish();
    const { equals } = plans[n] ?? assert.fail();
    const expected = writer
      .rows()
      .filter((row) => equals?.every(({ path, value }) => row[path] === value) ?? true);
    assertSame(follower.copy, expected, `seed ${seed}, follower ${n}`);
  }
  await writer.clear();
}

type Row = Readonly<Record<string, unknown>> & { readonly _id: unknown };

/** Writes into a set and into a model of it. */
class RandomWriter {
  readonly #opened: OpenFeed;
  readonly #random: Random;
  #model: Row[] = [];
  #written = 0;

  constructor(opened: OpenFeed, random: Random) {
    this.#opened = opened;
    this.#random = random;
  }

  rows(): readonly Row[] {
    return this.#model;
  }

  /** Some writes, which may be of one row. */
  async writeSome(most: number): Promise<void> {
    const { ids } = this.#opened;
    const random = this.#random;
    const writes = Array.from({ length: 1 + below(random, most) }, () => oneOf(random, ids));
    if (random() < 0.35) await this.#remove(writes);
    else await this.#put(writes);
  }

  async clear(): Promise<void> {
    await this.#remove(this.#model.map(({ _id }) => _id));
  }

  async #put(ids: readonly unknown[]): Promise<void> {
    const { rows, field, values } = this.#opened;
    // A row of another type of number is another row to a client: 7 must go before 7.0 comes.
    const others = ids.filter((id) =>
      this.#model.some((row) => isEqual(row._id, id) && !isSame(row._id, id)),
    );
    if (others.length > 0) await this.#remove(others);
    const distinct = ids.filter((id, n) => ids.findIndex((other) => isEqual(other, id)) === n);
    const made = distinct.map((_id): Row => ({
      _id,
      [field]: oneOf(this.#random, values),
      price: new Int32(1),
      n: this.#written++,
    }));
    const { refused } = await rows.insert(
      made.map((row) => BSON.serialize(row)),
      'replace',
    );
    assert.deepEqual(refused, []);
    this.#model = [...this.#without(distinct), ...made];
  }

  async #remove(ids: readonly unknown[]): Promise<void> {
    const kept = this.#without(ids);
    const keys = ids.map((_id) => makeBookmark({ _id }));
    assert.equal(await this.#opened.rows.remove?.(keys), this.#model.length - kept.length);
    this.#model = kept;
  }

  #without(ids: readonly unknown[]): Row[] {
    return this.#model.filter(({ _id }) => !ids.some((id) => isEqual(id, _id)));
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  return compareBson(a, b) === 0;
}

function isSame(a: unknown, b: unknown): boolean {
  return Buffer.compare(makeBookmark({ _id: a }), makeBookmark({ _id: b })) === 0;
}

function assertSame(copy: ReadonlyMap<string, Buffer>, expected: readonly Row[], told: string): void {
  const wanted = new Map(expected.map((row) => [nameOf(BSON.serialize(row)), BSON.serialize(row)]));
  const shown = (row: Uint8Array | undefined) =>
    row ? BSON.EJSON.stringify(BSON.deserialize(row)) : 'nothing';
  for (const [name, row] of wanted)
    if (!copy.get(name)?.equals(row))
      assert.fail(`${told}: ${shown(row)} is ${shown(copy.get(name))} in the copy`);
  for (const [name, row] of copy)
    if (!wanted.has(name)) assert.fail(`${told}: ${shown(row)} stayed in the copy`);
}
