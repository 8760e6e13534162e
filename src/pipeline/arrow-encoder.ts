import { columnsText, isFixedSize, REST, type Column } from '../rows/arrow/columns.ts';
import { batchMessage, END_OF_STREAM, schemaMessage } from '../rows/arrow/messages.ts';
import type { ArrowBody, ArrowTable, ArrowWriter } from '../rows/arrow/writer.ts';
import type { RowEncoder } from '../rows/rows.ts';
import type { Batch } from '../store/batch.ts';
import { bookmarkOf, type Bookmark } from '../store/bookmark.ts';
import { crc32 } from './crc32.ts';
import { shownSums, type CheckpointOptions } from './checkpoints.ts';
import type { EndTally, Sums } from './control-lines.ts';

/** The metadata of a schema: its columns, in the form of the parameter `columns`, with which a stream is resumed. */
const COLUMNS = 'sluice.columns';
/** The metadata of each record batch, and of the empty one that ends a stream: a Tally, as JSON. */
const CHECKPOINT = 'sluice.checkpoint';
const END = 'sluice.end';

export type ArrowEncoderOptions = Pick<CheckpointOptions, 'plan' | 'cursorOf'> & {
  /** The cursor of the stream's start. See CheckpointOptions. */
  readonly start: string | null | undefined;
  /** The cursor from which the changes of a whole set follow. */
  readonly changes?: string | undefined;
};

/**
 * Writes rows as an Arrow IPC stream. Each record batch has a checkpoint in its metadata: the cursor that continues after
 * it, and the number of rows, the bytes and the CRC-32 of the bodies of all record batches up to and including it. The
 * last record batch has no rows and says that the stream is whole, which the format itself cannot.
 */
export class ArrowEncoder implements RowEncoder {
  readonly #writer: ArrowWriter;
  readonly #table: ArrowTable;
  readonly #options: ArrowEncoderOptions;
  #last: Bookmark | null = null;
  #rows = 0;
  #bytes = 0;
  #crc = 0;
  /** Whether the batch must end with the record batch under way, and where that ends in it. */
  #isCut = false;
  #end = 0;

  constructor(writer: ArrowWriter, table: ArrowTable, options: ArrowEncoderOptions) {
    this.#writer = writer;
    this.#table = table;
    this.#options = options;
  }

  static head({ columns, hasRest, isJsonText }: ArrowTable): Uint8Array {
    const all: readonly Column[] = hasRest ? [...columns, { name: REST, kind: 'json' }] : columns;
    const plain = (one: Column): Column => (one.kind === 'json' ? { name: one.name, kind: 'text' } : one);
    return schemaMessage(isJsonText ? all.map(plain) : all, { [COLUMNS]: columnsText(columns) });
  }

  *encode(batch: Batch, chunkBytes: number): Generator<Uint8Array, void, undefined> {
    if (batch.rows === 0) return;
    this.#begin(batch);
    for (let body = this.#writer.next(); body; body = this.#writer.next()) {
      yield* inChunks(this.#headOf(batch, body), chunkBytes);
      for (let at = 0; at < body.length; at += chunkBytes)
        yield body.bytes().subarray(at, Math.min(body.length, at + chunkBytes));
      if (this.#isCut) break;
    }
    this.#writer.free();
  }

  cut(): number {
    this.#isCut = true;
    return this.#end;
  }

  close(): void {
    this.#writer.close();
  }

  get rows(): number {
    return this.#rows;
  }

  /** The last messages, which say that all rows were written. */
  end(): Uint8Array {
    const { changes } = this.#options;
    const cursor = this.#cursor();
    const tally: EndTally = {
      ...(cursor !== undefined && { cursor }),
      ...this.#sums(),
      ...(changes !== undefined && { changes }),
    };
    const { columns, hasRest } = this.#table;
    const parts = [...columns.map(({ kind }) => kind), ...(hasRest ? ['json' as const] : [])].map((kind) => {
      const buffers = isFixedSize(kind) ? 2 : 3;
      return { nulls: 0, buffers: Array.from({ length: buffers }, () => ({ at: 0, length: 0 })) };
    });
    return Buffer.concat([batchMessage(0, parts, 0, { [END]: JSON.stringify(tally) }), END_OF_STREAM]);
  }

  #begin(batch: Batch): void {
    this.#isCut = false;
    this.#writer.begin(batch);
  }

  #headOf(batch: Batch, { rows, parts, end, last, length, bytes }: ArrowBody): Uint8Array {
    this.#end = end;
    this.#last = end === batch.length ? batch.last : bookmarkOf(last.slice(), this.#options.plan);
    this.#rows += rows;
    this.#bytes += length;
    this.#crc = crc32(bytes(), this.#crc);
    const cursor = this.#cursor();
    const tally = { ...(cursor !== undefined && { cursor }), ...this.#sums() };
    return batchMessage(rows, parts, length, { [CHECKPOINT]: JSON.stringify(tally) });
  }

  #cursor(): string | null | undefined {
    return this.#last ? this.#options.cursorOf(this.#last) : this.#options.start;
  }

  #sums(): Sums {
    return shownSums({ rows: this.#rows, bytes: this.#bytes, crc: this.#crc });
  }
}

function* inChunks(bytes: Uint8Array, chunkBytes: number): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}
