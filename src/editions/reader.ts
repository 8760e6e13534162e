import { AppError } from '../base/errors.ts';
import { chain, NEXT_BATCH } from '../pipeline/chain.ts';
import type { Resource } from '../resources/query/resource.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { Identity } from '../store/bookmark.ts';
import type { ChangeFeed, FeedPlace } from '../store/change-feed.ts';
import type { RowReader, Snapshot } from '../store/collection.ts';
import type { Plan } from '../store/plan.ts';
import type { ChunkFiles } from './chunk-files.ts';
import type { DeltaLines } from './delta-lines.ts';
import type { Attempt } from './meter.ts';
import type { Ranges, Run } from './ranges.ts';
import { RowCutter, type CutRows } from './row-cutter.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
const KEYS_A_READ = 1_000;
/** How long a read of changes waits for those that are known to come. Milliseconds. */
const WAIT_MS = 200;
/** How long a walk goes on between looks at what changed, and how long such a look goes on. Milliseconds. */
const WALK_MS = 5_000;
const DRAIN_MS = 1_000;
/** Chunks that are packed and stored while rows are read. */
const UNDER_WAY = 2;
/** Rows of a read behind the end that was expected. */
const FEW_ROWS = 1_000;

interface ReaderOptions {
  readonly resource: Resource;
  readonly feed: ChangeFeed;
  readonly transcoder: Transcoder;
  readonly files: ChunkFiles;
  readonly ranges: Ranges;
  readonly target: number;
  readonly signal: AbortSignal;
  /** The place up to which changes are marked in the ranges, and the collection that they are of. */
  readonly place: FeedPlace;
  readonly identity: Identity | undefined;
  /** From the edition before. Null: it is not known what changed since. */
  readonly delta: DeltaLines | null;
  /** Called at each rest of a walk, with all that it has read stored, so that another process can go on there. */
  readonly walked: (place: FeedPlace) => Promise<void>;
  readonly attempt: Pick<Attempt, 'chunkRead'>;
  readonly walkMs?: number;
}

