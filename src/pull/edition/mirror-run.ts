import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChunkEntry, EditionHead, IndexEntry } from '../../base/edition/head.ts';
import { chunkFile, deltaFile, indexFile } from '../../base/edition/names.ts';
import type { PullCommand } from '../arguments.ts';
import { jsonIn, Refusal } from '../retry.ts';
import { isMissing } from '../state.ts';
import { NotThere, type EditionFiles } from './edition-files.ts';
import { checkSums, sha256 } from './edition-run.ts';
import { EditionSum } from './edition-sum.ts';
import { inOrder } from './in-order.ts';
import { headIn, indexIn } from './read-head.ts';
import type { Report } from './report.ts';

const HEAD = 'edition.json';
/** Where the files of a mirror are, relative to its head, wherever those of the server are. */
const CHUNKS = 'chunks/';
const PARTS = '.part';

/**
 * A folder that has the files of editions as the server has them: `edition.json`, `edition/`, `chunks/`. Each file gets its name
 * when it is whole and on disk, and the head comes last. So the folder is one whole edition whenever it is read, and what a
 * kill leaves is of use to the next run. A mirror has only the editions that were the newest in one of its runs, so its head
 * names no others.
 */
export class MirrorRun {
  readonly #folder: string;
  readonly #command: PullCommand;
  readonly #files: EditionFiles;
  readonly #report: Report;

  constructor(command: PullCommand, files: EditionFiles, report: Report) {
    this.#folder = command.output;
    this.#command = command;
    this.#files = files;
    this.#report = report;
  }

