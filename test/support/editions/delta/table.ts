import { createHash } from 'node:crypto';
import { BSON } from '../../../../src/store/values/bson.ts';
import type { ChunkEntry, EditionHead } from '../../../../src/base/edition/head.ts';
import { chunkFile, nameText } from '../../../../src/base/edition/names.ts';
import { DeltaLog } from '../../../../src/editions/delta/log.ts';
import { parquetOf } from '../../../../src/editions/delta/parquet.ts';
import type { TableSchema } from '../../../../src/editions/delta/schema.ts';
import type { TableEdition } from '../../../../src/editions/face.ts';
import type { LogObjects } from '../../../../src/editions/delta/log-files.ts';

/** One row in about so many ends a chunk, by a hash of its id. */
const ROWS_OF_CHUNK = 5;
const BEGIN = Date.parse('2026-01-01T00:00:00Z');

/** An edition with the lines of its rows. */
export interface MadeEdition extends TableEdition {
  readonly rows: ReadonlyMap<string, string>;
}

/** Makes editions of rows, as the builder does: the files of chunks first, then the log. */
export class TestTable {
  readonly editions: MadeEdition[] = [];
  readonly objects: LogObjects;
  readonly resource: string;
  readonly keep: number;
  schema: TableSchema;

  constructor(objects: LogObjects, resource: string, schema: TableSchema, keep: number) {
    this.objects = objects;
    this.resource = resource;
    this.schema = schema;
    this.keep = keep;
  }

  get newest(): MadeEdition | undefined {
    return this.editions.at(-1);
  }

  /** The editions that can be read. */
  get kept(): readonly MadeEdition[] {
    return this.editions.slice(-this.keep);
  }

  /** Stores the chunks of rows, by their ids, as the next edition. `sequence`: its number. */
  async store(
    rows: ReadonlyMap<string, string>,
    sequence = (this.newest?.head.sequence ?? -1) + 1,
  ): Promise<MadeEdition> {
    const chunks: ChunkEntry[] = [];
    for (const ids of cut([...rows.keys()].sort())) chunks.push(await this.#chunk(ids, rows));
    const edition = createHash('sha256')
      .update(nameText(chunks.map(({ name }) => name)))
      .digest('hex');
    const kept = this.editions.slice(1 - this.keep || this.editions.length).toReversed();
    const head: EditionHead = {
      edition,
      resource: this.resource,
      sequence,
      at: new Date(BEGIN + 1000 * sequence).toISOString(),
      rows: rows.size,
      bytes: chunks.reduce((sum, { bytes }) => sum + bytes, 0),
      crc32: '00000000',
      changes: '',
      target: 1000,
      formats: ['parquet'],
      schema: this.schema.name,
      files: '',
      index: [],
      deltas: [],
      kept: kept.map(({ head: { edition: name, at } }) => ({ edition: name, at })),
    };
    const made = { head, chunks, schema: this.schema, rows: new Map(rows) };
    this.editions.push(made);
    return made;
  }

  /** Makes the newest edition the newest version of the table. */
  async commit(objects = this.objects): Promise<void> {
    const { newest } = this;
    if (!newest) throw new TypeError('there is no edition');
    await this.commitOf(newest, this.kept.at(-2) ?? null, objects);
  }

  async commitOf(edition: MadeEdition, previous: MadeEdition | null, objects = this.objects): Promise<void> {
    await new DeltaLog(objects).commit(edition, previous);
  }

  /** Removes the chunks that no kept edition has. */
  async sweep(): Promise<void> {
    const needed = new Set(this.kept.flatMap(filesOf));
    for (const file of new Set(this.editions.flatMap(filesOf)))
      if (!needed.has(file)) await this.objects.remove(this.#path(file));
  }

  #path(file: string): string {
    return `${this.resource}/chunks/${file}`;
  }

  async #chunk(ids: readonly string[], rows: ReadonlyMap<string, string>): Promise<ChunkEntry> {
    const text = Buffer.from(ids.map((id) => `${rows.get(id) ?? ''}\n`).join(''));
    const name = createHash('sha256').update(text).digest('hex');
    const file = await parquetOf(text, this.schema);
    await this.objects.put(this.#path(chunkFile(name, 'parquet', this.schema.name)), file, { isNew: true });
    return {
      name,
      rows: ids.length,
      bytes: text.length,
      crc32: '00000000',
      first: ids[0],
      last: ids.at(-1),
      bound: Buffer.from(BSON.serialize({ _id: ids.at(-1) })).toString('base64url'),
      sizes: { parquet: file.length },
    };
  }
}

function filesOf({ chunks, schema }: TableEdition): string[] {
  return chunks.map(({ name }) => chunkFile(name, 'parquet', schema.name));
}

function cut(ids: readonly string[]): string[][] {
  const chunks: string[][] = [];
  let chunk: string[] = [];
  for (const id of ids) {
    chunk.push(id);
    if ((createHash('md5').update(id).digest()[0] ?? 0) >= 256 / ROWS_OF_CHUNK) continue;
    chunks.push(chunk);
    chunk = [];
  }
  return chunk.length > 0 ? [...chunks, chunk] : chunks;
}