/** Makes all ranges clean as of one place. */
export class EditionReader {
  readonly #options: ReaderOptions;
  #place: FeedPlace;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#place = options.place;
  }

  get place(): FeedPlace {
    return this.#place;
  }

  /**
   * Reads what is not read live, and what changed since in one state. A state that is no longer kept leaves less for the
   * next one. Resolves with when the rows were so: milliseconds since 1970. Rejects with `changes-expired` and
   * `collection-replaced`, where all has to be read anew.
   */
  async run(): Promise<number> {
    for (;;) {
      await this.#walk();
      const at = await this.#readState();
      if (at !== null) return at;
    }
  }

  /** The rows as they are, from rest to rest. Changes behind the walk are marked at each rest, before it goes on. */
  async #walk(): Promise<void> {
    const { ranges, resource, identity, walked, walkMs = WALK_MS } = this.#options;
    for (let run = ranges.nextDirty(true); run; run = ranges.nextDirty(true)) {
      const { seen } = this.#place;
      const plan = {
        ...BY_ID,
        ...(identity !== undefined && { identity }),
        ...(seen !== undefined && { since: seen }),
      };
      const until = performance.now() + walkMs;
      await this.#readRun(resource.streamsOf(resource.rows), plan, run, () => performance.now() >= until);
      await this.#drain(null);
      await walked(this.#place);
    }
  }

  /** Null: the state ended before all was read. */
  async #readState(): Promise<number | null> {
    const { resource, ranges, identity, signal } = this.#options;
    const at = Date.now();
    const snapshot = await takeSnapshot(resource, signal);
    try {
      if (snapshot.identity !== identity)
        throw new AppError('collection-replaced', 'The collection was replaced.');
      await this.#drain(snapshot.place);
      this.#place = snapshot.place; // changes behind it were marked, too, but this state has not their rows
      const rows = resource.streamsOf({ read: (...call) => snapshot.rows.read(...call) });
      for (let run = ranges.nextDirty(false); run; run = ranges.nextDirty(false))
        await this.#readRun(rows, BY_ID, run, () => false);
      return at;
    } catch (error) {
      if (error instanceof AppError && error.code === 'snapshot-expired') return null;
      throw error;
    } finally {
      snapshot.release();
    }
  }

  /** Marks what changed up to a place, or about up to now. */
  async #drain(until: FeedPlace | null): Promise<void> {
    const { feed, identity, signal, ranges, delta } = this.#options;
    const end = performance.now() + DRAIN_MS;
    let waitMs = 0; // what has come by now is there without a wait
    while (!until || !feed.reaches(this.#place, until)) {
      const size = { most: KEYS_A_READ, waitMs };
      const { keys, next, isUpToDate } = await feed.read(this.#place, size, identity, signal);
      for (const key of keys) {
        ranges.mark(key);
        delta?.changed(key);
      }
      this.#place = next;
      waitMs = until && keys.length === 0 ? WAIT_MS : 0;
      if (isUpToDate || (!until && performance.now() > end)) return; // a place that nothing follows may be before the state's
    }
  }

  /** Reads from a bound to one of before behind which all is clean, to the end of all rows, or to the first bound when `isOver`. */
  async #readRun(reader: RowReader, plan: Plan, run: Run, isOver: () => boolean): Promise<void> {
    const { ranges, transcoder, resource, target } = this.#options;
    const cutter = new RowCutter(transcoder, resource.shown, target);
    const storing = new Storing();
    let { at } = run;
    try {
      let isMet = false;
      const rows = this.#rowsBehind(reader, plan, run.after, ranges.rowsFrom(at), () => isMet);
      for await (const batch of rows) {
        let chunks: readonly CutRows[];
        try {
          chunks = await cutter.cut(batch);
        } finally {
          batch.release();
        }
        for (const cut of chunks) {
          if (isMet) break;
          const { store, meetsClean } = ranges.insert(at++, cut.bound);
          await storing.add(this.#store(cut, store));
          isMet = meetsClean || isOver();
        }
        if (isMet) return;
      }
      const rest = cutter.rest();
      if (rest) await storing.add(this.#store(rest, ranges.insert(at++, rest.bound).store));
      ranges.end(at);
    } finally {
      cutter.close();
      await storing.end();
    }
  }

  async #store(cut: CutRows, store: (chunk: Awaited<ReturnType<ChunkFiles['add']>>) => void): Promise<void> {
    const { delta, files, attempt, signal } = this.#options;
    signal.throwIfAborted();
    delta?.met(cut.text);
    store(await files.add(cut));
    attempt.chunkRead(cut.rows, cut.text.length);
  }

  /** The batches behind a row: as many rows as are expected, and then a few at a time. */
  async *#rowsBehind(
    reader: RowReader,
    plan: Plan,
    from: Run['after'],
    expected: number,
    isOver: () => boolean,
  ) {
    const { signal } = this.#options;
    let after = from;
    let more = true;
    for (let most = expected; more && !isOver(); most = FEW_ROWS) {
      const size = { ...NEXT_BATCH, rows: Math.min(NEXT_BATCH.rows, Math.max(1, most)) };
      const first = await reader.read(plan, after ? { after } : {}, size, signal);
      for await (const batch of chain(reader, plan, first, most, signal, isOver)) {
        after = batch.last ?? after;
        more = batch.more;
        yield batch;
      }
    }
  }
}

/** Work under way, of which a few are at a time. The first failure is told to who adds, or ends. */
class Storing {
  #all: Promise<void>[] = [];

  async add(work: Promise<void>): Promise<void> {
    work.catch(() => undefined); // its turn comes
    this.#all.push(work);
    if (this.#all.length > UNDER_WAY) await this.#all.shift();
  }

  async end(): Promise<void> {
    await Promise.all(this.#all);
  }
}

/** One state of all rows of a resource, and its place. Whoever takes it releases it. */
export function takeSnapshot({ rows }: Resource, signal: AbortSignal): Promise<Snapshot> {
  if (rows.snapshot) return rows.snapshot(signal);
  throw new AppError('changes-unsupported', 'The store has no changes, so there are no editions.');
}
