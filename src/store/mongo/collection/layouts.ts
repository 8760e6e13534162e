import { AppError, collectionReplaced, storeUnavailable, storeUnfit } from '../../../base/errors.ts';
import type { Identity } from '../../bookmark.ts';
import type { Document } from '../../values/bson.ts';
import { awaitAtMost } from '../../turns/deadline.ts';
import { KEY_INDEX, type Index } from '../../indexes.ts';
import type { Plan } from '../../store.ts';
import { coalesced, type SharedRuns } from './coalesced.ts';
import { describeCollection, makeMissing, type Layout, type LayoutOptions } from './create-collection.ts';
import { GRACE_MS, type MongoConnection } from '../connection.ts';
import { faultOfKey, layoutOf } from './discovery.ts';
import { CODES, isGone, MongoRefusal, serverCodeOf } from '../errors.ts';
import { faultOf } from '../faults.ts';
import { isUnchanged } from './index-list.ts';
import { everyReally, type LookTiming } from './look-timing.ts';
import { hasIndex, indexed, isOfKey, type IndexedPlan } from '../plan.ts';
import { describeServer, proveServer, type ServerKind } from './proof.ts';

/** How long a call, and the start, wait for a layout. Building an index on many rows takes longer than any client waits. */
const LAYOUT_WAIT_MS = 5_000;
/** The greatest age of a look at an index that a page may rely on. Milliseconds. */
const RECENT_MS = 1_000;
/** The greatest age of the look at the collection that all looks at its other indexes rely on. Milliseconds. */
const SHARED_MS = 100;
/** How often everything is looked at while there are no requests. Milliseconds. */
const INTERVAL_MS = 60_000;

/** The errors that a read may fail with first when its collection was replaced. */
const MAY_BE_REPLACED: ReadonlySet<string> = new Set([
  'store-unfit',
  'snapshot-expired',
  'store-unavailable',
]);

/**
 * What is known of a collection and its indexes. All callers share the looks at them. Anyone who may write can replace an
 * index by a partial one of its name, or make it multikey, and reads then miss or repeat rows silently: so a read looks
 * at its index again when the last look is too old, and `confirm` always does.
 *
 * A look at one index is a query plan, and is cheaper than the whole layout, which asks for the collection, its indexes
 * and a plan of each. `$listCatalog` answers all of that at once, but MongoDB documents neither the stage nor its form.
 */
export class Layouts {
  readonly connection: MongoConnection;
  readonly collection: string;
  isClosed = false;
  readonly #options: LayoutOptions;
  readonly #now: () => number;
  /** By the names of indexes. */
  readonly #looks: SharedRuns<string>;
  readonly #stop: () => void;
  /** Warnings that were given since the last look that found none of them, so that each is given once. */
  #logged: ReadonlySet<string> = new Set();
  /** Not known (null), being looked at, or known. After a look that failed, the next caller looks again. */
  #state: Layout | Promise<Layout> | null = null;
  #wasServed = false;
  /** The servers that the connection had found when the last look began. */
  #provedServers = 0;
  /** When the last look began. */
  #lookedAt = -Infinity;

  constructor(connection: MongoConnection, options: LayoutOptions, timing: LookTiming = {}) {
    const { now = () => performance.now(), every = everyReally } = timing;
    this.connection = connection;
    this.collection = options.collection;
    this.#options = options;
    this.#now = now;
    this.#looks = coalesced((name) => this.#lookAt(name), now);
    this.#stop = every(INTERVAL_MS, () => this.#lookAtAll());
  }

  close(): void {
    this.isClosed = true;
    this.#stop();
  }

  /**
   * The layout, at most a minute old. Rejects with `store-unavailable`, also when the look takes longer than a client
   * waits, and with `store-unfit`, which is also logged, when the collection is not, or no longer, fit to be served.
   */
  async layout(signal?: AbortSignal): Promise<Layout> {
    try {
      return await this.start(signal);
    } catch (error) {
      if (!(error instanceof MongoRefusal)) throw error;
      this.warn(error.message);
      throw storeUnfit('These rows cannot be served now. The log of the server says what to do.', error);
    }
  }

