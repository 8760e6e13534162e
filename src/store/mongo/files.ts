import type { Document } from 'mongodb';
import { Binary } from '../values/bson.ts';
import { FileGoneError, isFileName, type FileStore, type FileWriter } from '../files.ts';
import { documentsOf, MAJORITY, ON_PRIMARY, PRIMARY_FIRST } from './commands.ts';
import type { MongoConnection } from './connection.ts';
import { CODES } from './errors.ts';
import { refuseErrors, type WriteError } from './write/raw-write.ts';

/** The default chunk size of GridFS in bytes (source/gridfs/gridfs-spec.md of github.com/mongodb/specifications). */
const CHUNK_BYTES = 255 * 1024;
/** Chunks in one insert, of 16 MB at most. The pieces of exports fill two or three. */
const INSERT_CHUNKS = 32;
/** Chunks per read: about a megabyte. */
const READ_CHUNKS = 4;
const NAMES = 10_000;
/** The next character after a dot in the order of bytes. */
const BEHIND_DOT = '/';

/** Where the files are, and what is called for each thing that the first file creates. */
interface GridFsOptions {
  /** The beginning of the names of both collections. */
  readonly prefix: string;
  readonly onNotice?: ((message: string) => void) | undefined;
}

/**
 * Files in GridFS, so that every process on this MongoDB can serve any of them. Chunks are written as they fill up, and a
 * majority confirms each. DESIGN.md says why this is not the driver's GridFSBucket.
 */
export class GridFs implements FileStore {
  readonly isInDatabase = true;
  readonly #connection: MongoConnection;
  readonly #files: string;
  readonly #chunks: string;
  readonly #onNotice: GridFsOptions['onNotice'];

  constructor(connection: MongoConnection, { prefix, onNotice }: GridFsOptions) {
    this.#connection = connection;
    this.#files = `${prefix}exports.files`;
    this.#chunks = `${prefix}exports.chunks`;
    this.#onNotice = onNotice;
  }

  async create(name: string): Promise<FileWriter> {
    await this.remove(name);
    const isFirst = await this.#makeChunks();
    await this.#putFile(name, 0, false);
    for (const collection of isFirst ? [this.#files, this.#chunks] : [])
      this.#onNotice?.(
        `The server has created the collection '${this.#connection.database}.${collection}' for files of exports.`,
      );
    return new ChunkWriter(name, {
      putChunks: (chunks) => this.#putChunks(chunks),
      putFile: (length) => this.#putFile(name, length, true),
    });
  }

  async *read(name: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    check(name);
    for (let at = start; at < end;) {
      const found = await this.#findChunks(name, Math.floor(at / CHUNK_BYTES));
      for (const { n: number, data } of found) {
        if (at >= end) return;
        const bytes = (data as Binary).value();
        const offset = at - (number as number) * CHUNK_BYTES;
        const piece = bytes.subarray(offset, offset + Math.min(bytes.length - offset, end - at));
        if (offset < 0 || piece.length === 0) throw new FileGoneError(name);
        at += piece.length;
        yield piece;
      }
      if (found.length === 0) throw new FileGoneError(name);
    }
  }

  async size(name: string): Promise<number | null> {
    if (!isFileName(name)) return null;
    const [file] = await this.#find({ _id: name, 'metadata.finished': true }, { length: 1 });
    return file ? Number(file.length) : null;
  }

  async remove(name: string): Promise<void> {
    check(name);
    await this.#write({ delete: this.#chunks, deletes: [{ q: { files_id: name }, limit: 0 }] });
    // Last: while chunks are left, the name is listed.
    await this.#write({ delete: this.#files, deletes: [{ q: { _id: name }, limit: 1 }] });
  }

  async names(stem?: string): Promise<readonly string[]> {
    const names: string[] = [];
    const bounds = stem === undefined ? {} : { $gte: `${stem}.`, $lt: `${stem}${BEHIND_DOT}` };
    for (let filter: Document = stem === undefined ? {} : { _id: bounds }; ;) {
      const found = await this.#find(filter, { _id: 1 });
      const last = found.at(-1);
      if (!last) return names.filter(isFileName);
      for (const { _id } of found) names.push(String(_id));
      filter = { _id: { ...bounds, $gt: last._id as unknown } };
    }
  }

  /**
   * Inserts chunks. A chunk that is there already is the same: no other writer has this name, and a command whose answer
   * was lost is sent again. The driver copies documents of one command twice on their way to the socket, and three times
   * when they are bytes already (a DocumentSequence). These copies are garbage outside of the heap, for which V8 collects all of it.
   */
  async #putChunks(documents: readonly Document[]): Promise<void> {
    const insert = { insert: this.#chunks, documents, ordered: false, writeConcern: MAJORITY };
    const { writeErrors = [] } = await this.#connection.run(insert, ON_PRIMARY);
    refuseErrors((writeErrors as readonly WriteError[]).filter(({ code }) => code !== CODES.duplicateKey));
  }

  async #write(command: Document): Promise<void> {
    const { writeErrors = [] } = await this.#connection.run(
      { ...command, writeConcern: MAJORITY },
      ON_PRIMARY,
    );
    refuseErrors(writeErrors as readonly WriteError[]);
  }

  #put(collection: string, _id: string, fields: Document): Promise<void> {
    return this.#write({
      update: collection,
      updates: [{ q: { _id }, u: { _id, ...fields }, upsert: true }],
    });
  }

  #putFile(filename: string, length: number, finished: boolean): Promise<void> {
    const file = { length, chunkSize: CHUNK_BYTES, uploadDate: new Date(), filename };
    return this.#put(this.#files, filename, { ...file, metadata: { finished } });
  }

  /** The files of one reply, in order of name. */
  #find(filter: Document, projection: Document): Promise<readonly Document[]> {
    const inOrder = { sort: { _id: 1 }, batchSize: NAMES, singleBatch: true };
    return documentsOf(
      this.#connection,
      { find: this.#files, filter, projection, ...inOrder },
      PRIMARY_FIRST,
    );
  }

  /** The chunks of one reply, from the `n`-th on. */
  #findChunks(name: string, n: number): Promise<readonly Document[]> {
    return documentsOf(this.#connection, {
      find: this.#chunks,
      filter: { files_id: name, n: { $gte: n, $lt: n + READ_CHUNKS } },
      sort: { n: 1 },
      batchSize: READ_CHUNKS,
      singleBatch: true,
    });
  }

  /** Makes the index of the chunks, and with it their collection. Resolves with whether that is new. */
  async #makeChunks(): Promise<boolean> {
    const index = { key: { files_id: 1, n: 1 }, name: 'files_id_1_n_1', unique: true };
    const made = await this.#connection.run({ createIndexes: this.#chunks, indexes: [index] }, ON_PRIMARY);
    return Object.values((made.raw as Document | undefined) ?? { made }).some(
      ({ createdCollectionAutomatically: created }: Document) => created === true,
    );
  }
}

