import autocannon from 'autocannon';
import { latencyOf, type Latency } from './results.ts';

/** What a load of requests gave. */
export interface Load {
  readonly seconds: number;
  readonly requests: number;
  readonly latency: Latency;
}

export interface LoadOptions {
  readonly url: string;
  readonly connections: number;
  /** How long, and at least an answer for each connection; or, to warm a server up, how many requests in how long at most. */
  readonly until: { readonly seconds: number } | { readonly amount: number; readonly atMostSeconds: number };
  /** The status every answer must have; without it any of 200 to 299. */
  readonly status?: number;
  /** Each connection repeats these in turn. */
  readonly requests?: autocannon.Request[];
  /** An answer's size in bytes, head and all, that none may be below. */
  readonly leastBytes?: number;
}

/** The requests before anything is timed. */
export function warmUp({ share }: { readonly share: number }): LoadOptions['until'] {
  return { amount: 500 * share, atMostSeconds: 5 * share };
}

/** How often autocannon looks whether it is to stop; its own default is a second. */
const SAMPLE_MS = 50;
/** A server that does not answer is given up after so long. */
const GIVE_UP_SECONDS = 60;
const FIRST_FAULTS = 3;

/** Requests as fast as answers come on so many connections. Rejects when an answer is not as expected. */
export async function load(options: LoadOptions): Promise<Load> {
  const { url, connections, until, status, requests, leastBytes = 0 } = options;
  // Its own histogram has whole milliseconds, and its own clock stops when an interval is over.
  const times: number[] = [];
  const faults: string[] = [];
  const isExpected = (came: number) => (status === undefined ? came >= 200 && came < 300 : came === status);
  const started = performance.now();
  const end: { seconds: number | null } = { seconds: null };
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url,
        connections,
        timeout: GIVE_UP_SECONDS,
        ...('amount' in until
          ? { amount: Math.max(until.amount, connections) }
          : { duration: until.seconds + GIVE_UP_SECONDS }),
        ...({ sampleInt: SAMPLE_MS } as object), // missing in the types
        ...(requests && { requests }),
      },
      (error: Error | null, done) => (error ? reject(error) : resolve(done)),
    );
    instance.on('response', (_client, came, bytes, milliseconds) => {
      if (end.seconds !== null) return;
      times.push(milliseconds);
      if (!isExpected(came)) faults.push(`status ${came}`);
      else if (bytes < leastBytes) faults.push(`${bytes} bytes`);
      const elapsed = (performance.now() - started) / 1000;
      const isEnough =
        'amount' in until
          ? times.length >= until.amount || elapsed >= until.atMostSeconds
          : times.length >= connections && elapsed >= until.seconds;
      if (!isEnough) return;
      end.seconds = elapsed;
      (instance as unknown as { stop(): void }).stop();
    });
  });
  if (result.errors > 0) faults.push(`${result.errors} errors`);
  if (faults.length > 0)
    throw new Error(`${url}: ${faults.length} wrong answers: ${faults.slice(0, FIRST_FAULTS).join(', ')}`);
  const { seconds } = end;
  if (seconds === null) throw new Error(`${url}: ${times.length} answers in ${GIVE_UP_SECONDS} s`);
  return { seconds, requests: times.length, latency: latencyOf(times) };
}
