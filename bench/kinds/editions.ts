import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { EditionHead } from '../../src/base/edition/head.ts';
import { crc32 } from '../../src/pipeline/crc32.ts';
import { itemsFile } from '../item-files.ts';
import { runToEnd, startProcess, type Measured } from '../process.ts';
import { readStream } from '../reader.ts';
import type { Round } from '../results.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';

/** The first edition of all items, or the one behind changes that are scattered over them. Counts rows, or changes. */
export interface EditionsScenario {
  readonly kind: 'editions';
  /** Rows that change. 0: the first edition is measured. */
  readonly changes: number;
}

const CLI = join(import.meta.dirname, '../../dist/process/cli.js');
const ASK_AGAIN_MS = 5;
let made = 0;

export const editions: Kind<EditionsScenario> = {
  async check(job) {
    const { rows, bytes, crc } = await sumOf(`${urlOf(job)}/items/stream`);
    return { text: crc, rows, bytes };
  },

  measure: (job) => withEditions(job, (run) => (job.scenario.changes === 0 ? run.first() : run.next())),
};

/** Calls `work` with a server of its own that makes the first edition of the items, under a name that no server had. */
export async function withEditions<T>(job: Job<unknown>, work: (run: EditionsRun) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-editions-'));
  const name = `items${process.pid}.${made++}`;
  const RESOURCES_FILE = join(folder, 'resources.json');
  const resource = { collection: 'items', editions: { every: '168 h' } };
  await writeFile(RESOURCES_FILE, JSON.stringify({ resources: { items: {}, [name]: resource } }));
  const idle = await withFresh(job.subject, ({ process: { pid } }) =>
    Promise.resolve(memoryOf(pid, 'RssAnon')),
  );
  const FILES = pathToFileURL(join(folder, 'files')).href;
  const { program } = job.subject;
  const environment = { ...program.environment, RESOURCES_FILE, FILES };
  const server = await startProcess({ ...program, environment });
  try {
    return await work(new EditionsRun(job, server, { name, idle, folder }));
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A server and its editions of the items. */
export class EditionsRun {
  readonly url: string;
  readonly folder: string;
  readonly server: Measured;
  readonly #job: Job<unknown>;
  readonly #idle: number;

  constructor(
    job: Job<unknown>,
    server: Measured,
    { name, idle, folder }: { readonly name: string; readonly idle: number; readonly folder: string },
  ) {
    this.#job = job;
    this.server = server;
    this.url = `${server.url ?? ''}/${name}`;
    this.#idle = idle;
    this.folder = folder;
  }

  async first(): Promise<Round> {
    const { pid } = this.server;
    const endUsage = startUsage(this.#pids);
    const started = performance.now();
    let peak = 0;
    const head = await this.newest(() => (peak = Math.max(peak, memoryOf(pid, 'RssAnon'))));
    const seconds = (performance.now() - started) / 1000;
    const usage = endUsage();
    await this.#prove(head);
    const figures = { megabytesOverIdle: (peak - this.#idle) / 1e6, chunks: chunksOf(head) };
    return { seconds, count: head.rows, usage, figures };
  }

  /**
   * Changes rows, and then changes them back: the last edition must have the name of the first, and is the one that is measured.
   * The one before it compiles what a server needs for its first edition behind changes.
   */
  async next(): Promise<Round> {
    const first = await this.newest();
    const { changes } = this.#job.scenario as EditionsScenario;
    const lines = await scattered(this.#job.ground.rows, changes);
    await this.#import(lines.map((line) => line.replace('"name":"', '"name":"x')));
    const changed = await this.#madeBehind(first);
    await this.#prove(changed.head);
    await this.#import(lines);
    const endUsage = startUsage(this.#pids);
    const { head, seconds, read } = await this.#madeBehind(changed.head);
    const usage = endUsage();
    if (head.edition !== first.edition) throw new Error('the same rows have an edition of another name');
    if (read > 2 * changes) throw new Error(`${read} chunks were read for ${changes} changes`);
    const figures = { editionMs: seconds * 1000, chunksRead: read, chunks: chunksOf(head) };
    return { seconds, count: changes, usage, figures };
  }

  /** The newest head, once there is one. */
  async newest(look: () => void = () => undefined): Promise<EditionHead> {
    for (;;) {
      look();
      const answer = await fetch(`${this.url}/edition`);
      const text = await answer.text();
      if (answer.status === 200) return JSON.parse(text) as EditionHead;
      if (answer.status !== 503) throw new Error(`a head was answered ${answer.status}: ${text}`);
      await sleep(ASK_AGAIN_MS);
    }
  }

  async #madeBehind(before: EditionHead) {
    const logged = this.server.logged('"edition made"');
    const started = Date.now();
    const answer = await fetch(`${this.url}/edition`, { method: 'POST' });
    if (answer.status !== 202) throw new Error(`an edition was answered ${answer.status}`);
    // Lines of the log are written together, a tenth of a second late. Each says when it was made.
    const { read, time } = JSON.parse(await logged) as { readonly read: number; readonly time: number };
    const seconds = (time - started) / 1000;
    for (;;) {
      const head = await this.newest();
      if (head.edition !== before.edition) return { head, read, seconds };
      await sleep(ASK_AGAIN_MS);
    }
  }

  /** An edition has the rows, bytes and CRC-32 of the stream. */
  async #prove({ rows, bytes, crc32: crc }: EditionHead): Promise<void> {
    const stream = await sumOf(`${this.url}/stream`);
    if (stream.rows !== rows || stream.bytes !== bytes || stream.crc !== crc)
      throw new Error(`an edition of ${rows} rows, ${bytes} bytes, ${crc} is not the stream`);
  }

  async #import(lines: readonly string[]): Promise<void> {
    const file = join(this.folder, 'changed.ndjson');
    await writeFile(file, lines.map((line) => `${line}\n`).join(''));
    const args = ['import', file, '--into', 'items', '--on-conflict', 'replace'];
    await runToEnd({ file: CLI, args, environment: this.#job.ground.environment });
  }

  get #pids() {
    return { ...pidsOf(this.#job), server: this.server.pid };
  }
}

function chunksOf({ index }: EditionHead): number {
  return index.reduce((sum, { chunks }) => sum + chunks, 0);
}

/** Lines of a file of items that lie far apart. */
async function scattered(rows: number, count: number): Promise<string[]> {
  const lines = (await readFile(await itemsFile(rows, 'ndjson'), 'utf8')).split('\n').slice(0, -1);
  const step = Math.max(1, Math.floor(rows / count));
  return lines.filter((_, n) => n % step === Math.floor(step / 2)).slice(0, count);
}

async function sumOf(url: string): Promise<{ rows: number; bytes: number; crc: string }> {
  const sum = { rows: 0, bytes: 0, crc: 0 };
  await readStream(url, 'identity', (piece) => {
    sum.bytes += piece.length;
    sum.crc = crc32(piece, sum.crc);
    for (let at = piece.indexOf(0x0a); at >= 0; at = piece.indexOf(0x0a, at + 1)) sum.rows++;
  });
  return { ...sum, crc: sum.crc.toString(16).padStart(8, '0') };
}
