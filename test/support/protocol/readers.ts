import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type * as client from '../../../clients/javascript/sluice.ts';
import { Requests } from '../../../src/load/http/requests.ts';
import { StreamContent } from '../../../src/load/http/stream-content.ts';
import { parsePullArguments } from '../../../src/pull/command.ts';
import { EditionRun } from '../../../src/pull/edition/edition-run.ts';
import { filesOf } from '../../../src/pull/edition/newest-edition.ts';
import { Report } from '../../../src/pull/edition/report.ts';
import { ExportRun } from '../../../src/pull/export-run.ts';
import { decompress, getAnswer } from '../../../src/pull/http.ts';
import { BEGINNING, DEFAULTS, Interruption, Refusal } from '../../../src/pull/pull.ts';
import { provedRows, type GetContent, type ProvingOptions } from '../../../src/pull/proved-rows.ts';
import { listening } from '../ports.ts';
import type { ProtocolCase } from './case-server.ts';
import { openChromium, openTab } from '../web/chromium.ts';
import { readByModule } from './module-reader.mjs';

const ROOT = join(import.meta.dirname, '../../..');

/** A case that a reader is to read. Times in seconds. */
export interface ReadJob {
  readonly reads: ProtocolCase['reads'];
  /** The URL of the resource with its query, of the export, or of the edition. */
  readonly url: string;
  readonly since: string | null;
  /** An API key, for the server alone. */
  readonly key: string | null;
  readonly retryFor: number;
  readonly timeout: number;
}

/** What a reader made of a case. */
export interface Reading {
  /** The lines that it gave, or the text of the whole file or edition. */
  readonly yields: readonly string[];
  readonly ends: string;
  readonly status?: number | null;
  readonly says?: string;
}

export type CaseReader = (job: ReadJob) => Promise<Reading>;

function ending(error: unknown): Omit<Reading, 'yields'> {
  if (error instanceof Interruption) return { ends: 'interrupted', says: error.message };
  if (error instanceof Refusal) return { ends: 'refused', status: error.status ?? null, says: error.message };
  throw error;
}

/** How a reader waits between its attempts, where it does otherwise than pull. */
type Waits = Partial<Pick<ProvingOptions, 'clock' | 'steadyPauseMs'>>;

/** A reader of src/pull, by whatever requests it gets its bytes. */
const byPull =
  (getContent: GetContent, waits: Waits = {}): CaseReader =>
  async ({ reads, url, since, retryFor, timeout }) => {
    const follow = reads === 'changes';
    const address = new URL(url);
    if (!address.searchParams.has('resources')) address.pathname += follow ? '/changes' : '/stream';
    const { signal } = new AbortController();
    const from = { ...BEGINNING, cursor: since };
    const times = { retryForMs: retryFor * 1000, idleMs: timeout * 1000 };
    let proved = '';
    let held: Buffer[] = [];
    const lines = () => proved.split('\n').slice(0, -1);
    try {
      for await (const step of provedRows(address, {
        ...DEFAULTS,
        ...waits,
        ...times,
        signal,
        follow,
        from,
        getContent,
      })) {
        if (step.kind === 'rows') held.push(Buffer.from(step.bytes));
        else if (step.kind === 'void') held = [];
        else if (step.kind === 'restart') return { yields: lines(), ends: 'refused', status: 410 };
        else {
          proved += Buffer.concat(held).toString();
          held = [];
          if (follow && step.upToDate) return { yields: lines(), ends: 'current' };
        }
      }
      return { yields: lines(), ends: 'whole' };
    } catch (error) {
      return { yields: lines(), ...ending(error) };
    }
  };

const NOBODY = new PassThrough().resume();

