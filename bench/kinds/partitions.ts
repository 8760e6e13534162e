import { readStream, verifyStream } from '../reader.ts';
import type { Round } from '../results.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** The whole set in parts that are read concurrently. Counts rows. */
export interface PartitionsScenario {
  readonly kind: 'partitions';
  /** The path of GET /items/partitions. */
  readonly path: string;
  readonly parts: number;
}

export const partitions: Kind<PartitionsScenario> = {
  /** The parts depend on a random sample, but their sum does not. */
  async check(job) {
    let rows = 0;
    let bytes = 0;
    for (const url of await urlsOf(job)) {
      const part = await verifyStream(url, 'identity');
      rows += part.rows;
      bytes += part.bytes;
    }
    return { text: `${rows} rows, ${bytes} bytes`, rows, bytes };
  },

  async measure(job, proof): Promise<Round> {
    const endUsage = startUsage(pidsOf(job));
    const started = performance.now();
    const urls = await urlsOf(job);
    const parts = await Promise.all(urls.map((url) => readStream(url, 'identity')));
    const seconds = (performance.now() - started) / 1000;
    const usage = endUsage();
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
    if (bytes !== proof.bytes)
      throw new Error(`${job.subject.name}: ${bytes} bytes came in parts where ${proof.bytes} were expected`);
    return { seconds, count: proof.rows, usage };
  },
};

async function urlsOf(job: Job<PartitionsScenario>): Promise<string[]> {
  const { path, parts } = job.scenario;
  const response = await fetch(`${urlOf(job)}${path}?n=${parts}`);
  const answer = (await response.json()) as { readonly partitions: readonly { readonly url: string }[] };
  return answer.partitions.map(({ url }) => urlOf(job) + url);
}