/** Where a writer puts documents of chunks, and at the end the whole file, by its length. */
interface ChunkPlace {
  readonly putChunks: (chunks: readonly Document[]) => Promise<void>;
  readonly putFile: (length: number) => Promise<void>;
}

class ChunkWriter implements FileWriter {
  readonly #name: string;
  readonly #place: ChunkPlace;
  /** The last chunk, which is not full yet. */
  readonly #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #filled = 0;
  /** The number of chunks that are written, or about to be. */
  #chunks = 0;
  #bytes = 0;

  constructor(name: string, place: ChunkPlace) {
    this.#name = name;
    this.#place = place;
  }

  /**
   * Writes the chunks that are full with one command: a majority's confirmation costs more than a chunk. They are parts of
   * these bytes, but for the first one, of which the write before has left a beginning.
   */
  async write(bytes: Uint8Array): Promise<void> {
    const full: Document[] = [];
    let at = 0;
    if (this.#filled > 0) {
      at = this.#keep(bytes.subarray(0, CHUNK_BYTES - this.#filled));
      if (this.#filled === CHUNK_BYTES) full.push(this.#documentOf(this.#chunk));
    }
    for (; bytes.length - at >= CHUNK_BYTES; at += CHUNK_BYTES)
      full.push(this.#documentOf(bytes.subarray(at, at + CHUNK_BYTES)));
    for (let n = 0; n < full.length; n += INSERT_CHUNKS)
      await this.#place.putChunks(full.slice(n, n + INSERT_CHUNKS));
    if (full.length > 0) this.#filled = 0;
    this.#keep(bytes.subarray(at));
  }

  async finish(): Promise<void> {
    if (this.#filled > 0)
      await this.#place.putChunks([this.#documentOf(this.#chunk.subarray(0, this.#filled))]);
    await this.#place.putFile(this.#bytes);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Puts bytes behind those of the last chunk. Returns their number. */
  #keep(bytes: Uint8Array): number {
    this.#chunk.set(bytes, this.#filled);
    this.#filled += bytes.length;
    return bytes.length;
  }

  /** The document of the next chunk. It refers to these bytes. */
  #documentOf(bytes: Uint8Array): Document {
    const n = this.#chunks++;
    this.#bytes += bytes.length;
    return { _id: `${this.#name}.${n}`, files_id: this.#name, n, data: new Binary(bytes) };
  }
}

function check(name: string): void {
  if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
}
