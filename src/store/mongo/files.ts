import type { Collection, Document } from 'mongodb';
import { Binary } from '../bson.ts';
import { FileGoneError, isFileName, type FileStore, type FileWriter } from '../files.ts';
import { documentsOf, ON_PRIMARY, PRIMARY_FIRST } from './commands.ts';
import type { MongoConnection } from './connection.ts';

/**
 * The default chunk size of GridFS in bytes
 * (https://github.com/mongodb/specifications/blob/master/source/gridfs/gridfs-spec.md).
 */
const CHUNK_BYTES = 255 * 1024;
/** Chunks per read: about a megabyte. */
const READ_CHUNKS = 4;
/** Names per read. */
const NAMES = 10_000;
/** The next character after a dot in the order of bytes. */
const BEHIND_DOT = '/';

/** Where the files are, and what is called for each thing that the first file creates. */
export interface GridFsOptions {
  /** The beginning of the names of both collections. Default: none. */
  readonly prefix?: string;
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** The names of the two collections. */
interface Names {
  readonly files: string;
  readonly chunks: string;
}

/**
 * Files in GridFS, so that every process on this MongoDB can serve any of them. Chunks are written as they fill up, and a
 * majority confirms each. ARCHITECTURE.md says why this is not the driver's GridFSBucket.
 */
export class GridFs implements FileStore {
  readonly #connection: MongoConnection;
  readonly #onNotice: GridFsOptions['onNotice'];
  readonly #names: Names;

  constructor(connection: MongoConnection, { prefix = '', onNotice }: GridFsOptions = {}) {
    this.#connection = connection;
    this.#onNotice = onNotice;
    this.#names = { files: `${prefix}exports.files`, chunks: `${prefix}exports.chunks` };
  }

  async create(name: string): Promise<FileWriter> {
    check(name);
    await this.remove(name);
    const index = { key: { files_id: 1, n: 1 }, name: 'files_id_1_n_1', unique: true };
    const { chunks, files } = this.#names;
    const made = await this.#connection.run({ createIndexes: chunks, indexes: [index] }, ON_PRIMARY);
    const writer = new Writer(this.#connection, name, this.#names);
    await writer.begin();
    const isFirst = Object.values((made.raw as Document | undefined) ?? { made }).some(
      ({ createdCollectionAutomatically: created }: Document) => created === true,
    );
    const { database } = this.#connection;
    for (const collection of isFirst ? [files, chunks] : [])
      this.#onNotice?.(
        `The server has created the collection '${database}.${collection}' for files of exports.`,
      );
    return writer;
  }

  async *read(name: string, start: number, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    check(name);
    for (let at = start; at < end;) {
      const n = Math.floor(at / CHUNK_BYTES);
      const found = await documentsOf(this.#connection, {
        find: this.#names.chunks,
        filter: { files_id: name, n: { $gte: n, $lt: n + READ_CHUNKS } },
        sort: { n: 1 },
        batchSize: READ_CHUNKS,
        singleBatch: true,
      });
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
    const filter = { _id: name, 'metadata.finished': true };
    const [file] = await this.#files(filter, { length: 1 });
    return file ? Number(file.length) : null;
  }

  async remove(name: string): Promise<void> {
    check(name);
    for (const [collection, filter] of [
      [this.#names.chunks, { files_id: name }],
      [this.#names.files, { _id: name }], // last: while chunks are left, the name is listed
    ] as const)
      await this.#connection.write(
        (documents: Collection, { session, writeConcern }) =>
          documents.deleteMany(filter as Document, {
            ...(session && { session }),
            ...(writeConcern && { writeConcern }),
          }),
        collection,
      );
  }

  async names(stem?: string): Promise<readonly string[]> {
    const names: string[] = [];
    const bounds = stem === undefined ? {} : { $gte: `${stem}.`, $lt: `${stem}${BEHIND_DOT}` };
    for (let filter: Document = stem === undefined ? {} : { _id: bounds }; ;) {
      const files = await this.#files(filter, { _id: 1 });
      const last = files.at(-1);
      if (!last) return names.filter(isFileName);
      for (const { _id } of files) names.push(String(_id));
      filter = { _id: { ...bounds, $gt: last._id as unknown } };
    }
  }

  /** The files of one reply, in order of name. */
  #files(filter: Document, projection: Document): Promise<readonly Document[]> {
    const find = {
      find: this.#names.files,
      filter,
      projection,
      sort: { _id: 1 },
      batchSize: NAMES,
      singleBatch: true,
    };
    return documentsOf(this.#connection, find, PRIMARY_FIRST);
  }
}

class Writer implements FileWriter {
  readonly #connection: MongoConnection;
  readonly #name: string;
  readonly #names: Names;
  /** The bytes of the last chunk, which is not full yet. */
  #rest = Buffer.alloc(0);
  #full = 0;

  constructor(connection: MongoConnection, name: string, names: Names) {
    this.#connection = connection;
    this.#name = name;
    this.#names = names;
  }

  begin(): Promise<void> {
    return this.#saveFile(0, false);
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (; this.#rest.length >= CHUNK_BYTES; this.#rest = this.#rest.subarray(CHUNK_BYTES))
      await this.#saveChunk(this.#rest.subarray(0, CHUNK_BYTES));
  }

  async finish(): Promise<void> {
    const length = this.#full * CHUNK_BYTES + this.#rest.length;
    if (this.#rest.length > 0) await this.#saveChunk(this.#rest);
    await this.#saveFile(length, true);
  }

  close(): Promise<void> {
    this.#rest = Buffer.alloc(0);
    return Promise.resolve();
  }

  async #saveChunk(data: Uint8Array): Promise<void> {
    const _id = `${this.#name}.${this.#full}`;
    const chunk = { _id, files_id: this.#name, n: this.#full, data: new Binary(data) };
    await this.#put(this.#names.chunks, chunk);
    this.#full++;
  }

  #saveFile(length: number, finished: boolean): Promise<void> {
    const file = { length, chunkSize: CHUNK_BYTES, uploadDate: new Date(), filename: this.#name };
    return this.#put(this.#names.files, { _id: this.#name, ...file, metadata: { finished } });
  }

  #put(collection: string, document: Document): Promise<void> {
    return this.#connection.write(async (documents: Collection, { session, writeConcern }) => {
      const options = { ...(session && { session }), ...(writeConcern && { writeConcern }), upsert: true };
      await documents.replaceOne({ _id: document._id as never }, document, options);
    }, collection);
  }
}

function check(name: string): void {
  if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
}