  async run(): Promise<void> {
    for (const folder of ['.', 'chunks', 'edition'])
      await mkdir(join(this.#folder, folder), { recursive: true });
    const known = this.#command.restart ? null : await this.#headAt(HEAD);
    const head = await this.#newest(known);
    await this.#clean(head);
    this.#report.done(
      head,
      known?.edition === head.edition ? 'had already' : 'mirrored',
      this.#files.received,
    );
  }

  /** The newest edition, once the folder has it. An edition that is removed meanwhile is not the newest. */
  async #newest(known: EditionHead | null): Promise<EditionHead> {
    for (let head = await this.#files.head(); ;)
      try {
        const own = await this.#ownOf(head);
        // A head of the same rows may have a later cursor, or other formats.
        if (textOf(own) !== (known && textOf(known))) await this.#take(head, own);
        return own;
      } catch (error) {
        const newest = error instanceof NotThere ? await this.#files.newest() : null;
        if (!newest || newest.edition === head.edition) throw error;
        head = newest;
      }
  }

  /** The head as the mirror has it: its files are beside it, and so are the editions that it names as kept. */
  async #ownOf(head: EditionHead): Promise<EditionHead> {
    const there = new Set(await readdir(join(this.#folder, CHUNKS)));
    const kept: EditionHead['kept'][number][] = [];
    for (const one of head.kept) if (await this.#has(one.edition, there)) kept.push(one);
    return { ...head, files: CHUNKS, kept };
  }

  /** `there`: the files in the folder of chunks. */
  async #has(edition: string, there: ReadonlySet<string>): Promise<boolean> {
    const head = await this.#headAt(`edition/${edition}.json`);
    if (!head) return false;
    const named = new Set<string>();
    await this.#name(head, named);
    return [...named].every((file) => there.has(file));
  }

  /** `own`: the head as the mirror will have it. */
  async #take(head: EditionHead, own: EditionHead): Promise<void> {
    const sum = new EditionSum(sha256());
    await this.#report.showing(head.rows, async (show) => {
      const chunks = inOrder(this.#entries(head), this.#command.parallel, async (entry, signal) => {
        for (const format of head.formats) await this.#takeChunk(head, entry, format, signal);
        return entry;
      });
      for await (const entry of chunks) {
        sum.add(entry);
        show(sum.rows, sum.bytes);
      }
    });
    sum.check(head);
    for (const delta of head.deltas) {
      const path = CHUNKS + deltaFile(delta.name);
      if ((await this.#sizeOf(path)) !== delta.bytes)
        await this.#put(path, (await this.#files.deltaIn(head, delta)).file);
    }
    const text = Buffer.from(textOf(own));
    const kept = `edition/${head.edition}.json`;
    if ((await this.#sizeOf(kept)) === null) await this.#put(kept, text); // it never changes
    await this.#put(HEAD, text);
  }

  /** The chunks of an edition, whose index files are taken on the way. */
  async *#entries(head: EditionHead): AsyncGenerator<ChunkEntry, void, undefined> {
    for (const entry of head.index) yield* this.#below(head, entry);
  }

  async *#below(head: EditionHead, entry: IndexEntry): AsyncGenerator<ChunkEntry, void, undefined> {
    const path = CHUNKS + indexFile(entry.name);
    const had = await readFile(join(this.#folder, path)).catch(unlessMissing);
    const isWhole = had !== null && createHash('sha256').update(had).digest('hex') === entry.name;
    const bytes = isWhole ? had : await this.#files.index(head, entry);
    if (!isWhole) await this.#put(path, bytes);
    const file = indexIn(jsonIn(new TextDecoder().decode(bytes)), entry.level);
    if (!file) throw new Refusal(`the index file ${entry.name} is not what its entry says`);
    if ('chunks' in file) yield* file.chunks;
    else for (const one of file.index) yield* this.#below(head, one);
  }

  async #takeChunk(head: EditionHead, entry: ChunkEntry, format: string, signal: AbortSignal): Promise<void> {
    const path = CHUNKS + chunkFile(entry.name, format, head.schema);
    if ((await this.#sizeOf(path)) === entry.sizes[format]) return;
    if (format === 'parquet') return this.#put(path, await this.#files.parquet(head, entry, signal));
    const { file, rows } = await this.#files.chunkIn(head, entry, format, signal);
    checkSums(entry, rows);
    await this.#put(path, file);
  }

  /** Removes the files that no kept head names. */
  async #clean(newest: EditionHead): Promise<void> {
    const kept = new Set([newest, ...newest.kept].map(({ edition }) => `${edition}.json`));
    const named = new Set<string>();
    await this.#name(newest, named);
    for (const file of await readdir(join(this.#folder, 'edition'))) {
      const head = kept.has(file) ? await this.#headAt(`edition/${file}`) : null;
      if (head) await this.#name(head, named);
      else await rm(join(this.#folder, 'edition', file), { force: true });
    }
    for (const file of await readdir(join(this.#folder, 'chunks')))
      if (!named.has(file)) await rm(join(this.#folder, 'chunks', file), { force: true });
    await rm(join(this.#folder, `${HEAD}${PARTS}`), { force: true });
  }

  /** Adds the names of the files of an edition. */
  async #name(head: EditionHead, named: Set<string>): Promise<void> {
    for (const { name } of head.deltas) named.add(deltaFile(name));
    const visit = async (entries: readonly IndexEntry[]): Promise<void> => {
      for (const { name, level } of entries) {
        named.add(indexFile(name));
        const text = await readFile(join(this.#folder, CHUNKS, indexFile(name)), 'utf8').catch(unlessMissing);
        const file = text === null ? null : indexIn(jsonIn(text), level);
        if (!file) continue; // of an edition that a kill has left without it
        if ('chunks' in file)
          for (const { name } of file.chunks)
            for (const format of head.formats) named.add(chunkFile(name, format, head.schema));
        else await visit(file.index);
      }
    };
    await visit(head.index);
  }

  async #headAt(path: string): Promise<EditionHead | null> {
    const text = await readFile(join(this.#folder, path), 'utf8').catch(unlessMissing);
    return text === null ? null : headIn(jsonIn(text));
  }

  async #sizeOf(path: string): Promise<number | null> {
    return (await stat(join(this.#folder, path)).catch(unlessMissing))?.size ?? null;
  }

  /** Gives a file its name when it is on disk. */
  async #put(path: string, bytes: Uint8Array): Promise<void> {
    const whole = join(this.#folder, path);
    const part = await open(`${whole}${PARTS}`, 'w');
    try {
      await part.writeFile(bytes);
      await part.sync();
    } finally {
      await part.close();
    }
    await rename(`${whole}${PARTS}`, whole);
  }
}

function textOf(head: EditionHead): string {
  return `${JSON.stringify(head)}\n`;
}

function unlessMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}
