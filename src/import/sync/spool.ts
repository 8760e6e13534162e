import { createReadStream } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Key } from '../../store/values/keys.ts';

/** Rows are kept in memory until they have so many bytes, with what JavaScript needs for each. */
const PART_BYTES = 64 * 1024 * 1024;
const ROW_OVERHEAD = 200;
const READ_BYTES = 256 * 1024;
const WRITE_BYTES = 4 * 1024 * 1024;
/** The lengths of key and document, and the place. */
const HEAD_BYTES = 16;

export interface SpooledRow {
  readonly key: Key;
  /** The place in the source. */
  readonly at: number;
  readonly item: Uint8Array;
}

type Compare = (a: SpooledRow, b: SpooledRow) => number;

/** The folder for the files of spools. It is made with the first of them, under TMPDIR, for this account alone. */
export class SpoolFolder {
  #path: string | null = null;
  #files = 0;

  async newFile(): Promise<string> {
    this.#path ??= await mkdtemp(join(tmpdir(), 'sluice-sync-'));
    return join(this.#path, String(this.#files++));
  }

  async remove(): Promise<void> {
    if (this.#path !== null) await rm(this.#path, { recursive: true, force: true });
  }
}

/** Any number of rows, in memory or in files: in the order in which they were added, or sorted. */
export class Spool {
  readonly #folder: SpoolFolder;
  readonly #compare: Compare | null;
  readonly #partBytes: number;
  readonly #files: string[] = [];
  #rows: SpooledRow[] = [];
  #bytes = 0;
  size = 0;

  constructor(folder: SpoolFolder, compare: Compare | null = null, partBytes = PART_BYTES) {
    this.#folder = folder;
    this.#compare = compare;
    this.#partBytes = partBytes;
  }

  /** Adds a row. Undefined: the next one may come at once. */
  add(row: SpooledRow): Promise<void> | undefined {
    this.#rows.push(row);
    this.size++;
    this.#bytes += row.key.length + row.item.length + ROW_OVERHEAD;
    return this.#bytes < this.#partBytes ? undefined : this.#write();
  }

  /** All rows. Nothing may be added meanwhile. */
  async *rows(): AsyncGenerator<SpooledRow, void, undefined> {
    this.#sort();
    if (this.#compare && this.#files.length > 0)
      yield* merged([...this.#files.map(rowsIn), valuesOf(this.#rows)], this.#compare);
    else {
      for (const file of this.#files) yield* rowsIn(file);
      yield* this.#rows;
    }
  }

  async #write(): Promise<void> {
    this.#sort();
    const rows = this.#rows;
    this.#rows = [];
    this.#bytes = 0;
    const path = await this.#folder.newFile();
    await writeRows(path, rows);
    this.#files.push(path);
  }

  #sort(): void {
    if (this.#compare) this.#rows.sort(this.#compare);
  }
}

async function writeRows(path: string, rows: readonly SpooledRow[]): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    let pieces: Uint8Array[] = [];
    let bytes = 0;
    for (const { key, at, item } of rows) {
      const head = Buffer.alloc(HEAD_BYTES);
      head.writeUInt32LE(key.length, 0);
      head.writeUInt32LE(item.length, 4);
      head.writeDoubleLE(at, 8);
      pieces.push(head, key, item);
      bytes += HEAD_BYTES + key.length + item.length;
      if (bytes < WRITE_BYTES) continue;
      await file.appendFile(Buffer.concat(pieces));
      pieces = [];
      bytes = 0;
    }
    await file.appendFile(Buffer.concat(pieces));
  } finally {
    await file.close();
  }
}

async function* rowsIn(path: string): AsyncGenerator<SpooledRow, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let from = 0;
    for (let end = endOfRow(bytes, from); end >= 0; end = endOfRow(bytes, from)) {
      const itemAt = from + HEAD_BYTES + bytes.readUInt32LE(from);
      const key = bytes.subarray(from + HEAD_BYTES, itemAt);
      yield { key, at: bytes.readDoubleLE(from + 8), item: bytes.subarray(itemAt, end) };
      from = end;
    }
    rest = bytes.subarray(from);
  }
  if (rest.length > 0) throw new Error(`${path} ends in a row`);
}

/** -1: the row does not end in these bytes. */
function endOfRow(bytes: Buffer, from: number): number {
  if (bytes.length - from < HEAD_BYTES) return -1;
  const end = from + HEAD_BYTES + bytes.readUInt32LE(from) + bytes.readUInt32LE(from + 4);
  return end <= bytes.length ? end : -1;
}

async function* valuesOf(rows: readonly SpooledRow[]): AsyncGenerator<SpooledRow, void, undefined> {
  await Promise.resolve();
  yield* rows;
}

/** The rows of sorted sources in one order. */
async function* merged(
  sources: readonly AsyncGenerator<SpooledRow, void, undefined>[],
  compare: Compare,
): AsyncGenerator<SpooledRow, void, undefined> {
  const heads = await Promise.all(
    sources.map(async (source) => ({ source, row: (await source.next()).value ?? null })),
  );
  for (;;) {
    let lowest: { readonly source: (typeof sources)[number]; row: SpooledRow | null } | null = null;
    for (const head of heads)
      if (head.row && (!lowest?.row || compare(head.row, lowest.row) < 0)) lowest = head;
    if (!lowest?.row) return;
    yield lowest.row;
    lowest.row = (await lowest.source.next()).value ?? null;
  }
}
