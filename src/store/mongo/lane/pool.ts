import { storeUnavailable } from '../../../base/errors.ts';
import type { Connection } from './connection.ts';
import { LaneBroken } from './message.ts';

/** How long a member is left to the driver after it refused a connection or failed to greet. */
const REST_MS = 1_000;

interface Waiter {
  readonly resolve: (connection: Connection) => void;
  readonly reject: (reason: unknown) => void;
}

interface PoolOptions {
  /**
   * Opens a connection ready for commands, or rejects with LaneBroken. In both cases calls `onEnd` once it is closed.
   */
  readonly open: (onEnd: () => void) => Promise<Connection>;
  readonly size: number;
  readonly waitMs: number;
  readonly onRefusal: (error: unknown) => void;
}

/** The connections to one member, at most `size`, opened when none is idle. The one returned last is taken first. */
export class Pool {
  readonly #options: PoolOptions;
  readonly #idle: Connection[] = [];
  readonly #ready = new Set<Connection>();
  readonly #waiters = new Set<Waiter>();
  /** Number of connections that are ready or being opened. */
  #open = 0;
  #restsUntil = 0;
  #closed: LaneBroken | null = null;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Connections in use plus callers that wait. Members are compared by this. */
  get load(): number {
    return this.#ready.size - this.#idle.length + this.#waiters.size;
  }

  rest(ms: number): void {
    this.#restsUntil = performance.now() + ms;
  }

  /** Whether the pool must not be asked: recently a connection could not be opened, or gave no answer. */
  get isResting(): boolean {
    return this.#restsUntil > 0 && performance.now() < this.#restsUntil;
  }

  /** The caller must `give` it back. Fails with LaneBroken, `store-unavailable`, or the signal's reason. */
  take(signal: AbortSignal): Connection | Promise<Connection> {
    if (this.#closed) throw this.#closed;
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) if (idle.isUsable) return idle;
    const waiting = this.#wait(signal);
    this.#grow();
    return waiting;
  }

  give(connection: Connection): void {
    if (!connection.isUsable) return;
    const [waiter] = this.#waiters;
    if (waiter) waiter.resolve(connection);
    else this.#idle.push(connection);
  }

  /** Ends all connections, also those in use: the member is gone, hangs, or must not be read from any more. */
  close(reason: LaneBroken): void {
    this.#closed = reason;
    for (const connection of this.#ready) connection.end(reason);
    this.#refuseWaiters(reason);
  }

  #grow(): void {
    if (this.#closed || this.#open >= this.#options.size) return;
    this.#open++;
    let made: Connection | null = null;
    const onEnd = () => {
      this.#open--;
      if (made) this.#ready.delete(made);
      if (this.#waiters.size > 0) this.#grow();
    };
    this.#options.open(onEnd).then(
      (connection) => {
        made = connection;
        this.#ready.add(connection);
        if (this.#closed) connection.end(this.#closed);
        else this.give(connection);
      },
      (error: unknown) => {
        this.rest(REST_MS);
        if (!this.#closed) this.#options.onRefusal(error);
        this.#refuseWaiters(error); // the driver serves them
      },
    );
  }

  #refuseWaiters(reason: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(reason);
  }

  #wait(signal: AbortSignal): Promise<Connection> {
    return new Promise<Connection>((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
        resolve: (connection) => {
          settle();
          resolve(connection);
        },
        reject: (reason) => {
          settle();
          reject(reason instanceof Error ? reason : new Error(String(reason)));
        },
      };
      const onAbort = () => {
        waiter.reject(signal.reason);
      };
      const { waitMs } = this.#options;
      const tooLong = () => waiter.reject(storeUnavailable(new Error(`no free connection for ${waitMs} ms`)));
      const timer = setTimeout(tooLong, waitMs);
      signal.addEventListener('abort', onAbort);
      this.#waiters.add(waiter);
    });
  }
}
