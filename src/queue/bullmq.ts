import { DelayedError, Queue, Worker, type Job } from 'bullmq';
import { settlesWithin } from '../store/turns/deadline.ts';
import { connectRedis, type RedisConnection } from '../redis/connect.ts';
import type { JobQueue, QueueOptions } from './queue.ts';
import type { Log } from '../base/log.ts';

/** A worker that renews no lock for HOLD_MS is gone. BullMQ looks for such workers every STALLED_LOOK_MS. */
const HOLD_MS = 10_000;
const STALLED_LOOK_MS = 5_000;
/** How long `add` and `close` wait for Redis. Milliseconds. */
const SILENCE_MS = 1_000;

interface BullQueueOptions extends QueueOptions {
  /** A REDIS_URL. */
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
  readonly #options: BullQueueOptions;
  readonly #adding: RedisConnection;
  readonly #working: RedisConnection;
  readonly #queue: Queue<Message>;
  readonly #worker: AbandonableWorker;
  readonly #underWay = new Set<Promise<unknown>>();
  #isAway = false;
  #isClosed = false;

  constructor(options: BullQueueOptions) {
    this.#options = options;
    this.#adding = this.#connect();
    this.#working = this.#connect();
    const common = { prefix: 'sluice' };
    // A script of BullMQ takes many keys of a queue, which lie on one node of a Cluster by the tag {name}. Elsewhere there is
    // none: servers of 0.3 beside this one look for the keys without it.
    const name = this.#adding.isCluster ? `{${options.name}}` : options.name;
    this.#queue = new Queue(name, { ...common, connection: this.#adding });
    this.#worker = new AbandonableWorker(name, (job, token) => this.#work(job, token), {
      ...common,
      connection: this.#working,
      concurrency: options.concurrency,
      lockDuration: HOLD_MS,
      stalledInterval: STALLED_LOOK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER, // a stall is not the job's fault: the records count attempts
    });
    const lost = (error: Error) => this.#lost(error);
    this.#queue.on('error', lost);
    this.#worker.on('error', lost);
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

  /** BullMQ opens more connections with the same options. */
  #connect(): RedisConnection {
    return connectRedis(this.#options.url, {
      waits: true,
      maxRetriesPerRequest: null, // BullMQ requires it
      isWanted: () => !this.#isClosed,
      onError: (error) => this.#lost(error), // BullMQ listens too, but stops before the connection ends
    });
  }

  async #work(job: Job<Message>, token: string | undefined): Promise<void> {
    const working = this.#options.work(job.data.id);
    this.#underWay.add(working);
    const again = await working.finally(() => this.#underWay.delete(working));
    if (again === null) return;
    await job.moveToDelayed(Date.now() + again, token);
    throw new DelayedError();
  }

  #lost(error: Error): void {
    // The records know about a message that Redis had forgotten when it came back.
    if (this.#isAway || this.#isClosed || this.#adding.status === 'ready') return;
    this.#isAway = true;
    // Logs the message only: the error of a failed login carries the password in its fields.
    this.#options.log.warn({ reason: error.message }, 'Redis does not respond: exports wait until it does');
  }

  #found(): void {
    if (!this.#isAway) return;
    this.#isAway = false;
    this.#options.log.info({}, 'Redis responds again: exports continue');
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
