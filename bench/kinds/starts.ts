import { readStream } from '../reader.ts';
import { benchHistogram, latencyOf } from '../results.ts';
import { startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';

/** A new process, from its start to its first answer. Counts starts. */
export interface ColdStartScenario {
  readonly kind: 'cold-start';
  readonly path: string;
}

export const coldStart: Kind<ColdStartScenario> = {
  async check(job) {
    const response = await fetch(urlOf(job) + job.scenario.path);
    const { data } = (await response.json()) as { data: readonly unknown[] };
    return { text: JSON.stringify(data), rows: data.length, bytes: 0 };
  },

  async measure({ subject, scenario, ground }) {
    const started = performance.now();
    return withFresh(subject, async ({ process }) => {
      const endUsage = startUsage({ server: process.pid, mongod: ground.mongodPid });
      const listeningMs = performance.now() - started;
      const response = await fetch(`${process.url ?? ''}${scenario.path}`);
      await response.arrayBuffer();
      if (response.status !== 200)
        throw new Error(`${subject.name} answered ${response.status} after its start`);
      const milliseconds = performance.now() - started;
      return {
        seconds: milliseconds / 1000,
        count: 1,
        usage: endUsage(),
        latency: { p50: milliseconds, p90: milliseconds, p99: milliseconds, max: milliseconds },
        figures: { listeningMs },
      };
    });
  },
};

/** Streams that are begun and cut after their first bytes. Counts streams begun. */
export interface FirstRowScenario {
  readonly kind: 'first-row';
  readonly path: string;
  readonly starts: number;
}

export const firstRow: Kind<FirstRowScenario> = {
  async check(job) {
    await firstByteMs(urlOf(job) + job.scenario.path);
    return { text: 'begins', rows: 0, bytes: 0 };
  },

  async measure(job) {
    const { scenario, effort } = job;
    const starts = Math.ceil(scenario.starts * effort.share);
    const times = benchHistogram();
    const endUsage = startUsage(pidsOf(job));
    const started = performance.now();
    for (let start = 0; start < starts; start++) times.record(await firstByteMs(urlOf(job) + scenario.path));
    const seconds = (performance.now() - started) / 1000;
    return { seconds, count: starts, usage: endUsage(), latency: latencyOf(times) };
  },
};

async function firstByteMs(url: string): Promise<number> {
  const { firstByteSeconds } = await readStream(url, 'identity', undefined, () => true);
  return firstByteSeconds * 1000;
}
