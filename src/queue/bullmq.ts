import { DelayedError, Queue, Worker, type Job } from 'bullmq';
import { settlesWithin } from '../store/deadline.ts';
import { connectRedis, type RedisConnection } from '../redis/connect.ts';
import type { JobQueue, QueueOptions, Work } from './queue.ts';
import type { Log } from '../log.ts';

/**
 * A worker that has not renewed its lock on a message for HOLD_MS is gone. BullMQ looks for such workers every
 * STALLED_LOOK_MS. Milliseconds.
 */
const HOLD_MS = 10_000;
const STALLED_LOOK_MS = 5_000;
/** How long `add` and `close` wait for Redis. Milliseconds. */
const SILENCE_MS = 1_000;

export interface BullQueueOptions extends QueueOptions {
  /** `redis://` or `rediss://`, optionally with a password and a database. */
  readonly url: string;
  /** The queue's name, without a colon. Processes on the same store use the same name and so share the queue. */
  readonly name: string;
  readonly log: Log;
}

interface Message {
  readonly id: string;
}

/**
 * A queue that all processes on one Redis share. When a worker is gone, its message goes to another one. While Redis
 * is unavailable, no message is taken up. The queue reconnects by itself, even when Redis comes back empty.
 */
export class BullQueue implements JobQueue {
  readonly #queue: Queue<Message>;
  readonly #worker: AbandonableWorker;
  readonly #adding: RedisConnection;
  readonly #working: RedisConnection;
  readonly #log: Log;
  readonly #underWay = new Set<Promise<unknown>>();
  #isAway = false;
  #isClosed = false;

  constructor({ url, name, concurrency, work, log }: BullQueueOptions) {
    this.#log = log;
    this.#adding = this.#connect(url);
    this.#working = this.#connect(url);
    const common = { prefix: 'sluice' };
    this.#queue = new Queue<Message>(name, { ...common, connection: this.#adding });
    this.#worker = new AbandonableWorker(name, (job, token) => this.#workOn(job, token, work), {
      ...common,
      connection: this.#working,
      concurrency,
      lockDuration: HOLD_MS,
      stalledInterval: STALLED_LOOK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER, // a stall is not the job's fault: the records count attempts
    });
    this.#queue.on('error', (error) => this.#lost(error));
    this.#worker.on('error', (error) => this.#lost(error));
    this.#adding.on('ready', () => this.#found());
  }

  async add(id: string, delayMs = 0): Promise<void> {
    const settings = { jobId: `export-${id}`, delay: delayMs, removeOnComplete: true, removeOnFail: true };
    await within(SILENCE_MS, this.#queue.add('export', { id }, settings));
  }

  async close(): Promise<void> {
    const closing = Promise.all([this.#worker.close(), this.#queue.close()]);
    closing.catch(() => undefined); // handled below
    await Promise.all(this.#underWay);
    this.#isClosed = true;
    // Redis is unavailable: other workers take over the messages held here.
    await within(SILENCE_MS, closing).catch(() => this.#worker.abandon());
    for (const connection of [this.#adding, this.#working]) connection.close();
  }

  async #workOn(job: Job<Message>, token: string | undefined, work: Work): Promise<void> {
    const working = work(job.data.id);
    this.#underWay.add(working);
    const again = await working.finally(() => this.#underWay.delete(working));
    if (again === null) return;
    await job.moveToDelayed(Date.now() + again, token);
    throw new DelayedError();
  }

  /** BullMQ opens more connections with the same options. */
  #connect(url: string): RedisConnection {
    return connectRedis(url, {
      maxRetriesPerRequest: null, // BullMQ requires it
      isWanted: () => !this.#isClosed,
      onError: (error) => this.#lost(error), // BullMQ listens too, but stops before the connection ends
    });
  }

  #lost(error: Error): void {
    // The records know about a message that Redis had forgotten when it came back.
    if (this.#isAway || this.#isClosed || this.#adding.status === 'ready') return;
    this.#isAway = true;
    // Logs the message only: the error of a failed login carries the password in its fields.
    this.#log.warn({ reason: error.message }, 'Redis does not respond: exports wait until it does');
  }

  #found(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#log.info({}, 'Redis responds again: exports continue');
  }
}

/** BullMQ's close() waits forever for a connection that is gone (taskforcesh/bullmq#4656). */
class AbandonableWorker extends Worker<Message> {
  /** Stops the timers that close() would have stopped at its end and that keep the process alive, for up to 5 s. */
  async abandon(): Promise<void> {
    await this.lockManager.close();
    (this as unknown as { stalledCheckStopper?: () => void }).stalledCheckStopper?.();
  }
}

/** Rejects when `work` takes longer than `ms` milliseconds. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  work.catch(() => undefined); // handled here, or too late to matter
  if (!(await settlesWithin(work, ms))) throw new Error(`Redis did not respond within ${ms} ms`);
}
