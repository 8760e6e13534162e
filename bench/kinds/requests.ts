import { load, warmUp } from '../load.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** One request, repeated on `connections` connections. Counts requests. */
export interface RequestsScenario {
  readonly kind: 'requests';
  /** The path without cursor and offset. */
  readonly path: string;
  readonly connections: number;
  /** The number of rows before the page, and how they are skipped. */
  readonly depth?: number;
  readonly style?: 'cursor' | 'offset';
  /** The status of every answer, when it is not 200. */
  readonly status?: number;
  /** Whether rounds count only on a warm server, also where no other scenario came before. */
  readonly needsWarmth?: boolean;
}

interface Page {
  readonly data: readonly unknown[];
  readonly page: { readonly nextCursor: string };
}

/** The maximum number of requests sent before the load, until the limit is reached and refuses one. */
const MOST_ADMITTED = 1000;

export const requests: Kind<RequestsScenario> = {
  async check(job) {
    const { connections, status } = job.scenario;
    const url = urlOf(job) + (await pathOf(job));
    if (status !== undefined) {
      const refusal = await untilStatus(url, status);
      return {
        text: `status ${refusal.status}, Retry-After: ${String(refusal.headers.has('retry-after'))}`,
        rows: 0,
        bytes: 0,
      };
    }
    const response = await fetch(url);
    const text = await response.text();
    const { data } = JSON.parse(text) as Page;
    if (data.length === 0) throw new Error(`${url}: an empty page`);
    await load({ url, connections, until: warmUp(job.effort) });
    return { text: JSON.stringify(data), rows: data.length, bytes: text.length };
  },

  needsWarmth: ({ needsWarmth = false }) => needsWarmth,

  async measure(job, { bytes }) {
    const { connections, status } = job.scenario;
    const url = urlOf(job) + (await pathOf(job));
    const endUsage = startUsage(pidsOf(job));
    // Cursors differ in length between servers. The rows are nearly all of an answer.
    const leastBytes = bytes * 0.9;
    const done = await load({
      url,
      connections,
      until: job.effort,
      leastBytes,
      ...(status && { status }),
    });
    return { seconds: done.seconds, count: done.requests, usage: endUsage(), latency: done.latency };
  },
};

/** The path for this candidate. The cursor comes from the previous page, as clients obtain it. */
async function pathOf(job: Job<RequestsScenario>): Promise<string> {
  const { path, depth = 0, style = 'cursor' } = job.scenario;
  if (depth === 0) return path;
  const separator = path.includes('?') ? '&' : '?';
  if (style === 'offset') return `${path}${separator}offset=${depth}`;
  const before = path.replace(/limit=\d+/, 'limit=1');
  const response = await fetch(`${urlOf(job)}${before}${separator}offset=${depth - 1}`);
  const { page } = (await response.json()) as Page;
  return `${path}${separator}cursor=${page.nextCursor}`;
}

async function untilStatus(url: string, status: number): Promise<Response> {
  for (let asked = 0; asked < MOST_ADMITTED; asked++) {
    const response = await fetch(url);
    await response.arrayBuffer();
    if (response.status === status) return response;
  }
  throw new Error(`${url}: no ${status} in ${MOST_ADMITTED} requests`);
}
