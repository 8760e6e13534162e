import { AppError, storeUnavailable } from '../../errors.ts';
import { awaitAtMost } from '../bounded.ts';
import { setUpCollection } from './collection.ts';
import type { Layout, SetupOptions } from './collection.ts';
import type { MongoConnection } from './connection.ts';
import { CODES, MongoRefusal, codeOf } from './errors.ts';

/** How long a call, and the start, wait: building an index on many rows takes longer than any client waits. */
const PATIENCE_MS = 5_000;

/**
 * The collection on its way to being readable: not looked for yet (null), being looked for, or found. All callers wait for
 * the same attempt; after a failed one the next caller tries again.
 */
export class Setup {
  readonly collection: string;
  readonly #connection: MongoConnection;
  readonly #manage: boolean;
  readonly #onWarning: (message: string) => void;
  readonly #setUp: typeof setUpCollection;
  readonly #warned = new Set<string>();
  #state: Layout | Promise<Layout> | null = null;

  /** `setUp` makes sure that the collection is there and fit; that of items by default. */
  constructor(connection: MongoConnection, options: SetupOptions, setUp = setUpCollection) {
    this.#connection = connection;
    this.collection = options.collection;
    this.#manage = options.manage;
    this.#onWarning = options.onWarning;
    this.#setUp = setUp;
  }

  /**
   * How the collection is kept. Rejects with `store-unavailable` when the server is away, when its setup takes longer than
   * a client waits, and when the collection turned out unfit after the start (which is told as a warning).
   */
  async layout(signal?: AbortSignal): Promise<Layout> {
    try {
      return await this.start(signal);
    } catch (error) {
      if (!(error instanceof MongoRefusal)) throw error;
      this.warn(error.message);
      throw storeUnavailable(error);
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

  /** The collection is not what it was (dropped, made anew, an index gone): the next caller looks again. */
  forget(): void {
    if (!(this.#state instanceof Promise)) this.#state = null;
  }

  /** Says a thing once. */
  warn(message: string): void {
    if (this.#warned.has(message)) return;
    this.#warned.add(message);
    this.#onWarning(message);
  }

  async #look(): Promise<Layout> {
    try {
      await this.#connection.connect();
      const { collection } = this;
      const manage = this.#manage;
      const onWarning = (message: string) => this.warn(message);
      return (this.#state = await this.#setUp(this.#connection, { collection, manage, onWarning }));
    } catch (error) {
      this.#state = null;
      throw refusalOf(error);
    }
  }
}

/** What the server does not let this user do is the operator's to mend, at the start and later. */
function refusalOf(error: unknown): unknown {
  const cause = error instanceof AppError ? error.cause : error;
  const code = codeOf(cause);
  if (code !== CODES.unauthorized && code !== CODES.authenticationFailed) return error;
  return new MongoRefusal(`MongoDB refuses this user: ${String(cause)}`, { cause });
}