  /** Like `layout`, but rejects with the MongoRefusal itself when the collection is unfit. */
  start(signal?: AbortSignal): Layout | Promise<Layout> {
    if (!this.isProved || this.#mayBeMended()) this.forget();
    if (!this.#state) {
      this.#lookedAt = this.#now();
      const looking = (this.#state = this.#look());
      // The callers may have left already. A failure is for those that wait, and would be unhandled when none does.
      looking.catch(() => undefined);
    }
    return this.#state instanceof Promise ? awaitAtMost(LAYOUT_WAIT_MS, signal, this.#state) : this.#state;
  }

  /** Whether the last look saw the servers that the connection has now. A lost server may come back as another one. */
  get isProved(): boolean {
    return this.#provedServers === this.connection.serversFound;
  }

  /** While a layout has faults, requests make it be looked at again, at most once a second. */
  #mayBeMended(): boolean {
    const layout = this.#state;
    if (layout === null || layout instanceof Promise || layout.faults.length === 0) return false;
    return this.#now() - this.#lookedAt > RECENT_MS;
  }

  /** Makes the next caller look again, as the collection has changed. `layout`: the wrong one. A later one is kept. */
  forget(layout?: Layout): void {
    if (this.#state instanceof Promise || (layout && layout !== this.#state)) return;
    this.#state = null;
  }

  /**
   * The layout, and a plan with its index. Rejects with `store-unfit` when that cannot be used, else as `layout` does.
   */
  async layoutFor(plan: Plan, signal: AbortSignal): Promise<readonly [Layout, IndexedPlan]> {
    const layout = await this.layout(signal);
    const found = indexed(layout, plan);
    if (!found) throw this.#unfit('it is missing or unfit, or its indexes have changed');
    return [layout, found];
  }

  /**
   * Begins or joins a look at an index when the last look is too old, else returns null. The read runs at the same
   * time, and then awaits the look. A read by the key needs one at an end only.
   */
  recent(index: Index, isEnd = false): Promise<void> | null {
    return isOfKey(index) && !isEnd ? null : this.#looks.recent(nameOf(index), RECENT_MS);
  }

  /**
   * Rejects unless an index is still the one that the rows were read by and holds every row exactly once.
   * With an `identity`, also rejects with `collection-replaced` when the collection no longer has it. `isEnd`: nothing is
   * read after these rows that would find another collection, or ids that are no part of it.
   */
  async confirm(
    index: Index,
    identity: Identity | undefined,
    isEnd: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const names = new Set([nameOf(index), ...(isEnd ? [KEY_INDEX.name] : [])]);
      const looks = [...names].map((name) => this.#looks.fresh(name));
      await awaitAtMost(GRACE_MS, signal, Promise.all(looks));
      await this.check(index, signal);
    } catch (error) {
      throw await this.orReplaced(error, identity, signal);
    }
    if (identity !== undefined && (await this.layout(signal)).identity !== identity)
      throw collectionReplaced();
  }

  /** The error to report for a failed read: `collection-replaced` when that is the reason, else the error itself. */
  async orReplaced(error: unknown, identity: Identity | undefined, signal: AbortSignal): Promise<unknown> {
    if (identity === undefined || !(error instanceof AppError) || !MAY_BE_REPLACED.has(error.code))
      return error;
    try {
      const layout = await this.layout(signal);
      return layout.identity === identity ? error : collectionReplaced(error);
    } catch (reason) {
      return isGone(reason) ? collectionReplaced(error) : error;
    }
  }

  /** Rejects when the layout has the index no longer that rows were read by. */
  async check(index: Index, signal: AbortSignal): Promise<void> {
    if (isOfKey(index) || hasIndex(await this.layout(signal), index)) return;
    throw this.#unfit('it was replaced during the read');
  }

  /** The identity of the collection of this name now. Rejects with `store-unfit` when there is none. */
  async present(): Promise<Identity | undefined> {
    await this.#looks.fresh(KEY_INDEX.name).catch((error: unknown) => {
      if (serverCodeOf(error) !== CODES.otherIdentity) throw error; // if it is another collection, the next layout is of that one
    });
    return (await this.layout()).identity;
  }

