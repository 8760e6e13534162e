import { AppError } from '../errors.ts';
import { PROBLEMS } from '../problems.ts';

export interface StreamSlotsOptions {
  /** The most streams one client may have open (STREAM_LIMIT); Infinity: no limit. */
  readonly perClient: number;
  /** The most streams this process may have open (MAX_STREAMS). */
  readonly total: number;
}

/** Limits the open streams of this process. A client without an open stream takes no memory. */
export class StreamSlots {
  readonly #perClient: number;
  readonly #total: number;
  readonly #clients = new Map<string, number>();
  #opened = 0;

  constructor({ perClient, total }: StreamSlotsOptions) {
    this.#perClient = perClient;
    this.#total = total;
  }

  /** The number of streams open now. */
  get open(): number {
    return this.#opened;
  }

  /** The number of clients with a stream open now. */
  get openClients(): number {
    return this.#clients.size;
  }

  /**
   * Takes a slot. The returned function gives it back, once, however often it is called. Throws AppError
   * `too-many-streams` when the client has reached its limit, and `overloaded` when the process has. `limit`: that of
   * the client's key, where it has one of its own.
   */
  acquire(client: string, limit?: number): () => void {
    const own = this.#clients.get(client) ?? 0;
    const most = limit ?? this.#perClient;
    if (own >= most) {
      throw refusal(
        'too-many-streams',
        `The client has ${own} open streams, the most that ${limit === undefined ? 'STREAM_LIMIT' : 'its key'} allows`,
      );
    }
    if (this.#opened >= this.#total) {
      throw refusal(
        'overloaded',
        `The server process has ${this.#total} open streams, the most that MAX_STREAMS allows`,
      );
    }
    this.#opened++;
    this.#clients.set(client, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#opened--;
      const left = (this.#clients.get(client) ?? 0) - 1;
      if (left > 0) this.#clients.set(client, left);
      else this.#clients.delete(client);
    };
  }
}

function refusal(code: 'too-many-streams' | 'overloaded', bound: string): AppError {
  const { retry: retrySeconds } = PROBLEMS['too-many-streams']; // for both: a stream must end first
  return new AppError(code, `${bound}. Try again in ${retrySeconds} s.`, { retrySeconds });
}
