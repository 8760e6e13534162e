import type { Document } from 'mongodb';
import { Binary } from '../values/bson.ts';
import { FileGoneError, isFileName, type FileStore } from '../files.ts';
import { documentsOf, MAJORITY, ON_PRIMARY, PRIMARY_FIRST } from './commands.ts';
import type { MongoConnection } from './connection.ts';
import { refuseErrors, type WriteError } from './write/raw-write.ts';

/** The default chunk size of GridFS in bytes (source/gridfs/gridfs-spec.md of github.com/mongodb/specifications). */
const CHUNK_BYTES = 255 * 1024;
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
export function gridFs(connection: MongoConnection, { prefix, onNotice }: GridFsOptions): FileStore {
  const files = `${prefix}exports.files`;
  const chunks = `${prefix}exports.chunks`;

  const write = async (command: Document): Promise<void> => {
    const { writeErrors = [] } = await connection.run({ ...command, writeConcern: MAJORITY }, ON_PRIMARY);
    refuseErrors(writeErrors as readonly WriteError[]);
  };
  const put = (collection: string, _id: string, fields: Document): Promise<void> =>
    write({ update: collection, updates: [{ q: { _id }, u: { _id, ...fields }, upsert: true }] });
  const putFile = (filename: string, length: number, finished: boolean): Promise<void> => {
    const file = { length, chunkSize: CHUNK_BYTES, uploadDate: new Date(), filename };
    return put(files, filename, { ...file, metadata: { finished } });
  };
  /** The files of one reply, in order of name. */
  const find = (filter: Document, projection: Document): Promise<readonly Document[]> => {
    const inOrder = { sort: { _id: 1 }, batchSize: NAMES, singleBatch: true };
    return documentsOf(connection, { find: files, filter, projection, ...inOrder }, PRIMARY_FIRST);
  };
  const remove = async (name: string): Promise<void> => {
    check(name);
    await write({ delete: chunks, deletes: [{ q: { files_id: name }, limit: 0 }] });
    await write({ delete: files, deletes: [{ q: { _id: name }, limit: 1 }] }); // last: while chunks are left, the name is listed
  };
  /** Makes the index of the chunks, and with it their collection. Resolves with whether that is new. */
  const makeChunks = async (): Promise<boolean> => {
    const index = { key: { files_id: 1, n: 1 }, name: 'files_id_1_n_1', unique: true };
    const made = await connection.run({ createIndexes: chunks, indexes: [index] }, ON_PRIMARY);
    return Object.values((made.raw as Document | undefined) ?? { made }).some(
      ({ createdCollectionAutomatically: created }: Document) => created === true,
    );
  };

  return {
    async create(name) {
      await remove(name);
      const isFirst = await makeChunks();
      await putFile(name, 0, false);
      for (const collection of isFirst ? [files, chunks] : [])
        onNotice?.(
          `The server has created the collection '${connection.database}.${collection}' for files of exports.`,
        );
      let rest = Buffer.alloc(0); // the bytes of the last chunk, which is not full yet
      let full = 0;
      const putChunk = async (data: Uint8Array): Promise<void> => {
        await put(chunks, `${name}.${full}`, { files_id: name, n: full, data: new Binary(data) });
        full++;
      };
      return {
        async write(bytes) {
          rest = Buffer.concat([rest, bytes]);
          for (; rest.length >= CHUNK_BYTES; rest = rest.subarray(CHUNK_BYTES))
            await putChunk(rest.subarray(0, CHUNK_BYTES));
        },
        async finish() {
          const length = full * CHUNK_BYTES + rest.length;
          if (rest.length > 0) await putChunk(rest);
          await putFile(name, length, true);
        },
        close: () => Promise.resolve(),
      };
    },

    async *read(name, start, end) {
      check(name);
      for (let at = start; at < end;) {
        const n = Math.floor(at / CHUNK_BYTES);
        const found = await documentsOf(connection, {
          find: chunks,
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
    },

    async size(name) {
      if (!isFileName(name)) return null;
      const [file] = await find({ _id: name, 'metadata.finished': true }, { length: 1 });
      return file ? Number(file.length) : null;
    },

    remove,

    async names(stem) {
      const names: string[] = [];
      const bounds = stem === undefined ? {} : { $gte: `${stem}.`, $lt: `${stem}${BEHIND_DOT}` };
      for (let filter: Document = stem === undefined ? {} : { _id: bounds }; ;) {
        const found = await find(filter, { _id: 1 });
        const last = found.at(-1);
        if (!last) return names.filter(isFileName);
        for (const { _id } of found) names.push(String(_id));
        filter = { _id: { ...bounds, $gt: last._id as unknown } };
      }
    },
  };
}

function check(name: string): void {
  if (!isFileName(name)) throw new TypeError(`not a file's name: ${JSON.stringify(name)}`);
}
