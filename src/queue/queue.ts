/**
 * The queue port: it tells workers which jobs to look at, and carries ids only. What a job is and where it stands is in
 * the store, so a message that is lost, late or doubled does no harm. Adapters: local.ts (this process), bullmq.ts (all
 * processes on one Redis); test/queue.test.ts runs on each.
 *
 * - Every id added is worked on by somebody at least once, unless the queue is lost: whoever adds looks after that.
 * - An id is not worked on by two at a time, as far as the queue can know. One that waits already is not doubled.
 * - At most `concurrency` ids are worked on in this process at a time.
 */
export interface JobQueue {
  /** Hands in an id, to be worked on when `delayMs` are over. Rejects when the queue cannot be reached. */
  add(id: string, delayMs?: number): Promise<void>;
  /** Takes no more ids; resolves when the work under way is done. What waits is dropped here, and kept by Redis. */
  close(): Promise<void>;
}

/** Works on an id. Resolves with the milliseconds after which it is to be offered again, or null. Never rejects. */
export type Work = (id: string) => Promise<number | null>;

export interface QueueOptions {
  readonly concurrency: number;
  readonly work: Work;
}
