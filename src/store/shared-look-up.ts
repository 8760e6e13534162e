import type { Batch } from './batch.ts';
import { orAborted } from './deadline.ts';

/** How many batches a reader may be behind the fastest one. */
const MOST_BEHIND = 2;

/** A reader was too slow to share a look-up any longer. It is to look up by itself what it has not got. */
export class LeftBehind extends Error {}

/** A reader of a look-up that several share. */
export interface LookUpReader {
  /** The number of batches that it has taken. */
  taken: number;
}

/**
 * A look-up that several readers share. Each gets all batches, and reads on when it wants the next one. A batch is
 * released when all readers have released it. The look-up is aborted when the last reader has left, whoever began it.
 */
export class SharedLookUp {
  readonly #batches: AsyncIterator<Batch>;
  readonly #abort = new AbortController();
  readonly #steps: Step[] = [];
  readonly #readers = new Set<LookUpReader>();
  #isOver = false;

  constructor(rows: (signal: AbortSignal) => AsyncIterable<Batch>) {
    this.#batches = rows(this.#abort.signal)[Symbol.asyncIterator]();
  }

  /** Whether every batch is still there for another reader. */
  get isJoinable(): boolean {
    return !this.#isOver && this.#steps.every(({ isHeld }) => isHeld);
  }

  get isShared(): boolean {
    return this.#readers.size > 1;
  }

  /** Adds a reader while that is possible. It is to `leave` in the end. */
  join(): LookUpReader {
    const reader = { taken: 0 };
    for (const step of this.#steps) step.hold();
    this.#readers.add(reader);
    return reader;
  }

  /**
   * The next batch of a reader, which releases it. Null: there are no more. Rejects with LeftBehind, with the reason of
   * the reader's signal, or as the look-up does.
   */
  async next(reader: LookUpReader, signal: AbortSignal): Promise<Batch | null> {
    if (!this.#readers.has(reader)) throw new LeftBehind();
    const step = this.#steps[reader.taken] ?? this.#read();
    reader.taken++;
    try {
      const batch = await orAborted(signal, step.batch);
      return batch && { ...batch, release: once(() => step.drop()) };
    } catch (error) {
      step.drop();
      throw error;
    }
  }

  /** Resolves, for the last reader, when nothing of the look-up is left in the store. */
  async leave(reader: LookUpReader): Promise<void> {
    this.#remove(reader);
    if (this.#isOver || this.#readers.size > 0) return;
    this.#isOver = true;
    this.#abort.abort(new Error('all readers of the look-up have left'));
    await this.#batches.return?.();
  }

  /** Reads the next batch, and lets go of the readers that are too far behind. */
  #read(): Step {
    const batch = this.#batches.next().then(({ done, value }) => (done === true ? null : value));
    const step = new Step(batch, this.#readers.size);
    batch.catch(() => (this.#isOver = true)); // its readers have the error
    this.#steps.push(step);
    for (const reader of this.#readers)
      if (this.#steps.length - reader.taken > MOST_BEHIND) this.#remove(reader);
    return step;
  }

  #remove(reader: LookUpReader): void {
    if (!this.#readers.delete(reader)) return;
    for (const step of this.#steps.slice(reader.taken)) step.drop();
  }
}

/** A batch, and the number of readers that have not released it yet. */
class Step {
  readonly batch: Promise<Batch | null>;
  #holders: number;
  #came: Batch | null = null;

  constructor(batch: Promise<Batch | null>, holders: number) {
    this.#holders = holders;
    this.batch = batch.then((came) => {
      this.#came = came;
      if (this.#holders === 0) came?.release();
      return came;
    });
    this.batch.catch(() => undefined); // readers may have left
  }

  get isHeld(): boolean {
    return this.#holders > 0;
  }

  hold(): void {
    this.#holders++;
  }

  drop(): void {
    this.#holders--;
    if (this.#holders === 0) this.#came?.release();
  }
}

/** A release that throws when it is called again, as that of a slot does. */
function once(release: () => void): () => void {
  let isReleased = false;
  return () => {
    if (isReleased) throw new TypeError('batch released twice');
    isReleased = true;
    release();
  };
}
