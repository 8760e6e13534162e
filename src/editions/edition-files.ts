import { createHash } from 'node:crypto';
import type { ChunkEntry, DeltaEntry, EditionHead } from '../base/edition/head.ts';
import { filesOfIndex } from '../base/edition/index-tree.ts';
import { chunkFile, deltaFile, indexFile } from '../base/edition/names.ts';
import { FileGoneError } from '../store/files.ts';
import type { ObjectStore } from '../store/objects.ts';
import { packed } from './chunk-files.ts';
import type { DeltaLines } from './delta-lines.ts';
import type { EditionTable } from './record.ts';

/** The files of a resource's editions. */
export class EditionFiles {
  readonly objects: ObjectStore;
  readonly resource: string;

  constructor(objects: ObjectStore, resource: string) {
    this.objects = objects;
    this.resource = resource;
  }

  /** A kept edition. Null: its head is not there. */
  async head(edition: string): Promise<EditionHead | null> {
    const bytes = await this.objects.get(this.headPath(edition));
    return bytes && (JSON.parse(Buffer.from(bytes).toString()) as EditionHead);
  }

  headPath(edition: string): string {
    return `${this.resource}/edition/${edition}.json`;
  }

  /** The chunks of an edition, and the paths of all of its files. */
  async contents(head: EditionHead) {
    const { names, chunks } = await filesOfIndex(head.index, (name) => this.#index(name));
    const files = [...names.map(indexFile), ...head.deltas.map(({ name }) => deltaFile(name))];
    return {
      chunks,
      paths: [...files.map((file) => this.pathOf(file)), ...this.chunkPaths(chunks, head.schema)],
    };
  }

  /** The paths of chunks in all formats that they have. `schema`: the columns of those of Parquet. */
  chunkPaths(chunks: readonly ChunkEntry[], schema: string | undefined): readonly string[] {
    return chunks.flatMap(({ name, sizes }) =>
      Object.keys(sizes).map((format) => this.pathOf(chunkFile(name, format, schema))),
    );
  }

  pathOf(file: string): string {
    return `${this.resource}/chunks/${file}`;
  }

  /** Stores the delta between two editions. Null: there is none. */
  async putDelta(lines: DeltaLines, from: string, to: string): Promise<DeltaEntry | null> {
    const found = lines.lines();
    if (!found) return null;
    const { text, rows, removed } = found;
    const name = createHash('sha256').update(text).digest('hex');
    const bytes = await packed(text, 'gzip');
    await this.objects.put(this.pathOf(deltaFile(name)), bytes);
    return { from, to, name, rows, removed, bytes: bytes.length };
  }

  /** What a walk that was interrupted has read, as it was saved. */
  async work(): Promise<Work | null> {
    const bytes = await this.objects.get(this.#workPath);
    return bytes && (JSON.parse(Buffer.from(bytes).toString()) as Work);
  }

  async saveWork(work: Work | null): Promise<void> {
    if (work) await this.objects.put(this.#workPath, Buffer.from(JSON.stringify(work)));
    else await this.objects.remove(this.#workPath);
  }

  get #workPath(): string {
    return `${this.resource}/work.json`;
  }

  async #index(name: string): Promise<Uint8Array> {
    const bytes = await this.objects.get(this.pathOf(indexFile(name)));
    if (!bytes) throw new FileGoneError(indexFile(name));
    return bytes;
  }
}

/** A walk under way. */
export interface Work {
  /** What it is of: see `formOf` in build.ts. Another one begins anew. */
  readonly form: string;
  /** The columns of its chunks of Parquet. Null: there are none. */
  readonly table: EditionTable | null;
  readonly place: string;
  readonly chunks: readonly ChunkEntry[];
  /** The chunks that changed since they were read, by their places in the list. */
  readonly dirty: readonly number[];
  /** Whether the chunks are all: the rest is to read again those that are dirty. */
  readonly isWhole: boolean;
}
