import autocannon from 'autocannon';
import { benchHistogram, latencyOf, type Latency } from './results.ts';

/** The result of a load of requests. */
export interface Load {
  readonly seconds: number;
  readonly requests: number;
  readonly latency: Latency;
}

export interface LoadOptions {
  readonly url: string;
  readonly connections: number;
  /**
   * The duration in seconds, with at least one answer for each connection. For a warm-up, the number of
   * requests and the maximum time. Or other work, beside which requests are sent until it has settled.
   */
  readonly until:
    | { readonly seconds: number }
    | { readonly amount: number; readonly atMostSeconds: number }
    | { readonly settled: Promise<unknown> };
  /** The status that every answer must have. Without it, any status from 200 to 299 is accepted. */
  readonly status?: number;
  /** The requests that each connection repeats in turn. */
  readonly requests?: autocannon.Request[];
  /** The minimum size of an answer in bytes, including its head. */
  readonly leastBytes?: number;
}

/** The extent of the warm-up before anything is timed. */
export function warmUp({ share }: { readonly share: number }): LoadOptions['until'] {
  return { amount: 500 * share, atMostSeconds: 5 * share };
}

/** How often autocannon checks whether it must stop, in milliseconds. Its default is a second. */
const SAMPLE_MS = 50;
/** A server that does not answer for this long is given up. */
const GIVE_UP_SECONDS = 60;
/** Other work that takes longer than this is given up, too. */
const LONGEST_WORK_SECONDS = 600;
const FIRST_FAULTS = 3;

/**
 * Sends requests on `connections` connections as fast as answers come. Rejects when an answer is not as
 * expected.
 */
export async function load(options: LoadOptions): Promise<Load> {
  const { url, connections, until, status, requests, leastBytes = 0 } = options;
  // Times are recorded here because autocannon's histogram has whole milliseconds, and its clock stops only
  // at the end of an interval.
  const times = benchHistogram();
  const faults: string[] = [];
  const isExpected = (came: number) => (status === undefined ? came >= 200 && came < 300 : came === status);
  const started = performance.now();
  const end: { seconds: number | null } = { seconds: null };
  const isEnough = enough(until, connections);
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url,
        connections,
        timeout: GIVE_UP_SECONDS,
        ...('amount' in until
          ? { amount: Math.max(until.amount, connections) }
          : { duration: ('seconds' in until ? until.seconds : LONGEST_WORK_SECONDS) + GIVE_UP_SECONDS }),
        ...({ sampleInt: SAMPLE_MS } as object), // missing in the types
        ...(requests && { requests }),
      },
      (error: Error | null, done) => (error ? reject(error) : resolve(done)),
    );
    instance.on('response', (_client, came, bytes, milliseconds) => {
      if (end.seconds !== null) return;
      times.record(milliseconds);
      if (!isExpected(came)) faults.push(`status ${came}`);
      else if (bytes < leastBytes) faults.push(`${bytes} bytes`);
      const elapsed = (performance.now() - started) / 1000;
      if (!isEnough(times.count, elapsed)) return;
      end.seconds = elapsed;
      (instance as unknown as { stop(): void }).stop();
    });
  });
  if (result.errors > 0) faults.push(`${result.errors} errors`);
  if (faults.length > 0)
    throw new Error(`${url}: ${faults.length} wrong answers: ${faults.slice(0, FIRST_FAULTS).join(', ')}`);
  const { seconds } = end;
  if (seconds === null) throw new Error(`${url}: ${times.count} answers in ${GIVE_UP_SECONDS} s`);
  return { seconds, requests: times.count, latency: latencyOf(times) };
}

/** Whether a load ends after this number of answers, and this many seconds. */
function enough(
  until: LoadOptions['until'],
  connections: number,
): (answers: number, seconds: number) => boolean {
  if ('amount' in until)
    return (answers, seconds) => answers >= until.amount || seconds >= until.atMostSeconds;
  if ('seconds' in until) return (answers, seconds) => answers >= connections && seconds >= until.seconds;
  let isSettled = false;
  const settle = () => void (isSettled = true);
  until.settled.then(settle, settle); // the caller, whose work it is, sees its failure
  return (answers) => answers >= connections && isSettled;
}
