import { setImmediate as turn } from 'node:timers/promises';
import type { RowEncoder } from '../rows/rows.ts';
import { headOf, lastBookmark, type Batch } from '../store/batch.ts';
import type { Bookmark, RowOrder } from '../store/bookmark.ts';
import { settlesWithin } from '../store/turns/deadline.ts';
import type { Sink } from './sink.ts';

/** What goes before the first row and after the last. `tail` is called once all rows are written. */
interface Frame {
  readonly head: string | Uint8Array;
  readonly tail?: (() => string | Uint8Array) | undefined;
}

interface Rows {
  readonly first: AsyncIterable<Batch>;
  /** How to continue after a stall. Without it, batches are kept during a stall. */
  readonly again?: {
    readonly plan: RowOrder;
    /** The rows after a bookmark. `rows` is the number of rows given up to there. */
    readonly after: (bookmark: Bookmark, rows: number) => AsyncIterable<Batch>;
  };
  /** How long a sink may take nothing before the batches are released. Milliseconds, 1 s by default. */
  readonly parkAfterMs?: number;
  readonly observer?: PumpObserver;
}

/** Receives the progress of a run. */
interface PumpObserver {
  /** `count` more rows were written. */
  rows(count: number): void;
  /** The sink takes nothing, and all batches were released. The function is called once when the stall is over. */
  parked(): () => void;
}

/** Most readers take a chunk within this time, or are so slow that reading again costs little. */
export const PARK_AFTER_MS = 1_000;
const NOTHING = new Uint8Array(0);
/** Bytes after which a stream with a fast reader lets others run. A whole batch would hold the thread for milliseconds. */
const TURN_BYTES = 64 * 1024;

/** Where to continue once the sink takes bytes again. A stalled stream keeps only this and what its sink holds. */
interface ParkedStream {
  readonly after: Bookmark;
  /** The rest of the row under way. */
  readonly rest: Uint8Array;
  readonly blocked: Promise<void>;
}

/**
 * The one loop between store and client: takes the next batch only when the sink takes more. When the sink takes
 * nothing for a while, the batches are released, and read again when it goes on. Resolves to the number of rows
 * written; the sink is not ended. Rejects with the error of the store or the sink. In any case every batch is released
 * and the encoder is closed.
 */
export async function pump(rows: Rows, encoder: RowEncoder, frame: Frame, sink: Sink): Promise<number> {
  const run = new Run(rows, encoder, frame, sink);
  try {
    let parked = await run.write(rows.first);
    while (parked) {
      const over = rows.observer?.parked();
      await parked.blocked.finally(() => over?.());
      if (parked.rest.length > 0) await sink.write(parked.rest);
      parked = rows.again ? await run.write(rows.again.after(parked.after, run.rows)) : null;
    }
    await writeFrame(sink, frame.tail?.() ?? '');
    return run.rows;
  } finally {
    encoder.close();
  }
}

class Run {
  rows = 0;
  readonly #source: Rows;
  readonly #encoder: RowEncoder;
  readonly #frame: Frame;
  readonly #sink: Sink;
  #headWritten = false;
  /** Bytes written since others could run. */
  #sinceTurn = 0;
  /** How long the sink took nothing of the batch. Milliseconds. */
  #blockedMs = 0;

  constructor(source: Rows, encoder: RowEncoder, frame: Frame, sink: Sink) {
    this.#source = source;
    this.#encoder = encoder;
    this.#frame = frame;
    this.#sink = sink;
  }

  /** Writes batches to their end, or until the sink stalls. It has then released them and returns where to continue. */
  async write(batches: AsyncIterable<Batch>): Promise<ParkedStream | null> {
    for await (const batch of batches) {
      this.#blockedMs = 0;
      try {
        if (!this.#headWritten) await writeFrame(this.#sink, this.#frame.head);
        this.#headWritten = true;
        const parked = await this.#writeBatch(batch);
        if (parked) return parked;
      } finally {
        batch.release();
      }
      const flushed = this.#sink.flush();
      if (!flushed) continue;
      if (!batch.last) await flushed;
      else if (!(await this.#settles(flushed, batch)))
        return { after: batch.last, rest: NOTHING, blocked: flushed };
    }
    return null;
  }

  async #writeBatch(batch: Batch): Promise<ParkedStream | null> {
    const chunks = this.#encoder.encode(batch, this.#sink.chunkBytes)[Symbol.iterator]();
    for (let next = chunks.next(); next.done !== true; next = chunks.next()) {
      const blocked = this.#sink.write(next.value);
      if (!blocked) {
        // Awaiting nothing would cost a turn of the microtask queue for each chunk.
        this.#sinceTurn += next.value.length;
        if (this.#sinceTurn < TURN_BYTES) continue;
        this.#sinceTurn = 0;
        await turn();
        continue;
      }
      if (!(await this.#settles(blocked, batch))) return this.#park(batch, chunks, blocked);
    }
    this.#count(batch.rows);
    return null;
  }

  #count(rows: number): void {
    this.rows += rows;
    this.#source.observer?.rows(rows);
  }

  /** Whether the sink goes on within `parkAfterMs`, or a tenth of it for an awaited batch. Without `again` it waits. */
  async #settles(blocked: Promise<void>, batch: Batch): Promise<boolean> {
    const { again, parkAfterMs = PARK_AFTER_MS } = this.#source;
    const began = performance.now();
    const rest = Math.max(0, parkAfterMs / 10 - this.#blockedMs);
    const patience = batch.isAwaited?.() === true ? rest : parkAfterMs;
    const goesOn =
      again && batch.rows > 0 ? await settlesWithin(blocked, patience) : await blocked.then(() => true);
    this.#blockedMs += performance.now() - began;
    return goesOn;
  }

  #park(batch: Batch, chunks: Iterator<Uint8Array>, blocked: Promise<void>): ParkedStream {
    const plan = this.#source.again?.plan;
    if (!plan) throw new TypeError('these rows cannot be read again');
    const done = headOf(batch, this.#encoder.cut());
    const rest: Uint8Array[] = [];
    for (let next = chunks.next(); next.done !== true; next = chunks.next())
      rest.push(Buffer.from(next.value));
    this.#count(done.rows);
    return { after: lastBookmark(done, plan), rest: Buffer.concat(rest), blocked };
  }
}

async function writeFrame(sink: Sink, content: string | Uint8Array): Promise<void> {
  if (content.length > 0) await sink.write(typeof content === 'string' ? Buffer.from(content) : content);
}
