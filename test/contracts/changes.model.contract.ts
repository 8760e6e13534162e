import assert from 'node:assert/strict';
import { AppError } from '../../src/errors.ts';
import { around } from '../../src/store/around.ts';
import { Int32 } from '../../src/store/bson.ts';
import { PartRows } from '../../src/store/part-rows.ts';
import type { Scope } from '../../src/store/scope-predicate.ts';
import { makeBookmark } from '../../src/store/bookmark.ts';
import type { Slots } from '../../src/store/slots.ts';
import type { Collection, Plan } from '../../src/store/store.ts';
import { Follower, nameOf } from '../support/store/following.ts';
import {
  assertSame,
  isEqual,
  isSame,
  copyWithout,
  without,
  type ModelRow,
} from '../support/store/model-rows.ts';
import { below, oneOf, randomFrom, type Random } from '../support/store/random-collection.ts';
import type { Adapter, ContractTest } from './adapters.ts';

/** A set with writers: one of several in a store, whose histories run beside each other. */
export interface ModelSet {
  readonly rows: Collection;
  /** A field of strings with an index. */
  readonly field: string;
  readonly values: readonly string[];
  /** Ids of every type that the set takes. Some are numbers of the same value and of other types. */
  readonly ids: readonly unknown[];
  /** The fewest steps of a history. The most are four times as many. */
  readonly fewestSteps: number;
  /** Whether a row may take the place of one whose id is an equal number of another type: 7.0 for 7. */
  readonly replacesOtherTypes: boolean;
  /** Removes rows, then puts rows, which may replace others. */
  write(removed: readonly unknown[], put: readonly ModelRow[], random: Random): Promise<void>;
  /** Another collection, which is empty, takes the place of this one. */
  replace(random: Random): Promise<void>;
  /** Resolves when reads that begin now return everything that was written. */
  settle(): Promise<void>;
}

export interface ModelSets {
  readonly slots: Slots;
  readonly sets: readonly ModelSet[];
}

/** `part`: how much of the histories this adapter gets. */
export interface ModelAdapter extends Adapter<ModelSets> {
  readonly part: number;
}

const HISTORIES = Number(process.env.HISTORIES ?? (process.env.LONG ? 10_000 : 300));
const FIRST = Number(process.env.SEED ?? 1);
/** Histories of one test, so that a long run shows its progress. */
const GROUP = 1_000;

/**
 * Random writers beside followers that are cut and resumed: each copy equals the set in the end, or what a random key
 * opens of it. No follower gets the key of a row that was never in its part.
 */
export function changeFeedModelContract(test: ContractTest<ModelSets>, { part }: ModelAdapter): void {
  const histories = Math.ceil(HISTORIES * part);
  for (let begun = 0; begun < histories; begun += GROUP) {
    const seeds = Array.from({ length: Math.min(GROUP, histories - begun) }, (_, n) => FIRST + begun + n);
    const title = `the copies of followers equal the set after ${seeds.length} random histories (from seed ${seeds[0]})`;
    test(title, async (opened, t) => {
      const begin = performance.now();
      const tally = { writes: 0, replaced: 0, steps: 0, anew: 0, unready: 0, scoped: 0 };
      await Promise.all(
        opened.sets.map(async (set) => {
          for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift())
            await runHistory(set, seed, tally);
        }),
      );
      assert.equal(opened.slots.taken, 0);
      assert.ok(tally.anew > 0 || histories < 50, 'some followers had to begin anew');
      t.diagnostic(`${JSON.stringify(tally)}, ${Math.round(performance.now() - begin)} ms`);
    });
  }
}

interface Tally {
  writes: number;
  replaced: number;
  steps: number;
  /** How often a follower began anew. */
  anew: number;
  /** How often a call had to be repeated. */
  unready: number;
  /** The followers of parts. */
  scoped: number;
}

async function runHistory(set: ModelSet, seed: number, tally: Tally): Promise<void> {
  const random = randomFrom(seed);
  const writer = new RandomWriter(set, random, tally);
  const followers = [1, 2].map((n) => new RestartedFollower(set, writer, randomFrom(seed * 3 + n), tally));
  try {
    await writer.writeSome(8);
    const steps = set.fewestSteps + below(random, 3 * set.fewestSteps);
    for (let step = 0; step < steps; step++) {
      const acts: (() => Promise<unknown>)[] = followers.map((follower) => () => follower.step());
      if (random() < 0.6) acts.splice(below(random, acts.length + 1), 0, () => writer.step());
      if (random() < 0.5) await Promise.all(acts.map((act) => act()));
      else for (const act of acts) await act();
    }
    await set.settle();
    for (const follower of followers) {
      const copy = await follower.finish();
      const { hidden } = follower;
      const expected = writer.rows().filter((row) => follower.includes(row));
      assertSame(
        copyWithout(copy, hidden),
        expected.map((row) => without(row, hidden)),
      );
    }
    await writer.clear();
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
  }
}

/** Writes into a set and into a model of it. */
class RandomWriter {
  readonly #set: ModelSet;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #ids: readonly unknown[];
  #model: ModelRow[] = [];
  /** The names of the rows that ever had a value. */
  readonly #had = new Map<unknown, Set<string>>();
  #written = 0;
  /** Whether the set may have no collection at this moment. */
  isReplacing = false;

  constructor(set: ModelSet, random: Random, tally: Tally) {
    this.#set = set;
    this.#random = random;
    this.#tally = tally;
    const most = 3 + below(random, 15);
    this.#ids = Array.from({ length: most }, () => oneOf(random, set.ids));
  }

  rows(): readonly ModelRow[] {
    return this.#model;
  }

  hasHad(key: Uint8Array, value: unknown): boolean {
    return this.#had.get(value)?.has(nameOf(key)) === true;
  }

