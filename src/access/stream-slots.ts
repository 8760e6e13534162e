import { AppError } from '../base/errors.ts';
import { PROBLEMS } from '../base/problems.ts';

export type StreamSlots = ReturnType<typeof createStreamSlots>;

/**
 * Limits the open streams: of each client (STREAM_LIMIT; Infinity: no limit) and of this process (MAX_STREAMS). The limits
 * are those that `limits` has when a stream begins.
 */
export function createStreamSlots(limits: { readonly perClient: number; readonly total: number }) {
  const clients = new Map<string, number>();
  let opened = 0;
  return {
    get open(): number {
      return opened;
    },
    /**
     * Takes a slot. The function gives it back, once, however often it is called. Throws AppError `too-many-streams` at
     * the client's limit (`limit`: that of its key), and `overloaded` at that of the process.
     */
    acquire(client: string, limit?: number): () => void {
      const { perClient, total } = limits;
      const own = clients.get(client) ?? 0;
      if (own >= (limit ?? perClient)) {
        const by = limit === undefined ? 'STREAM_LIMIT' : 'its key';
        throw refusal('too-many-streams', `The client has ${own} open streams, the most that ${by} allows`);
      }
      if (opened >= total)
        throw refusal(
          'overloaded',
          `The server process has ${total} open streams, the most that MAX_STREAMS allows`,
        );
      opened++;
      clients.set(client, own + 1);
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        opened--;
        const left = (clients.get(client) ?? 0) - 1;
        if (left > 0) clients.set(client, left);
        else clients.delete(client);
      };
    },
  };
}

function refusal(code: 'too-many-streams' | 'overloaded', bound: string): AppError {
  const { retry: retrySeconds } = PROBLEMS['too-many-streams']; // for both: a stream must end first
  return new AppError(code, `${bound}. Try again in ${retrySeconds} s.`, { retrySeconds });
}
