import { AppError } from '../errors.ts';

/** What Retry-After says; streams end when they end, so it is only a pace for asking. Seconds. */
const RETRY_SECONDS = 5;

export interface StreamSlotsOptions {
  /** Streams one client may have open (STREAM_LIMIT); Infinity: any number. */
  readonly perClient: number;
  /** Streams this process may have open (MAX_STREAMS). */
  readonly total: number;
}

/** Who may open one more stream. Counted in this process; a client that has none open takes no memory. */
export class StreamSlots {
  private readonly perClient: number;
  private readonly total: number;
  private readonly clients = new Map<string, number>();
  private opened = 0;

  constructor({ perClient, total }: StreamSlotsOptions) {
    this.perClient = perClient;
    this.total = total;
  }

  /** Streams open now. */
  get open(): number {
    return this.opened;
  }

  /** Clients that have a stream open now. */
  get openClients(): number {
    return this.clients.size;
  }

  /**
   * Takes a slot; what is returned gives it back, once, however often it is called. AppError `too-many-streams` when the
   * client has its share, `overloaded` when the process has all it can carry.
   */
  acquire(client: string): () => void {
    const own = this.clients.get(client) ?? 0;
    if (own >= this.perClient) {
      throw refusal('too-many-streams', `STREAM_LIMIT lets a client have ${this.perClient} streams open`);
    }
    if (this.opened >= this.total) {
      throw refusal('overloaded', `MAX_STREAMS lets a process have ${this.total} streams open`);
    }
    this.opened++;
    this.clients.set(client, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.opened--;
      const left = (this.clients.get(client) ?? 0) - 1;
      if (left > 0) this.clients.set(client, left);
      else this.clients.delete(client);
    };
  }
}

function refusal(code: 'too-many-streams' | 'overloaded', bound: string): AppError {
  return new AppError(code, `${bound}, and they are. Try again in ${RETRY_SECONDS} s.`, {
    headers: { 'retry-after': String(RETRY_SECONDS) },
  });
}
