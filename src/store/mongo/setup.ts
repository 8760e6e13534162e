import { AppError, storeUnfit } from '../../errors.ts';
import { awaitAtMost } from '../deadline.ts';
import { setUpCollection } from './collection.ts';
import type { Layout, SetupOptions, SetupTask } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, codeOf } from './errors.ts';
import { describeServer } from './server.ts';

/** How long a call, and the start, wait: building an index on many rows takes longer than any client waits. */
const PATIENCE_MS = 5_000;

/**
 * The collection on its way to being readable: not looked for yet (null), being looked for, or found. All callers wait for
 * the same attempt; after a failed one the next caller tries again.
 */
export class Setup {
  readonly collection: string;
  readonly #connection: MongoConnection;
  readonly #options: SetupOptions;
  readonly #setUp: (connection: MongoConnection, task: SetupTask) => Promise<Layout>;
  /** What was told and still holds, so that it is told once. */
  readonly #told = new Set<string>();
  /** Those of them that say what cannot be read. */
  #refused: readonly string[] = [];
  #state: Layout | Promise<Layout> | null = null;
  #wasServed = false;

  /** `setUp` makes sure that the collection is there and fit; that of items by default. */
  constructor(connection: MongoConnection, options: SetupOptions, setUp = setUpCollection) {
    this.#connection = connection;
    this.collection = options.collection;
    this.#options = options;
    this.#setUp = setUp;
  }

  /**
   * How the collection is kept. Rejects with `store-unavailable` when the server is away and when its setup takes longer than
   * a client waits, with `store-unfit` when the collection is not, or no longer, fit to be served (which is told as a warning).
   */
  async layout(signal?: AbortSignal): Promise<Layout> {
    try {
      return await this.start(signal);
    } catch (error) {
      if (!(error instanceof MongoRefusal)) throw error;
      this.#refused = [...new Set([...this.#refused, error.message])];
      this.#warn(error.message);
      throw storeUnfit(
        `The collection '${this.collection}' cannot be served as it is now. The server's log says what its operator can do.`,
        error,
      );
    }
  }

  /** The same, but rejects with MongoRefusal itself when the collection is unfit. */
  start(signal?: AbortSignal): Layout | Promise<Layout> {
    if (!this.#state) {
      const looking = (this.#state = this.#look());
      // Whoever asked may have left already; the failure is for those who wait, and unhandled without any.
      looking.catch(() => undefined);
    }
    return this.#state instanceof Promise ? awaitAtMost(PATIENCE_MS, signal, this.#state) : this.#state;
  }

  /**
   * The collection is not what it was (dropped, made anew, an index gone): the next caller looks again. With the layout that
   * turned out wrong, unless another one was found since.
   */
  forget(layout?: Layout): void {
    if (this.#state instanceof Promise || (layout && layout !== this.#state)) return;
    this.#state = null;
  }

  async #look(): Promise<Layout> {
    try {
      await this.#connection.connect();
      const server = await describeServer(this.#connection);
      if (this.#options.tellsServer) for (const warning of server.warnings) this.#warn(warning);
      const onWarning = (message: string) => this.#warn(message);
      const task = { ...this.#options, onWarning, server, isServing: this.#wasServed };
      const layout = await this.#setUp(this.#connection, task);
      this.#tell(layout);
      return (this.#state = layout);
    } catch (error) {
      this.#state = null;
      throw refusalOf(error, this.collection);
    }
  }

  /** What cannot be read is told once, and that it can be read again. */
  #tell({ faults }: Layout): void {
    const { onNotice } = this.#options;
    const present = Object.values(faults).map(
      (fault) => `The reads of '${this.collection}' that need an index are refused, for ${fault}.`,
    );
    if (this.#refused.some((message) => !present.includes(message)))
      onNotice?.(`The collection '${this.collection}' can be read again.`);
    for (const message of this.#refused) if (!present.includes(message)) this.#told.delete(message);
    this.#refused = present;
    for (const message of present) this.#warn(message);
    this.#wasServed = true;
  }

  #warn(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#options.onWarning(message);
  }
}

/** What the server does not let this user do is the operator's to mend, at the start and later. */
function refusalOf(error: unknown, collection: string): unknown {
  const cause = error instanceof AppError ? error.cause : error;
  const code = codeOf(cause);
  if (code !== CODES.unauthorized && code !== CODES.authenticationFailed) return error;
  return new MongoRefusal(`MongoDB refuses this user: ${String(cause)}`, {
    cause,
    brief: `MongoDB does not let this server read '${collection}'.`,
  });
}
