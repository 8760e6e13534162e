import { join } from 'node:path';
import { load, warmUp } from '../load.ts';
import { startProcess, type Measured } from '../process.ts';
import type { Round } from '../results.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { nextMark, startWriter, type Writer } from '../writing.ts';
import { ORDERS } from './feed.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';
import { untilAtRest } from './rest.ts';

/** Clients that follow the changes of the orders, while others request pages. Counts pages. */
export interface FollowersScenario {
  readonly kind: 'followers';
  readonly followers: number;
  /** How many orders a writer changes in a second while pages are requested. Without it, the followers are idle. */
  readonly changesPerSecond?: number;
  readonly page: string;
  readonly connections: number;
}

const FOLLOWERS = join(import.meta.dirname, '../followers.ts');
/** The most followers of one client process. */
const MOST_OF_PROCESS = 2_500;
/** The number of single changes whose way to all followers is timed. */
const MARKS = 3;
/** A writer changes the same few rows again and again, so a follower that is late gets each row once. */
const CHANGING_ROWS = 100;

export const followers: Kind<FollowersScenario> = {
  async check(job) {
    const response = await fetch(urlOf(job) + job.scenario.page);
    const { data } = (await response.json()) as { data: readonly unknown[] };
    return { text: JSON.stringify(data), rows: data.length, bytes: 0 };
  },

  async measure(job) {
    const writer = await startWriter(job.ground, CHANGING_ROWS);
    try {
      return await withFresh(job.subject, (subject) => observe({ ...job, subject }, writer));
    } finally {
      await writer.stop();
    }
  },
};

async function observe(job: Job<FollowersScenario>, writer: Writer): Promise<Round> {
  const { scenario, subject, ground, effort } = job;
  const { pid } = subject.process;
  const { connections, changesPerSecond } = scenario;
  const ask = { url: urlOf(job) + scenario.page, connections };
  // V8 compiles pages in their first seconds, and what followers need in theirs: p99 of pages was 24 to 30 ms in those, and 15 to
  // 20 later.
  await load({ ...ask, until: changesPerSecond === undefined ? warmUp(effort) : effort });
  const alone = await load({ ...ask, until: effort });
  const count = Math.ceil(scenario.followers * effort.share);
  const memoryBefore = memoryOf(pid, 'RssAnon');
  const streamsBefore = await ground.changeStreams();
  const clients = await startFollowers(job, count);
  try {
    await untilAtRest(pid);
    const held = memoryOf(pid, 'RssAnon') - memoryBefore;
    const changeStreams = (await ground.changeStreams()) - streamsBefore;
    const perSecond = (changesPerSecond ?? 0) * effort.share;
    const askBeside = async () => {
      const endUsage = startUsage(pidsOf(job));
      const updates = Math.ceil(perSecond * effort.seconds);
      const writing = updates > 0 ? writer.write({ updates, perSecond, mark: nextMark() }) : null;
      const pages = await load({ ...ask, until: effort });
      const usage = endUsage();
      return { pages, usage, written: await writing };
    };
    if (perSecond > 0) await askBeside();
    const { pages: beside, usage, written } = await askBeside();
    const times: number[] = [];
    while (times.length < MARKS) times.push(await timeToAll(clients, writer));
    return {
      seconds: beside.seconds,
      count: beside.requests,
      usage,
      latency: beside.latency,
      figures: {
        followers: count,
        kibPerFollower: held / 1024 / count,
        changeStreams,
        allMs: Math.max(...times),
        aloneP99Ms: alone.latency.p99,
        alonePerSecond: alone.requests / alone.seconds,
        ...(written && { changesPerSecond: written.updates / written.seconds }),
      },
    };
  } finally {
    for (const client of clients) await client.stop();
  }
}

async function startFollowers(job: Job<unknown>, count: number): Promise<Measured[]> {
  const url = `${urlOf(job)}${ORDERS}/changes`;
  const clients: Measured[] = [];
  for (let left = count; left > 0; left -= MOST_OF_PROCESS) {
    const args = [url, String(Math.min(left, MOST_OF_PROCESS))];
    clients.push(await startProcess({ file: FOLLOWERS, args, environment: {} }));
  }
  return clients;
}

/** Milliseconds from before the write of a change until every follower has it. */
async function timeToAll(clients: readonly Measured[], writer: Writer): Promise<number> {
  const mark = nextMark();
  for (const client of clients) await client.ask(`"${mark}"`);
  const { began } = await writer.write({ updates: 0, perSecond: 1, mark });
  const reached = await Promise.all(
    clients.map(async (client) => (JSON.parse(await client.ask('')) as { at: number }).at),
  );
  return Math.max(...reached) - began;
}
