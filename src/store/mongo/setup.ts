import { AppError, storeUnavailable, storeUnfit } from '../../errors.ts';
import { awaitAtMost } from '../deadline.ts';
import type { PointInTime } from '../store.ts';
import type { Layout, SetupOptions, SetupTask } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, ForeignServer, MongoRefusal, serverCodeOf } from './errors.ts';
import { proveServer } from './proof.ts';
import { pointInTimeOf } from './snapshot.ts';
import { describeServer } from './server.ts';

/**
 * How long a call, and the start, wait for the setup. Building an index on many rows takes longer than any client
 * waits.
 */
const SETUP_WAIT_MS = 5_000;

/**
 * The setup of a collection: not begun (null), under way, or done (a layout). All callers wait for the same attempt.
 * After a failed attempt the next caller tries again.
 */
export class Setup {
  readonly collection: string;
  readonly #connection: MongoConnection;
  readonly #options: SetupOptions;
  readonly #setUp: (connection: MongoConnection, task: SetupTask) => Promise<Layout>;
  /** Warnings already given that still hold, so that each is given once. */
  readonly #told = new Set<string>();
  /** The warnings among these that say what cannot be read. */
  #refused: readonly string[] = [];
  #state: Layout | Promise<Layout> | null = null;
  #wasServed = false;
  /** The servers that the connection had found when the last look began. */
  #provedServers = 0;

  /** `setUp` makes sure that the collection exists and is fit to be read. */
  constructor(
    connection: MongoConnection,
    options: SetupOptions,
    setUp: (connection: MongoConnection, task: SetupTask) => Promise<Layout>,
  ) {
    this.#connection = connection;
    this.collection = options.collection;
    this.#options = options;
    this.#setUp = setUp;
  }

  /**
   * The layout of the collection. Rejects with `store-unavailable` when the server is unavailable, or when the setup
   * takes longer than a client waits. Rejects with `store-unfit` when the collection is not, or no longer, fit to be
   * served; this is also logged as a warning.
   */
  async layout(signal?: AbortSignal): Promise<Layout> {
    try {
      return await this.start(signal);
    } catch (error) {
      if (!(error instanceof MongoRefusal)) throw error;
      this.#refused = [...new Set([...this.#refused, error.message])];
      this.warn(error.message);
      throw storeUnfit(
        'These rows cannot be served now. The log of the server tells the operator what to do.',
        error,
      );
    }
  }

  /** Like `layout`, but rejects with the MongoRefusal itself when the collection is unfit. */
  start(signal?: AbortSignal): Layout | Promise<Layout> {
    if (!this.isProved) this.forget();
    if (!this.#state) {
      const looking = (this.#state = this.#look());
      // The callers may have left already. A failure is for those that wait, and would be unhandled when none does.
      looking.catch(() => undefined);
    }
    return this.#state instanceof Promise ? awaitAtMost(SETUP_WAIT_MS, signal, this.#state) : this.#state;
  }

  /** Whether the last look saw the servers that the connection has now. A lost server may come back as another one. */
  get isProved(): boolean {
    return this.#provedServers === this.#connection.serversFound;
  }

  /** The latest time that the primary, or another member while there is none, knows of. */
  async presentTime(): Promise<PointInTime> {
    await this.#connection.run({ ping: 1 }, { readPreference: 'primaryPreferred' });
    const time = this.#connection.session.clusterTime?.clusterTime;
    return time ? pointInTimeOf(time) : 0n;
  }

  /** Whether missing indexes are created. */
  get manages(): boolean {
    return this.#options.manage;
  }

  /**
   * Call this when the collection has changed (dropped, recreated, an index missing): the next caller looks again.
   * Pass the layout that turned out wrong, so that a layout found since then is kept.
   */
  forget(layout?: Layout): void {
    if (this.#state instanceof Promise || (layout && layout !== this.#state)) return;
    this.#state = null;
  }

  async #look(): Promise<Layout> {
    try {
      await this.#connection.connect();
      this.#provedServers = this.#connection.serversFound;
      const server = await describeServer(this.#connection);
      if (this.#options.tellsServer) for (const warning of server.warnings) this.warn(warning);
      const onWarning = (message: string) => this.warn(message);
      const task = { ...this.#options, onWarning, server, isServing: this.#wasServed };
      const existed = await proveServer(this.#connection, this.collection, server);
      const layout = await this.#setUp(this.#connection, task);
      if (!existed) await proveServer(this.#connection, this.collection, server);
      this.#tell(layout);
      return (this.#state = layout);
    } catch (error) {
      this.#state = null;
      if (error instanceof ForeignServer) this.#options.onForeign?.(error);
      throw refusalOf(error, this.collection);
    }
  }

  /** Logs once what cannot be read, and again when it can be read. */
  #tell({ faults }: Layout): void {
    const { onNotice } = this.#options;
    const present = [...faults.values()].map(
      (fault) => `Reads of '${this.collection}' that require an index are refused because ${fault}.`,
    );
    if (this.#refused.some((message) => !present.includes(message)))
      onNotice?.(`The collection '${this.collection}' can be read again.`);
    for (const message of this.#refused) if (!present.includes(message)) this.#told.delete(message);
    this.#refused = present;
    for (const message of present) this.warn(message);
    this.#wasServed = true;
  }

  /** Logs a warning, once while it holds. */
  warn(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#options.onWarning(message);
  }
}

/**
 * A permission that the server refuses to this user is for the operator to repair, at the start and later. A collection
 * that was replaced during the look is found by the next one.
 */
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
