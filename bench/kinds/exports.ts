import { setTimeout as sleep } from 'node:timers/promises';
import { load, type Load, type LoadOptions } from '../load.ts';
import type { Round } from '../results.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind, type Proof } from './kind.ts';

/** Concurrent exports. Counts the rows of all files. */
export interface ExportsScenario {
  readonly kind: 'exports';
  /** The body of the order. */
  readonly body: Readonly<Record<string, string>>;
  readonly atOnce: number;
  /** The requests of other clients during the exports. Without it there are none. */
  readonly beside?: { readonly page: string; readonly connections: number };
}

interface Export {
  readonly id: string;
  readonly state: string;
  readonly file?: { readonly rows: number; readonly bytes: number; readonly sha256: string };
}

const ASK_AGAIN_MS = 20;
/** How long pages are asked for alone, in times the effort: about as long as two exports take. */
const ALONE = 2;

export const exports: Kind<ExportsScenario> = {
  async check(job) {
    const { file } = await made(urlOf(job), job.scenario.body);
    if (!file) throw new Error('an export has no file');
    return { text: file.sha256, rows: file.rows, bytes: file.bytes };
  },

  measure(job, proof) {
    return withFresh(job.subject, (subject) => observe({ ...job, subject }, proof));
  },
};

async function observe(job: Job<ExportsScenario>, proof: Proof): Promise<Round> {
  const { body, atOnce, beside } = job.scenario;
  const url = urlOf(job);
  const { pid } = job.subject.process;
  const ask = async (until: LoadOptions['until']) =>
    beside && load({ url: url + beside.page, connections: beside.connections, until });
  let before = memoryOf(pid, 'RssAnon');
  let peak = before;
  const look = () => (peak = Math.max(peak, memoryOf(pid, 'RssAnon')));
  const exportAll = () => Promise.all(Array.from({ length: atOnce }, () => made(url, body, look)));

  let alone: Load | undefined;
  if (beside) {
    // V8 compiles pages and exports in their first seconds: p99 of pages alone was 10 to 28 ms in them, and is 7 to 14 later.
    await ask(job.effort);
    before = memoryOf(pid, 'RssAnon');
    const warming = exportAll();
    await ask({ settled: warming });
    await warming;
    alone = await ask({ seconds: ALONE * job.effort.seconds });
  }
  const endUsage = startUsage(pidsOf(job));
  const started = performance.now();
  const exporting = exportAll();
  const asking = ask({ settled: exporting });
  const files = (await exporting).map(({ file }) => file);
  const seconds = (performance.now() - started) / 1000;
  if (files.some((file) => file?.rows !== proof.rows || file.sha256 !== proof.text))
    throw new Error('an export has other bytes than the first one');
  const asked = await asking;
  return {
    seconds,
    count: atOnce * proof.rows,
    usage: endUsage(),
    ...(asked && { latency: asked.latency }),
    figures: {
      ...(alone &&
        asked && {
          aloneP99Ms: alone.latency.p99,
          aloneP50Ms: alone.latency.p50,
          alonePerSecond: alone.requests / alone.seconds,
          besidePerSecond: asked.requests / asked.seconds,
        }),
      megabytesOverIdle: (peak - before) / 1e6,
      fileMegabytes: proof.bytes / 1e6,
    },
  };
}

/** Orders an export, waits for its file, and removes it. */
async function made(url: string, body: object, look: () => void = () => undefined): Promise<Export> {
  const headers = { 'content-type': 'application/json' };
  const ordered = await fetch(`${url}/exports`, { method: 'POST', headers, body: JSON.stringify(body) });
  if (ordered.status !== 202) throw new Error(`an order was answered ${ordered.status}`);
  const { id } = (await ordered.json()) as Export;
  for (;;) {
    look();
    const found = (await (await fetch(`${url}/exports/${id}`)).json()) as Export;
    if (found.state === 'failed') throw new Error('an export failed');
    if (found.state !== 'complete') await sleep(ASK_AGAIN_MS);
    else {
      await fetch(`${url}/exports/${id}`, { method: 'DELETE' });
      return found;
    }
  }
}
