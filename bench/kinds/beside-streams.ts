import { join } from 'node:path';
import { load, warmUp } from '../load.ts';
import { startProcess } from '../process.ts';
import type { Round } from '../results.ts';
import { startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** Requests for pages while other clients read streams as fast as they come. Counts pages. */
export interface BesideStreamsScenario {
  readonly kind: 'beside-streams';
  readonly stream: string;
  readonly streams: number;
  readonly page: string;
  readonly connections: number;
}

const READERS = join(import.meta.dirname, '../readers.ts');

export const besideStreams: Kind<BesideStreamsScenario> = {
  async check(job) {
    const response = await fetch(urlOf(job) + job.scenario.page);
    const { data } = (await response.json()) as { data: readonly unknown[] };
    return { text: JSON.stringify(data), rows: data.length, bytes: 0 };
  },

  measure(job) {
    return withFresh(job.subject, (subject) => observe({ ...job, subject }));
  },
};

async function observe(job: Job<BesideStreamsScenario>): Promise<Round> {
  const { scenario, effort } = job;
  const url = urlOf(job);
  const ask = { url: url + scenario.page, connections: scenario.connections };
  await load({ ...ask, until: warmUp(effort) });
  const alone = await load({ ...ask, until: effort });
  const args = [url + scenario.stream, String(scenario.streams)];
  const readers = await startProcess({ file: READERS, args, environment: {} });
  const read = async () => (JSON.parse(await readers.ask('')) as { bytes: number }).bytes;
  try {
    const before = await read();
    const endUsage = startUsage(pidsOf(job));
    const beside = await load({ ...ask, until: effort });
    const streamed = (await read()) - before;
    return {
      seconds: beside.seconds,
      count: beside.requests,
      usage: endUsage(),
      latency: beside.latency,
      figures: {
        aloneP99Ms: alone.latency.p99,
        aloneP50Ms: alone.latency.p50,
        alonePerSecond: alone.requests / alone.seconds,
        streamedMBPerSecond: streamed / 1e6 / beside.seconds,
      },
    };
  } finally {
    await readers.stop();
  }
}