/** A file that `sluice pull` makes. `run`: makes it at a path. */
async function byFile(run: (output: string) => Promise<void>): Promise<Reading> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-case-'));
  const output = join(folder, 'file');
  try {
    await run(output);
    return { yields: [await readFile(output, 'utf8')], ends: 'whole' };
  } catch (error) {
    return { yields: [], ...ending(error) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** How `sluice pull` asks. */
function asksOf({ key, retryFor, timeout }: ReadJob) {
  const { signal } = new AbortController();
  return { ...DEFAULTS, retryForMs: retryFor * 1000, idleMs: timeout * 1000, signal, getAnswer, key };
}

/** The file of an export, as `sluice pull --export` gets it. */
const fileByPull: CaseReader = (job) =>
  byFile((output) => {
    const command = parsePullArguments(['--export', job.url, '-o', output]);
    return new ExportRun(command, { stderr: NOBODY, isTTY: false }, asksOf(job)).run();
  });

/** The rows of an edition, as `sluice pull URL/edition` gets them. */
const editionByPull: CaseReader = (job) =>
  byFile((output) => {
    const command = parsePullArguments([job.url, '-o', output]);
    const asks = asksOf(job);
    const report = new Report({ ...asks, stdout: NOBODY, stderr: NOBODY, isTTY: false }, output);
    return new EditionRun(command, filesOf(command, report, { ...asks, decompress }), report).run();
  });

/** The requests of `sluice load`. */
const getByLoad: GetContent = async (url, accept, { signal }) => {
  const requests = new Requests(new URL(url.origin), null);
  const content = new StreamContent(
    requests.origin,
    requests.get(url.pathname + url.search, { accept, coding: 'identity' }),
    { bytes: () => undefined, firstByte: () => undefined, gap: () => undefined },
  );
  signal.addEventListener('abort', () => content.close());
  return content.decoded((await content.head(accept)).header('content-encoding'));
};

const BUILT = pathToFileURL(join(ROOT, 'src/web/clients/sluice.mjs')).href;

const byModule: CaseReader = async (job) => readByModule((await import(BUILT)) as typeof client, job);

/** Reads cases with sluice.mjs in a page of another origin than the servers. The page has a server of its own. */
export async function readByChromium(t: TestContext, jobs: readonly ReadJob[]) {
  const browser = await openChromium(t);
  if (!browser) return null;
  const modules = new Map([
    ['/sluice.mjs', BUILT],
    ['/module-reader.mjs', new URL('module-reader.mjs', import.meta.url).href],
  ]);
  const server = createServer((request, response) => {
    const file = modules.get(request.url ?? '');
    const type = file === undefined ? 'text/html' : 'text/javascript';
    response.writeHead(200, { 'content-type': type }).end(file && readFileSync(fileURLToPath(file)));
  });
  const { page } = await openTab(browser);
  await page.goto(`http://127.0.0.1:${await listening(t, server)}/`);
  const program = `Promise.all([import('/sluice.mjs'), import('/module-reader.mjs')]).then(([client, { readByModule }]) =>
    Promise.all(${JSON.stringify(jobs)}.map((job) => readByModule(client, job))))`;
  return page.evaluate<readonly Reading[]>(program);
}

/** The explorer's requests take the key of their tab. */
const SESSION = { getItem: () => null };

const PAGE = pathToFileURL(join(ROOT, 'src/web/page/api.ts')).href;

const byExplorer: CaseReader = async (job) => {
  Object.assign(globalThis, { sessionStorage: SESSION });
  // Files of the page have the types of a browser, which these have not.
  const { PROVING } = (await import(PAGE)) as { PROVING: Waits & { getContent: GetContent } };
  const { clock, steadyPauseMs } = PROVING;
  const waits: Waits = { ...(clock && { clock }), ...(steadyPauseMs !== undefined && { steadyPauseMs }) };
  return byPull((url, accept, options) => PROVING.getContent(url, accept, options), waits)(job);
};

const linesByPull = byPull((url, accept, options) => DEFAULTS.getContent(url, accept, options));

/** Readers that download no files, and no editions. */
export const LINES_ALONE: ReadonlySet<string> = new Set(['load', 'explorer']);

const PULLS: Readonly<Record<ReadJob['reads'], CaseReader>> = {
  rows: linesByPull,
  changes: linesByPull,
  file: fileByPull,
  edition: editionByPull,
};

export const READERS: Readonly<Record<string, CaseReader>> = {
  pull: (job) => PULLS[job.reads](job),
  'sluice.mjs': byModule,
  load: byPull(getByLoad),
  explorer: byExplorer,
};

/** Reads cases with the Python client, all at the same time in one process. */
export async function readByPython(python: string, jobs: readonly ReadJob[]): Promise<readonly Reading[]> {
  const child = spawn(python, [join(import.meta.dirname, 'readers.py')], {
    env: { ...process.env, PYTHONPATH: join(ROOT, 'clients/python/src') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(jobs));
  return JSON.parse(await text(child.stdout)) as Reading[];
}