  /** The reads that fail although others work. Rejects when none works, with the reason that /readyz reports. */
  async faults(): Promise<readonly string[]> {
    try {
      const { faults } = await this.start();
      return faults.map((fault) => `Some reads are refused because ${fault}.`);
    } catch (error) {
      if (!(error instanceof MongoRefusal)) throw error;
      this.warn(error.message);
      throw storeUnfit(error.brief, error);
    }
  }

  /** Logs a warning, once while it holds. */
  warn(message: string): void {
    if (this.#logged.has(message)) return;
    this.#logged = new Set([...this.#logged, message]);
    this.#options.onWarning(message);
  }

  async #look(): Promise<Layout> {
    const connection = this.connection;
    const options = this.#options;
    try {
      await connection.connect();
      this.#provedServers = connection.serversFound;
      const server = await describeServer(connection);
      const existing = await this.#described(server);
      const warnings = options.warnsOfServer ? [...server.warnings] : [];
      const task = { ...options, onWarning: (message: string) => warnings.push(message) };
      const layout = await layoutOf(connection, task, existing, server.isSharded);
      for (const fault of layout.faults)
        warnings.push(`Reads of '${this.collection}' that require an index are refused because ${fault}.`);
      for (const warning of warnings) this.warn(warning);
      this.#logged = new Set(warnings);
      this.#wasServed = true;
      return (this.#state = layout);
    } catch (error) {
      this.#state = null;
      throw refusalOf(error, this.collection);
    }
  }

  /** The description of the collection, which is made when it is missing and may be, on a server that obeys. */
  async #described(server: ServerKind): Promise<Document> {
    const existing = await describeCollection(this.connection, this.collection);
    await proveServer(this.connection, this.collection, existing, server);
    if (existing) return existing;
    const made = await makeMissing(this.connection, this.#options, this.#wasServed);
    await proveServer(this.connection, this.collection, made, server);
    return made;
  }

  /** Rejects when an index of the layout can no longer be used, and forgets the layout. */
  async #lookAt(name: string): Promise<void> {
    const connection = this.connection;
    const collection = this.collection;
    const layout = await this.layout();
    const isKey = name === KEY_INDEX.name;
    const index = layout.indexes.find((one) => one.name === name && one.refused === undefined);
    const look = isKey
      ? faultOfKey(connection, collection, layout)
      : index &&
        isUnchanged(connection, collection, index).then((is) => (is ? null : 'it has changed, or is gone'));
    if (!look) return; // known: reads are refused
    const shared = isKey ? null : this.#looks.recent(KEY_INDEX.name, SHARED_MS);
    const fault = await look.catch((error: unknown) => {
      throw faultOf(error, this, {});
    });
    if (fault === null) return shared ?? undefined;
    if (!isKey) await this.#looks.fresh(KEY_INDEX.name); // that the collection is another one says more
    this.forget(layout);
    throw this.#unfit(fault);
  }

  #lookAtAll(): void {
    this.forget();
    // A look reports what it finds. Reads report a server that is unavailable.
    this.layout()
      .catch(() => this.layout())
      .catch(() => undefined);
  }

  #unfit(fault: string): AppError {
    return storeUnfit(
      'This request requires an index that cannot be used now. The log of the server says what to do.',
      new Error(`The index of '${this.collection}' cannot be used: ${fault}`),
    );
  }
}

/** A refused permission is for the operator to repair. A collection replaced meanwhile is found by the next look. */
function refusalOf(error: unknown, collection: string): unknown {
  const cause = error instanceof AppError ? error.cause : error;
  const code = serverCodeOf(cause);
  if (code === CODES.otherIdentity) return storeUnavailable(cause);
  if (code !== CODES.unauthorized && code !== CODES.authenticationFailed) return error;
  return new MongoRefusal(`MongoDB refuses this user: ${String(cause)}`, {
    cause,
    brief: `MongoDB does not permit this server to read '${collection}'.`,
  });
}

/** The name by which an index is looked at. MongoDB gives that of the key to no other index. */
function nameOf(index: Index): string {
  return isOfKey(index) ? KEY_INDEX.name : index.name;
}
