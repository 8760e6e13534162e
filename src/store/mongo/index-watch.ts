import { AppError, collectionReplaced, storeUnfit } from '../../errors.ts';
import { awaitAtMost } from '../deadline.ts';
import type { Identity } from '../bookmark.ts';
import type { Layout } from './collection.ts';
import { GRACE_MS, type MongoConnection } from './connection.ts';
import { CODES, isGone, MongoRefusal, serverCodeOf } from './errors.ts';
import { faultOf } from './faults.ts';
import { changeOf } from './discovery.ts';
import { Looks } from './looks.ts';
import { BY_KEY, type IndexPaths } from './plan.ts';
import type { Setup } from './setup.ts';

/** The greatest age of a look that a page may rely on. Milliseconds. */
const RECENT_MS = 1_000;
/** How often everything is looked at while there are no requests. Milliseconds. */
export const INTERVAL_MS = 60_000;

/** The errors that a read may fail with first when its collection was replaced. */
const MAY_BE_REPLACED: ReadonlySet<string> = new Set([
  'store-unfit',
  'snapshot-expired',
  'store-unavailable',
]);

/** Calls `work` every `ms` milliseconds until the returned function is called. */
export type Every = (ms: number, work: () => void) => () => void;

export interface IndexWatchOptions {
  /** A clock in milliseconds. */
  readonly now?: (() => number) | undefined;
  readonly every?: Every | undefined;
}

/**
 * Checks repeatedly whether a collection and the index of a read are still what the layout says. Anyone who may write
 * can replace an index by a partial one of its name, or make it multikey. Reads then miss or repeat rows silently.
 */
export class IndexWatch {
  readonly #connection: MongoConnection;
  readonly #setup: Setup;
  readonly #looks: Looks<IndexPaths>;
  readonly #now: () => number;
  readonly #stop: () => void;
  /** When a layout with faults was last checked again. */
  #mendedAt = -Infinity;

  constructor(
    connection: MongoConnection,
    setup: Setup,
    { now = () => performance.now(), every = everyReally }: IndexWatchOptions,
  ) {
    this.#connection = connection;
    this.#setup = setup;
    this.#now = now;
    this.#looks = new Looks((index) => this.#look(index), now);
    this.#stop = every(INTERVAL_MS, () => this.#lookAtAll());
  }

  close(): void {
    this.#stop();
  }

  /**
   * The layout, in which reads can use this index. Rejects with `store-unfit` when they cannot, else as Setup.layout
   * does.
   */
  async layoutFor(index: IndexPaths, signal: AbortSignal): Promise<Layout> {
    const layout = await this.#layout(signal);
    const isGone = !layout.specs.has(index);
    const fault = layout.faults.get(index) ?? (isGone ? 'its indexes have changed' : undefined);
    if (fault === undefined) return layout;
    throw unfit(this.#setup.collection, fault);
  }

  /**
   * Begins or joins a look at an index when the last look is too old, else returns null. The read runs at the same
   * time, and then awaits the look. A read by the key needs one at an end only.
   */
  recent(index: IndexPaths, isEnd = false): Promise<void> | null {
    return index === BY_KEY && !isEnd ? null : this.#looks.recent(index, RECENT_MS);
  }

  /**
   * Rejects unless an index is still the one that the rows were read by (`spec`) and holds every row exactly once.
   * With an `identity`, also rejects with `collection-replaced` when the collection no longer has it.
   */
  async confirm(
    index: IndexPaths,
    spec: string | undefined,
    identity: Identity | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await awaitAtMost(GRACE_MS, signal, this.#looks.fresh(index));
      await this.check(index, spec, signal);
    } catch (error) {
      throw await this.orReplaced(error, identity, signal);
    }
    if (identity !== undefined && (await this.#setup.layout(signal)).identity !== identity)
      throw collectionReplaced();
  }

  /**
   * The error to report for a failed read of a collection: `collection-replaced` when that is the reason, else the
   * error itself.
   */
  async orReplaced(error: unknown, identity: Identity | undefined, signal: AbortSignal): Promise<unknown> {
    if (identity === undefined || !(error instanceof AppError) || !MAY_BE_REPLACED.has(error.code))
      return error;
    try {
      const layout = await this.#setup.layout(signal);
      return layout.identity === identity ? error : collectionReplaced(error);
    } catch (reason) {
      return isGone(reason) ? collectionReplaced(error) : error;
    }
  }

  /** Rejects when the layout's index is not the one that the rows were read by. */
  async check(index: IndexPaths, spec: string | undefined, signal: AbortSignal): Promise<void> {
    if (index === BY_KEY) return;
    const layout = await this.layoutFor(index, signal);
    if (layout.specs.get(index) !== spec)
      throw unfit(this.#setup.collection, 'its index was replaced during the read');
  }

  /**
   * The identity of the collection that has the name at this moment. Rejects with `store-unfit` when there is none.
   */
  async present(): Promise<Identity | undefined> {
    await this.#looks.fresh(BY_KEY).catch((error: unknown) => {
      const isOther = error instanceof AppError && serverCodeOf(error.cause) === CODES.otherIdentity;
      if (!isOther) throw error; // if it is another collection, the setup looks again now
    });
    return (await this.#setup.layout()).identity;
  }

  /**
   * Returns the reads that fail although others work. Rejects when none works, with the reason that /readyz reports.
   */
  async faults(): Promise<readonly string[]> {
    try {
      const { wanted } = await this.#setup.start();
      await Promise.all([BY_KEY, ...wanted].map(async (index) => this.#looks.recent(index, RECENT_MS)));
    } catch (error) {
      if (!(error instanceof AppError)) throw told(error);
    }
    try {
      return [...(await this.#setup.start()).faults.values()].map(
        (fault) => `Some reads are refused because ${fault}.`,
      );
    } catch (error) {
      throw told(error);
    }
  }

  /** The setup's layout. While it has faults, requests make it be checked again, at most once a second. */
  async #layout(signal?: AbortSignal): Promise<Layout> {
    const layout = await this.#setup.layout(signal);
    if (layout.faults.size === 0 || this.#now() - this.#mendedAt <= RECENT_MS) return layout;
    this.#mendedAt = this.#now();
    this.#setup.forget(layout);
    return this.#setup.layout(signal);
  }

  async #look(index: IndexPaths): Promise<void> {
    const { collection } = this.#setup;
    const layout = await this.#setup.layout();
    if (layout.faults.get(index) !== undefined) return; // known: reads are refused
    if (!layout.specs.has(index)) return;
    const fault = await changeOf(this.#connection, collection, layout, index).catch((error: unknown) => {
      throw faultOf(error, this.#setup, {});
    });
    if (fault === null) return;
    this.#setup.forget(layout);
    throw unfit(collection, fault);
  }

  #lookAtAll(): void {
    this.#setup.forget();
    // The setup reports what a look finds. Reads report a server that is unavailable.
    this.#layout()
      .catch(() => this.#setup.layout())
      .catch(() => undefined);
  }
}

function unfit(collection: string, fault: string): AppError {
  return storeUnfit(
    'This request requires an index that cannot be used now. The log of the server tells the operator what to do.',
    new Error(`The index of '${collection}' cannot be used: ${fault}`),
  );
}

function told(error: unknown): unknown {
  return error instanceof MongoRefusal ? storeUnfit(error.brief, error) : error;
}

function everyReally(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms).unref();
  return () => clearInterval(timer);
}
