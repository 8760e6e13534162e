import type { Log } from '../base/log.ts';
import { reasonOf } from '../base/error-reason.ts';
import type { Request } from '../engine/edge.ts';

/** Fewer streams leave too little behind to be worth a pause. */
const MANY = 100;
/** Many streams have ended once at most this share of them is open. */
const LEFT = 0.1;
/** The time between two looks, in milliseconds. */
const LOOK_MS = 1_000;
/** What a server uses at most between two looks, in milliseconds of CPU, that has no export, import or stream under way. */
const IDLE_CPU_MS = 100;
/** Looks in a row that must find nothing under way. */
const QUIET_LOOKS = 3;

interface SpareMemoryOptions {
  readonly openStreams: () => number;
  /** Requests that are not yet answered in full, streams included. */
  readonly inFlight: () => number;
  readonly log: Log;
  /** The CPU time that the process has used so far, in milliseconds. */
  readonly cpuMs?: () => number;
  /** Gives back what the heap does not use. */
  readonly collect?: () => Promise<void>;
  readonly lookMs?: number;
}

/**
 * Gives memory back once many streams have ended. They make the heap grow, and V8 keeps it at that size while the server
 * idles. A collection of all garbage stops the process for 50 ms, so it waits until nothing else is under way, and happens
 * once for each time that many streams have ended.
 */
export class SpareMemory {
  readonly #options: Required<SpareMemoryOptions>;
  readonly #timer: NodeJS.Timeout;
  /** The most streams that a look has found open since memory was given back. */
  #most = 0;
  /** Requests that came since the last look, probes left out. */
  #came = 0;
  /** The CPU time at the last look. */
  #usedMs = 0;
  #quietLooks = 0;

  constructor(options: SpareMemoryOptions) {
    this.#options = { cpuMs: processCpuMs, collect: collectGarbage, lookMs: LOOK_MS, ...options };
    this.#timer = setInterval(() => this.#look(), this.#options.lookMs).unref();
  }

  /** To be called for each request once its route is known. Machines ask for probes every few seconds, and can wait. */
  routed({ notes }: Pick<Request, 'notes'>): void {
    if (notes.cost !== 'watch') this.#came++;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const streams = this.#options.openStreams();
    this.#most = Math.max(this.#most, streams);
    const haveEnded = this.#most >= MANY && streams <= this.#most * LEFT;
    const isQuiet = this.#isQuiet(streams);
    this.#quietLooks = haveEnded && isQuiet ? this.#quietLooks + 1 : 0;
    if (this.#quietLooks < QUIET_LOOKS) return;
    this.#quietLooks = 0;
    this.#most = streams;
    void this.#giveBack();
  }

  /** Whether nothing but these streams was under way since the last look, and they used next to nothing. */
  #isQuiet(streams: number): boolean {
    const { cpuMs, inFlight } = this.#options;
    const usedMs = cpuMs();
    const isIdle = usedMs - this.#usedMs < IDLE_CPU_MS;
    const isAsked = this.#came > 0 || inFlight() > streams;
    this.#usedMs = usedMs;
    this.#came = 0;
    return isIdle && !isAsked;
  }

  async #giveBack(): Promise<void> {
    const { collect, log } = this.#options;
    const began = performance.now();
    try {
      await collect();
    } catch (error) {
      this.close(); // it would fail again
      log.warn({ reason: reasonOf(error) }, 'memory that is not used could not be given back');
      return;
    }
    const ms = Math.round(performance.now() - began);
    log.info({ ms }, 'many streams have ended: memory that is not used was given back');
  }
}

function processCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/**
 * Collects all garbage, compacts the heap and makes the space of young objects small again. The inspector is the one
 * public way to all three: `gc` of --expose-gc takes as long, but leaves that space at its size.
 */
async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector'); // a build of Node.js may lack it
  const session = new Session();
  session.connect();
  try {
    await new Promise<void>((resolve, reject) => {
      session.post('HeapProfiler.collectGarbage', (error) => (error ? reject(error) : resolve()));
    });
  } finally {
    session.disconnect();
  }
}
