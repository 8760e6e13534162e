import { setTimeout as sleep } from 'node:timers/promises';
import { Faults } from '../../src/load/faults.ts';
import { Requests } from '../../src/load/http/requests.ts';
import { Pages } from '../../src/load/pages.ts';
import { Mix } from '../../src/load/queries.ts';
import { Recorder } from '../../src/load/recorder.ts';
import { steadySchedule } from '../../src/load/schedule.ts';
import { load } from '../load.ts';
import { latencyOf } from '../results.ts';
import { startUsage } from '../usage.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';
import { requests } from './requests.ts';

/**
 * Pages by a schedule, at half of the rate that the candidate reaches as fast as answers come. This is an open model: the
 * latencies have what queues. Counts requests.
 */
export interface OpenPagesScenario {
  readonly kind: 'open-pages';
  readonly path: string;
  readonly connections: number;
}

const DRAIN_MS = 10_000;
const NO_CLIENT = { cpu: 0, loopDelay: 0, memory: 0 };

export const openPages: Kind<OpenPagesScenario> = {
  check: (job) => requests.check({ ...job, scenario: { ...job.scenario, kind: 'requests' } }),

  async measure(job) {
    const { path, connections } = job.scenario;
    const { seconds } = job.effort;
    const url = urlOf(job) + path;
    const fastest = await load({ url, connections, until: { seconds: seconds / 2 } });
    const rate = fastest.requests / fastest.seconds / 2;
    const now = () => performance.now();
    const recorder = new Recorder(now, () => ({
      asked: rate,
      waiting: 0,
      streams: 0,
      followers: 0,
      client: NO_CLIENT,
    }));
    const faults = new Faults();
    const pages = new Pages({
      requests: new Requests(new URL(url), null),
      connections,
      recorder,
      faults,
      now,
      random: () => 1,
      codings: ['identity'], // no conditional requests
      checkMs: null, // a peer's page has another form; `check` compares the content
      mix: new Mix([{ path, walks: false, weight: 1 }], () => 0),
    });
    const endUsage = startUsage(pidsOf(job));
    pages.start(steadySchedule(rate));
    await sleep(seconds * 1000);
    await pages.stop(DRAIN_MS, new AbortController().signal);
    pages.close();
    const usage = endUsage();
    const { counts, histograms } = recorder.whole;
    // Requests without an answer at the end are in the latencies.
    const bad = counts.arrivals - counts.ok - counts.unanswered;
    if (bad !== 0) throw new Error(`${url}: ${bad} of ${counts.arrivals} answers were not good`);
    return { seconds, count: counts.ok, usage, latency: latencyOf(histograms.pages) };
  },
};
