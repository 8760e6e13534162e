import autocannon from 'autocannon';
import { cpuSeconds, type Measured } from './process.ts';
import { readStream } from './reader.ts';
import type { Scenario } from './scenarios.ts';

/** One round of one candidate. `perSecond`: rows of a stream, requests of pages. */
export interface Round {
  readonly perSecond: number;
  /** CPU of the candidate's process: seconds per million rows, or milliseconds per page. */
  readonly cpu: number;
  /** Cores the process kept busy: far below 1 means that something else was measured. */
  readonly cores: number;
}

/** A candidate as a scenario sees it. */
export interface Candidate {
  readonly name: string;
  readonly process: Measured;
  /** null: not a server but a limit, asked over its stdin. */
  readonly url: string | null;
}

/** Proof that a candidate answers a scenario rightly: equal for all servers, or the run is void. */
export async function fingerprintOf({ url }: Candidate, scenario: Scenario): Promise<string | null> {
  if (url === null) return null;
  if (scenario.kind === 'stream') {
    const { rows, bytes, md5 } = await readStream(url + scenario.path, { verify: true });
    return `${rows} rows, ${bytes} bytes, md5 ${md5}`;
  }
  const page = (await (await fetch(url + scenario.path)).json()) as { data: unknown[] };
  return JSON.stringify(page.data);
}

export async function measure(
  candidate: Candidate,
  scenario: Scenario,
  rows: number,
  seconds: number,
): Promise<Round> {
  const { pid } = candidate.process;
  const before = cpuSeconds(pid);
  if (scenario.kind === 'page') {
    const result = await autocannon({
      url: `${candidate.url ?? ''}${scenario.path}`,
      connections: scenario.connections,
      duration: seconds,
    });
    if (result.errors > 0 || result.non2xx > 0)
      throw new Error(`${candidate.name}: ${result.errors} errors, ${result.non2xx} not 2xx`);
    const cpu = cpuSeconds(pid) - before;
    return {
      perSecond: result.requests.total / result.duration,
      cpu: (cpu * 1000) / result.requests.total,
      cores: cpu / result.duration,
    };
  }
  const taken =
    candidate.url === null
      ? await drainSeconds(candidate, scenario)
      : (await readStream(candidate.url + scenario.path, { verify: false })).seconds;
  const cpu = cpuSeconds(pid) - before;
  return { perSecond: rows / taken, cpu: (cpu * 1e6) / rows, cores: cpu / taken };
}

async function drainSeconds({ process }: Candidate, { sort }: Scenario): Promise<number> {
  return (JSON.parse(await process.ask(sort)) as { seconds: number }).seconds;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
