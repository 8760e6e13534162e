/**
 * The queue port. It carries the ids of the jobs that workers look at. What a job is and how far it has come is in the
 * store, so a lost, late or duplicate message does no harm. Adapters: local.ts (this process), bullmq.ts (all processes
 * on one Redis). test/contracts/queue.slow.test.ts runs on both.
 *
 * - Every id added is worked on at least once, unless the queue is lost. The code that adds ids must handle that case.
 * - As far as the queue can know, no two workers work on one id at a time. An id that waits is not added twice.
 * - This process works on at most `concurrency` ids at a time.
 */
export interface JobQueue {
  /** Adds an id, to be worked on after `delayMs` milliseconds. Rejects when the queue cannot be reached. */
  add(id: string, delayMs?: number): Promise<void>;
  /** Takes no more ids. Resolves when work under way is done. Redis keeps waiting ids, the local queue drops them. */
  close(): Promise<void>;
}

/** Resolves with the milliseconds after which to offer the id again, or null for never. Never rejects. */
export type Work = (id: string) => Promise<number | null>;

export interface QueueOptions {
  readonly concurrency: number;
  readonly work: Work;
}
