import { createHash } from 'node:crypto';
import type { ChunkEntry } from '../base/edition/head.ts';
import { chunkFile, type ChunkFormat } from '../base/edition/names.ts';
import { crc32 } from '../pipeline/crc32.ts';
import { pieceCodecs, type Compression } from '../pipeline/pieces.ts';
import type { ObjectStore } from '../store/objects.ts';
import { idTextAt } from './id-text.ts';
import type { Attempt } from './meter.ts';
import type { CutRows } from './row-cutter.ts';

const PIECE_BYTES = 1 << 19;
const COMPRESSION: Readonly<Record<Exclude<ChunkFormat, 'parquet'>, Compression>> = {
  ndjson: 'none',
  'ndjson.gz': 'gzip',
  'ndjson.br': 'br',
};

interface ChunkFilesOptions {
  readonly objects: ObjectStore;
  readonly resource: string;
  readonly formats: readonly ChunkFormat[];
  /** Makes a chunk of Parquet. */
  readonly parquet?:
    { readonly schema: string; readonly make: (rows: Uint8Array) => Promise<Uint8Array> } | undefined;
  /** The sizes of the files of chunks of editions that are kept, by name. They are there, and stay. */
  readonly kept: ReadonlyMap<string, ChunkEntry['sizes']>;
  readonly attempt: Pick<Attempt, 'chunkStored'>;
}

/** Stores chunks. A file that no kept edition names is put even if it is there: it is then not removed for an hour. */
export class ChunkFiles {
  readonly #options: ChunkFilesOptions;

  constructor(options: ChunkFilesOptions) {
    this.#options = options;
  }

  async add({ text, rows, bound }: CutRows): Promise<ChunkEntry> {
    const name = createHash('sha256').update(text).digest('hex');
    const all = Buffer.from(text.buffer, text.byteOffset, text.length);
    return {
      name,
      rows,
      bytes: text.length,
      crc32: crc32(text).toString(16).padStart(8, '0'),
      first: JSON.parse(idTextAt(all, 0)),
      last: JSON.parse(idTextAt(all, all.lastIndexOf(0x0a, all.length - 2) + 1)),
      bound: Buffer.from(bound).toString('base64url'),
      sizes: await this.#sizes(name, text),
    };
  }

  async #sizes(name: string, text: Uint8Array): Promise<Readonly<Record<string, number>>> {
    const { kept, formats, objects, resource, parquet, attempt } = this.#options;
    const known = kept.get(name) ?? {};
    const sizes: Record<string, number> = {};
    const missing = formats.filter((format) => known[format] === undefined);
    for (const format of formats) sizes[format] = known[format] ?? 0;
    for (const format of missing) {
      const bytes =
        format === 'parquet' ? await parquet?.make(text) : await packed(text, COMPRESSION[format]);
      if (!bytes) throw new TypeError('chunks of Parquet need a schema');
      await objects.put(`${resource}/chunks/${chunkFile(name, format, parquet?.schema)}`, bytes);
      sizes[format] = bytes.length;
    }
    if (missing.length > 0) attempt.chunkStored();
    return sizes;
  }
}

/** Compressed in pieces that take turns with those of exports. */
export async function packed(text: Uint8Array, compression: Compression): Promise<Uint8Array> {
  const codec = pieceCodecs[compression]();
  try {
    const pieces: Promise<Uint8Array>[] = [];
    for (let at = 0; at === 0 || at < text.length; at += PIECE_BYTES)
      pieces.push(codec.compress(text.subarray(at, at + PIECE_BYTES)));
    return Buffer.concat(await Promise.all([...pieces, codec.end()]));
  } finally {
    codec.close();
  }
}