  async step(): Promise<void> {
    const random = this.#random;
    if (random() < 0.03) await this.#replace();
    else await this.writeSome(random() < 0.3 ? 8 : 2);
  }

  /** Some writes, which may be of one row. */
  async writeSome(most: number): Promise<void> {
    const random = this.#random;
    const ids = Array.from({ length: 1 + below(random, most) }, () => oneOf(random, this.#ids));
    if (random() < 0.35) await this.#write(ids, []);
    else await this.#put(ids);
  }

  async clear(): Promise<void> {
    await this.#write(
      this.#model.map(({ _id }) => _id),
      [],
    );
  }

  async #replace(): Promise<void> {
    this.isReplacing = true;
    await this.#set.replace(this.#random);
    this.isReplacing = false;
    this.#model = [];
    this.#tally.replaced++;
  }

  async #put(ids: readonly unknown[]): Promise<void> {
    const { field, values } = this.#set;
    const others = this.#set.replacesOtherTypes
      ? []
      : ids.filter((id) => this.#model.some((row) => isEqual(row._id, id) && !isSame(row._id, id)));
    const distinct = ids.filter((id, n) => ids.findIndex((other) => isEqual(other, id)) === n);
    const made = distinct.map((_id): ModelRow => ({
      _id,
      [field]: oneOf(this.#random, values),
      price: new Int32(below(this.#random, 3)),
      n: new Int32(this.#written++),
    }));
    await this.#write(others, made);
  }

  async #write(removed: readonly unknown[], put: readonly ModelRow[]): Promise<void> {
    if (removed.length + put.length === 0) return;
    for (const row of put) {
      const value = row[this.#set.field];
      const had = this.#had.get(value) ?? new Set();
      this.#had.set(value, had.add(nameOf(makeBookmark({ _id: row._id }))));
    }
    await this.#set.write(removed, put, this.#random);
    const gone = [...removed, ...put.map(({ _id }) => _id)];
    this.#model = [...this.#model.filter(({ _id }) => !gone.some((id) => isEqual(id, _id))), ...put];
    this.#tally.writes += removed.length + put.length;
  }
}

/**
 * A follower that begins anew when its collection was replaced or its place has expired, and for no other reason. It
 * follows the set, the rows of a value, or (`#scope`) what a key opens.
 */
class RestartedFollower {
  readonly #set: ModelSet;
  readonly #random: Random;
  readonly #tally: Tally;
  readonly #value: string | undefined;
  readonly #scope: Scope | null;
  readonly #rows: Collection;
  readonly #writer: RandomWriter;
  #follower: Follower | null = null;

  constructor(set: ModelSet, writer: RandomWriter, random: Random, tally: Tally) {
    this.#set = set;
    this.#writer = writer;
    this.#random = random;
    this.#tally = tally;
    this.#value = random() < 0.6 ? oneOf(random, set.values) : undefined;
    const hide = oneOf(random, [[], ['n']]);
    const isScoped = this.#value !== undefined && random() < 0.5;
    this.#scope = isScoped ? { where: [{ path: set.field, value: this.#value }], hide } : null;
    this.#rows = this.#scope ? this.#rowsOf(this.#scope) : set.rows;
    if (isScoped) tally.scoped++;
  }

  /** The fields that a follower of a part does not see. A change of these alone does not reach it. */
  get hidden(): readonly string[] {
    return this.#scope?.hide ?? [];
  }

  /** The rows of a part, whose changes are checked. */
  #rowsOf(scope: Scope): Collection {
    const { rows, field } = this.#set;
    const part = new PartRows(rows, scope, async (_equals, _plan, signal) => {
      const { indexes } = await rows.describe(signal);
      return indexes.find(({ keys }) => keys[0]?.path === field) ?? assert.fail('there is an index');
    });
    const changes = part.changes ?? assert.fail('the set has changes');
    const read: typeof changes.read = async (...call) => {
      const changed = await changes.read(...call);
      for (const key of changed.keys)
        assert.ok(this.#writer.hasHad(key, this.#value), `${nameOf(key)} was never in the part`);
      return changed;
    };
    return around<Collection>(part, { changes: around(changes, { read }) });
  }

  includes(row: ModelRow): boolean {
    return this.#value === undefined || row[this.#set.field] === this.#value;
  }

  async step(): Promise<void> {
    await this.#try((follower) => follower.step());
    this.#tally.steps++;
  }

  /** The copy when the feed is up to date. */
  async finish(): Promise<ReadonlyMap<string, Buffer>> {
    for (let tries = 1; !(await this.#try((follower) => follower.finish())); tries++)
      assert.ok(tries < 1_000, 'a follower comes to its end');
    return this.#follower?.copy ?? assert.fail();
  }

  /** Returns whether it went well. */
  async #try(act: (follower: Follower) => Promise<void>): Promise<boolean> {
    const { field } = this.#set;
    const isWhole = this.#value === undefined || this.#scope !== null;
    const equals = isWhole ? {} : { equals: [{ path: field, value: this.#value }] };
    const plan: Plan = { sort: '_id', direction: 1, ...equals };
    const wasReplacing = this.#writer.isReplacing;
    const mayBeGone = () => wasReplacing || this.#writer.isReplacing;
    try {
      this.#follower ??= await Follower.begin(this.#rows, plan, this.#random);
      await act(this.#follower);
      return true;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'collection-replaced' || error.code === 'changes-expired') {
        this.#follower = null;
        this.#tally.anew++;
      } else if (error.code === 'store-unfit' && mayBeGone() && this.#follower === null) {
        this.#tally.unready++;
      } else if (error.code === 'store-unavailable') {
        this.#tally.unready++; // the same can be asked for again
      } else throw error;
      return false;
    }
  }
}
