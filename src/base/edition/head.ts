/** An edition's head: what it has, and the files that have it. The newest one of a resource is at `/{resource}/edition`. */
export interface EditionHead {
  /** The edition's name: see `editionName`. */
  readonly edition: string;
  readonly resource: string;
  /** The number of the edition among those of its resource, from 0: the version of its Delta table. */
  readonly sequence: number;
  /** When its rows were as they are here (ISO 8601, UTC). */
  readonly at: string;
  readonly rows: number;
  /** The bytes and the CRC-32 (8 hexadecimal digits) of all rows as NDJSON. */
  readonly bytes: number;
  readonly crc32: string;
  /** The cursor from which changes follow: `/{resource}/changes?since=`. */
  readonly changes: string;
  /** The target of the size of chunks, in bytes of NDJSON: what `Cutter` needs to cut the same. */
  readonly target: number;
  /** The formats of its chunks (see `FORMATS` in names.ts), the first of them for readers of rows. */
  readonly formats: readonly string[];
  /** The schema in the names of its chunks of Parquet: 16 hexadecimal digits. Absent: there are none. */
  readonly schema?: string;
  /** Where its files are: a URL, or a reference relative to `/{resource}/`. It ends with a slash. */
  readonly files: string;
  /** Index files in order. Their chunks, in order, are the edition. At most 256. */
  readonly index: readonly IndexEntry[];
  /** From editions that were kept when this one was made, newest first. Each `to` is this edition, or the `from` of the one before it. */
  readonly deltas: readonly DeltaEntry[];
  /** The editions that were kept when this one was made, newest first, without itself. */
  readonly kept: readonly { readonly edition: string; readonly at: string }[];
}

/** An index file, and what is in it. */
export interface IndexEntry {
  /** The SHA-256 of the file. */
  readonly name: string;
  /** 0: it lists chunks. Above: it lists index files of the level below. */
  readonly level: number;
  readonly chunks: number;
  readonly rows: number;
  readonly bytes: number;
}

/** The content of an index file: JSON without spaces, which ends with LF. */
export type IndexFile =
  | { readonly level: 0; readonly chunks: readonly ChunkEntry[] }
  | { readonly level: number; readonly index: readonly IndexEntry[] };

/** A chunk: rows that follow one another in the order of their ids. */
export interface ChunkEntry {
  /** The SHA-256 of its rows as NDJSON, 64 hexadecimal digits. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  /** Of its rows as NDJSON, 8 hexadecimal digits. */
  readonly crc32: string;
  /** The ids of its first and its last row, as in its rows. */
  readonly first: unknown;
  readonly last: unknown;
  /** The exact id of its last row (a bookmark `{_id}` in base64url), for the server that makes the next edition. */
  readonly bound: string;
  /** The bytes of its file in each format. */
  readonly sizes: Readonly<Record<string, number>>;
}

/** The rows and removals between two editions, in the lines of a change feed without checkpoints, removals first. */
export interface DeltaEntry {
  readonly from: string;
  readonly to: string;
  /** The SHA-256 of its lines before compression. */
  readonly name: string;
  /** The numbers of lines with rows, and with removals. */
  readonly rows: number;
  readonly removed: number;
  /** The bytes of its file. */
  readonly bytes: number;
}
