import { setTimeout as sleep } from 'node:timers/promises';
import type { Timestamp } from 'mongodb';
import { changesUnsupported, storeUnavailable } from '../../../base/errors.ts';
import { getOrMake } from '../../../base/get-or-make.ts';
import type { ScopeFields } from '../../scope/predicate.ts';
import type { MongoConnection } from '../connection.ts';
import { pointInTimeOf } from '../snapshot.ts';
import { openEvents } from './cursor.ts';
import { isLost, isPassing, STANDALONE } from './feed-faults.ts';
import { isBefore, placeOfTime, type Place } from './place.ts';
import { Window } from './window.ts';

/** How long the server waits for an event before it answers that there was none. Milliseconds. */
const WAIT_MS = 500;
/** How long the stream stays open for a collection without readers, which come back between two answers. Milliseconds. */
const LINGER_MS = 30_000;
const BATCH = 1_000;
/**
 * How long the stream rests while the server writes, whatever it writes, and how long it waits for an event then. Who waits
 * for one makes the server look at its history again at every write: 8,000 writes a second cost it 0.3 of a core, and 0.06
 * with rests. Milliseconds.
 */
const REST_MS = 20;
const WAIT_OF_BUSY_MS = 1;
/** Pauses after failures, in milliseconds. They double. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/**
 * The change stream of a database that all readers of its collections share, however many they are: every stream makes
 * the server read its whole history of changes. It is open while there are readers. When it fails, it is opened again
 * at its last place.
 *
 * | state | next state |
 * |---|---|
 * | idle | running at the first `join` |
 * | running | idle when no window has had readers for LINGER_MS, at `close`, or at an error that does not pass |
 */
export class DatabaseStream {
  readonly #connection: MongoConnection;
  readonly #fields: ScopeFields | undefined;
  readonly #windows = new Map<string, Window>();
  /** Every event before it is in the windows that had begun. Null: no stream was opened yet. */
  behind: Place | null = null;
  /** When the server was last asked and had no more events: performance.now(). -Infinity: it had more. */
  drainedAt = -Infinity;
  /** Why the stream ended although there were readers. The next `join` tries again. */
  #failure: Error | null = null;
  #running: Promise<void> | null = null;
  readonly #closing = new AbortController();

  /** `fields`: see StreamRequest. */
  constructor(connection: MongoConnection, fields?: ScopeFields) {
    this.#connection = connection;
    this.#fields = fields;
  }

  /** The window of a collection, for a reader that waits. `leave` it in the end. */
  join(collection: string): Window {
    const window = getOrMake(this.#windows, collection, () => new Window(collection));
    window.readers++;
    if (!this.#running && !this.#closing.signal.aborted) this.#start();
    return window;
  }

  leave(window: Window): void {
    window.readers--;
    window.leftAt = performance.now();
  }

  refuseFailed(): void {
    if (this.#failure) throw this.#failure;
  }

  peek(collection: string): Window | undefined {
    return this.#windows.get(collection);
  }

  /** Ends the stream, and rejects the readers that wait with `store-unavailable`. */
  async close(): Promise<void> {
    const closed = new Error('the store was closed');
    this.#closing.abort(closed);
    this.#fail(storeUnavailable(closed));
    await this.#running;
  }

  #start(): void {
    this.#failure = null;
    this.#running = this.#run().finally(() => {
      this.#running = null;
      if (!this.#failure && this.#isWanted()) this.#start(); // a reader has joined at the last moment
    });
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    let pause = FIRST_PAUSE_MS;
    while (this.#isWanted()) {
      try {
        await this.#follow(() => (pause = FIRST_PAUSE_MS));
      } catch (error) {
        if (signal.aborted) break;
        if (isLost(error)) this.#forget();
        else if (!isPassing(error)) {
          this.#fail(error);
          break;
        }
        await sleep(pause, undefined, { signal }).catch(() => undefined); // `close` ends it
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    }
    this.#forget();
  }

  /** Forgets all events. Readers that wait look into the history instead, and learn whether that is lost. */
  #forget(): void {
    this.behind = null;
    for (const window of this.#windows.values()) {
      window.start = null;
      window.wake();
    }
  }

  /** Reads one cursor until it fails or other collections are wanted. */
  async #follow(onSuccess: () => void): Promise<void> {
    const { signal } = this.#closing;
    const from = this.behind ?? (await this.#present());
    const collections = [...this.#windows.keys()];
    const request = { collections, from, batch: BATCH, fields: this.#fields };
    const cursor = await openEvents(this.#connection, request, signal);
    try {
      for (const window of this.#windows.values()) {
        if (window.start && this.behind) continue;
        if (!collections.includes(window.collection)) continue;
        window.begin(from);
        window.wake();
      }
      this.behind ??= from;
      let isBusy = false;
      while (this.#isWanted() && this.#areThese(collections)) {
        const askedAt = performance.now();
        const waitMs = isBusy ? WAIT_OF_BUSY_MS : WAIT_MS;
        const { events, behind, isDrained, hasEnded } = await cursor.next(waitMs, signal);
        onSuccess();
        isBusy = isBefore(this.behind, behind);
        this.behind = behind;
        this.drainedAt = isDrained ? askedAt : -Infinity;
        if (events.length > 0) for (const window of this.#windows.values()) window.add(events);
        if (hasEnded) {
          this.behind = null; // the database was dropped: its windows begin anew
          return;
        }
        if (isBusy && events.length < BATCH) await sleep(REST_MS, undefined, { signal });
      }
    } finally {
      await cursor.close();
    }
  }

  /** The place behind everything so far: the last change may be the end of the database, which ends every stream. */
  async #present(): Promise<Place> {
    const { operationTime } = await this.#connection.run({ hello: 1 });
    if (!operationTime) throw changesUnsupported(STANDALONE);
    return placeOfTime(pointInTimeOf(operationTime as Timestamp) + 1n);
  }

  /** Whether there are readers, or were a moment ago. Forgets the windows of others. */
  #isWanted(): boolean {
    if (this.#closing.signal.aborted) return false;
    const since = performance.now() - LINGER_MS;
    for (const [collection, { readers, leftAt }] of this.#windows)
      if (readers === 0 && leftAt < since) this.#windows.delete(collection);
    return this.#windows.size > 0;
  }

  #areThese(collections: readonly string[]): boolean {
    return this.#windows.size === collections.length && collections.every((name) => this.#windows.has(name));
  }

  #fail(error: unknown): void {
    this.#failure = error instanceof Error ? error : new Error(String(error));
    for (const window of this.#windows.values()) window.wake();
  }
}
