import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../load.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Kind } from './kind.ts';

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

export const exports: Kind<ExportsScenario> = {
  async check(job) {
    const { file } = await made(urlOf(job), job.scenario.body);
    if (!file) throw new Error('an export has no file');
    return { text: file.sha256, rows: file.rows, bytes: file.bytes };
  },

  measure(job, proof) {
    return withFresh(job.subject, async (subject) => {
      const { scenario, effort } = job;
      const url = urlOf({ ...job, subject });
      const { body, atOnce, beside } = scenario;
      const ask = async () =>
        beside && load({ url: url + beside.page, connections: beside.connections, until: effort });
      const alone = await ask();
      const { pid } = subject.process;
      const before = memoryOf(pid, 'RssAnon');
      let peak = before;
      const look = () => (peak = Math.max(peak, memoryOf(pid, 'RssAnon')));
      const endUsage = startUsage(pidsOf({ ...job, subject }));
      const started = performance.now();
      const orders = Array.from({ length: atOnce }, () => made(url, body, look));
      const asking = ask();
      const files = (await Promise.all(orders)).map(({ file }) => file);
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
          ...(alone && { aloneP99Ms: alone.latency.p99 }),
          megabytesOverIdle: (peak - before) / 1e6,
          fileMegabytes: proof.bytes / 1e6,
        },
      };
    });
  },
};

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
