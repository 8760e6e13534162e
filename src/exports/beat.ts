import { AppError } from '../errors.ts';
import type { Lease, Progress, Running } from './job.ts';
import type { Jobs } from './jobs.ts';

/**
 * The interval at which progress is saved and the lease is checked, in milliseconds. A lease lasts several
 * intervals.
 */
const BEAT_MS = 1_000;
const BEATS_A_LEASE = 4;

export interface BeatOptions {
  readonly jobs: Jobs;
  readonly now: () => Date;
  /** How long a job stays reserved for a worker that does not respond, in milliseconds. */
  readonly leaseMs: number;
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted before that. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

/** The heartbeat of an attempt. It renews the lease, and saves what the attempt reports. */
export interface Beat {
  /** What the attempt has reported so far. */
  progress: Progress;
  /** Stops the heartbeat. Resolves when its last save has ended. */
  end(): Promise<void>;
}

/**
 * Starts the heartbeat of a claimed job. It aborts the attempt with the error of a failed save, except while the store is
 * unavailable and the lease still holds, so that no other process can have taken the job.
 */
export function startBeat(job: Running, options: BeatOptions, attempt: AbortController): Beat {
  const { jobs, now, leaseMs, pause } = options;
  const ended = new AbortController();
  let { lease, progress: saved } = job;

  const save = async (progress: Progress): Promise<void> => {
    if (progress === saved && lease.until.getTime() - now().getTime() > leaseMs / 2) return;
    const renewed: Lease = { token: lease.token, until: new Date(now().getTime() + leaseMs) };
    await jobs.advance(job.id, lease.token, (held) => ({ ...held, progress, lease: renewed }));
    [lease, saved] = [renewed, progress];
  };
  const pauses = (): Promise<boolean> =>
    pause(Math.min(BEAT_MS, leaseMs / BEATS_A_LEASE), ended.signal).then(
      () => true,
      () => false,
    );
  const run = async (): Promise<void> => {
    while (await pauses())
      try {
        await save(beat.progress);
      } catch (error) {
        const isAway = error instanceof AppError && error.code === 'store-unavailable';
        if (!isAway || lease.until <= now()) attempt.abort(error);
      }
  };

  const beat: Beat = {
    progress: saved,
    end: async () => {
      ended.abort();
      await running;
    },
  };
  const running = run();
  return beat;
}
