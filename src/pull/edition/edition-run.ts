import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { open, rename, rm, truncate, type FileHandle } from 'node:fs/promises';
import type { ChunkEntry, EditionHead } from '../../base/edition/head.ts';
import { crc32 } from '../../pipeline/crc32.ts';
import { countOf } from '../../terminal/text.ts';
import { STDOUT, type PullCommand } from '../arguments.ts';
import { Refusal } from '../retry.ts';
import { isMissing, readState, writeState } from '../state.ts';
import { cutFile, readChunk, type CutChunk } from './cut-file.ts';
import { NotThere, type EditionFiles } from './edition-files.ts';
import { EditionSum } from './edition-sum.ts';
import { inOrder } from './in-order.ts';
import type { Report } from './report.ts';

/** Chunks that are on disk already, by their names. */
type LocalChunks = ReadonlyMap<string, CutChunk>;

/**
 * The pull of an edition into a file. `FILE.part` grows by chunks, and is FILE once it is the edition. What an earlier run or an
 * older edition left is cut by the rule of chunks, so it says by itself which of them it has.
 */
export class EditionRun {
  readonly #command: PullCommand;
  readonly #files: EditionFiles;
  readonly #report: Report;
  readonly #part: string;
  readonly #old: string;
  readonly #state: string;

  constructor(command: PullCommand, files: EditionFiles, report: Report) {
    this.#command = command;
    this.#files = files;
    this.#report = report;
    this.#part = `${command.output}.part`;
    this.#old = `${this.#part}.old`;
    this.#state = `${this.#part}.state`;
  }

  async run(): Promise<void> {
    for (let head = await this.#begin(); ;) {
      try {
        const isNew = await (this.#command.output === STDOUT ? this.#toStdout(head) : this.#toFile(head));
        this.#report.done(
          head,
          isNew ? 'pulled and proved' : 'proved, and had already',
          this.#files.received,
        );
        return;
      } catch (error) {
        head = await this.#later(head, error);
      }
    }
  }

  /** The edition that an earlier run began, if it is still kept, or the one that is asked for. */
  async #begin(): Promise<EditionHead> {
    const { output, restart, url } = this.#command;
    if (output === STDOUT) return this.#files.head();
    const found = restart ? null : await readState(this.#state);
    if (found && found.task.url !== url.href)
      throw new Refusal(`${this.#part} belongs to a pull of ${found.task.url}: --restart discards it`);
    if (!found) await this.#forget();
    const [begun] = found?.task.parts ?? [];
    const kept = begun === undefined ? null : await this.#files.kept(begun);
    return kept ?? this.#files.head();
  }

  /** The newest edition, when this one has lost files. Throws the error otherwise. */
  async #later(head: EditionHead, error: unknown): Promise<EditionHead> {
    if (!(error instanceof NotThere)) throw error;
    const newest = this.#command.output === STDOUT ? null : await this.#files.newest();
    if (!newest || newest.edition === head.edition) throw error;
    this.#report.say(`${error.message}; beginning with the newest edition`);
    return newest;
  }

  /** Whether it was not there already. */
  async #toFile(head: EditionHead): Promise<boolean> {
    const { output, url, restart } = this.#command;
    if (!restart && (await this.#isThere(head))) {
      await this.#forget();
      return false;
    }
    await writeState(this.#state, { task: { url: url.href, parts: [head.edition] }, places: [] });
    const sum = new EditionSum(sha256());
    const begun = await this.#prefix(head);
    const part = await open(this.#part, 'a');
    try {
      await this.#fill(part, head, begun, sum);
      await part.sync();
    } finally {
      await part.close();
    }
    sum.check(head);
    await rename(this.#part, output);
    await this.#forget();
    return true;
  }

  /** Whether the output is this edition, as its own rows say. */
  async #isThere(head: EditionHead): Promise<boolean> {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of cutFile(this.#command.output, head.target)) {
      hash.update(`${chunk.name}\n`);
      bytes += chunk.bytes;
    }
    const isEmpty = bytes === 0 && !(await exists(this.#command.output));
    return !isEmpty && bytes === head.bytes && hash.digest('hex') === head.edition;
  }

  /**
   * The number of chunks at the beginning of the part file that are those of the edition. What is behind them is cut off; a part
   * file of another edition is kept aside for its chunks.
   */
  async #prefix(head: EditionHead): Promise<number> {
    const own = cutFile(this.#part, head.target);
    let count = 0;
    let bytes = 0;
    let others = 0;
    const entries = this.#files.chunks(head);
    for await (const chunk of own) {
      const entry = others > 0 ? undefined : (await entries.next()).value;
      if (others === 0 && entry?.name === chunk.name) {
        count++;
        bytes += chunk.bytes;
      } else others++;
    }
    if (others > 1) {
      await rename(this.#part, this.#old);
      return 0;
    }
    await truncate(this.#part, bytes).catch(unlessMissing);
    return count;
  }

  async #fill(part: FileHandle, head: EditionHead, begun: number, sum: EditionSum): Promise<void> {
    const local = await this.#local(head);
    if (begun > 0) this.#report.say(`continuing after ${countOf(begun, 'chunk')}`);
    let n = 0;
    const chunks = inOrder(this.#files.chunks(head), this.#command.parallel, async (entry, signal) => {
      if (n++ < begun) return { entry, rows: null };
      return { entry, rows: await this.#rows(head, entry, local, signal) };
    });
    await this.#report.showing(head.rows, async (show) => {
      for await (const { entry, rows } of chunks) {
        if (rows) checkSums(entry, rows);
        if (rows) await part.writeFile(rows);
        sum.add(entry);
        show(sum.rows, sum.bytes);
      }
    });
  }

  async #rows(
    head: EditionHead,
    entry: ChunkEntry,
    local: LocalChunks,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const found = local.get(entry.name);
    const own = found ? await readChunk(found) : null;
    return own ?? (await this.#files.chunk(head, entry, signal));
  }

  async #local(head: EditionHead): Promise<LocalChunks> {
    const found = new Map<string, CutChunk>();
    for (const path of [this.#old, this.#command.output])
      for await (const chunk of cutFile(path, head.target)) found.set(chunk.name, chunk);
    return found;
  }

  async #toStdout(head: EditionHead): Promise<boolean> {
    const { stdout, signal } = this.#report;
    const sum = new EditionSum(sha256());
    const chunks = inOrder(this.#files.chunks(head), this.#command.parallel, async (entry, stop) => ({
      entry,
      rows: await this.#files.chunk(head, entry, stop),
    }));
    for await (const { entry, rows } of chunks) {
      checkSums(entry, rows);
      if (!stdout.write(rows)) await once(stdout, 'drain', { signal });
      sum.add(entry);
    }
    sum.check(head);
    return true;
  }

  async #forget(): Promise<void> {
    for (const path of [this.#part, this.#old, this.#state]) await rm(path, { force: true });
  }
}

/** A hash of the names of chunks. */
export function sha256() {
  const hash = createHash('sha256');
  return { update: (text: string) => hash.update(text), digest: () => hash.digest('hex') };
}

/** The name of a chunk proves its rows, so a sum that differs is a wrong line in the index. */
export function checkSums(entry: ChunkEntry, rows: Uint8Array): void {
  if (crc32(rows) !== parseInt(entry.crc32, 16))
    throw new Refusal(`the index names a wrong CRC-32 of the chunk ${entry.name}`);
}

async function exists(path: string): Promise<boolean> {
  const file = await open(path, 'r').catch(unlessMissing);
  await file?.close();
  return file !== null;
}

function unlessMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}
