import { join } from 'node:path';
import { startProcess, type Measured } from '../process.ts';
import { verifyStream } from '../reader.ts';
import type { Round } from '../results.ts';
import { cpuSeconds, startUsage } from '../usage.ts';
import { nextMark, startWriter, type Writer } from '../writing.ts';
import { ORDERS, placeNow } from './feed.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** One client that keeps a copy of the orders that a writer changes. Counts changes, until the copy has the last. */
export interface ChangeEventsScenario {
  readonly kind: 'change-events';
  readonly changesPerSecond: number;
  /** The number of orders that change, in turn. */
  readonly rows: number;
}

/** The answer of bench/copy.ts when a copy is whole: when its last line came, in milliseconds since 1970. */
interface Copied {
  readonly at: number;
  readonly lines: number;
  readonly rows: number;
}

const COPY = join(import.meta.dirname, '../copy.ts');

export const changeEvents: Kind<ChangeEventsScenario> = {
  async check(job) {
    const { rows, bytes, md5 } = await verifyStream(streamOf(job), 'identity');
    return { text: `${rows} rows, ${bytes} bytes, md5 ${md5}`, rows, bytes };
  },

  async measure(job) {
    const writer = await startWriter(job.ground, rowsOf(job));
    try {
      const updates = updatesOf(job);
      const alone = await cpuOfWriting(job, writer, updates);
      const path = await placeNow(urlOf(job));
      const copy = await startProcess({ file: COPY, args: [urlOf(job) + path], environment: {} });
      try {
        return await observe(job, writer, copy, updates, alone);
      } finally {
        await copy.stop();
      }
    } finally {
      await writer.stop();
    }
  },
};

/** mongod's CPU seconds of the writes without followers. */
async function cpuOfWriting(
  job: Job<ChangeEventsScenario>,
  writer: Writer,
  updates: number,
): Promise<number> {
  const { mongodPid } = job.ground;
  const before = cpuSeconds(mongodPid);
  await writer.write({ updates, perSecond: job.scenario.changesPerSecond, mark: nextMark() });
  return cpuSeconds(mongodPid) - before;
}

async function observe(
  job: Job<ChangeEventsScenario>,
  writer: Writer,
  copy: Measured,
  updates: number,
  alone: number,
): Promise<Round> {
  const mark = nextMark();
  await copy.ask(`"${mark}"`);
  const endUsage = startUsage(pidsOf(job));
  const [written] = await Promise.all([
    writer.write({ updates, perSecond: job.scenario.changesPerSecond, mark }),
    copy.ask(''),
  ]);
  const usage = endUsage();
  const { at, lines, rows } = JSON.parse(await copy.ask(streamOf(job))) as Copied;
  if (rows !== rowsOf(job) + 1)
    throw new Error(`${job.subject.name}: ${rows} rows instead of ${rowsOf(job) + 1}`);
  const seconds = (at - written.began) / 1000;
  return {
    seconds,
    count: updates,
    usage,
    figures: {
      lines,
      linesPerSecond: lines / seconds,
      changesPerSecond: written.updates / written.seconds,
      mongodMicroseconds: ((usage.mongod - alone) / updates) * 1e6,
    },
  };
}

/** The orders that change, and the one that is written at last. */
function streamOf(job: Job<ChangeEventsScenario>): string {
  return `${urlOf(job)}${ORDERS}/stream?limit=${rowsOf(job) + 1}`;
}

/** The number of orders that change in turn, each at least once. */
function rowsOf(job: Job<ChangeEventsScenario>): number {
  return Math.min(job.scenario.rows, job.ground.rows - 1, updatesOf(job));
}

function updatesOf({ scenario, effort }: Job<ChangeEventsScenario>): number {
  return Math.ceil(scenario.changesPerSecond * effort.share * effort.seconds);
}
