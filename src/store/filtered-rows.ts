import { documentOf, orRelease, rowsOf, type Batch } from './batch.ts';
import { bookmarkOf } from './bookmark.ts';
import { beginRow, ROW_HEAD_BYTES } from './bson-array.ts';
import type { Slots } from './slots.ts';
import type { From, Plan, RowReader, Size } from './store.ts';

/** What is read at once to be filtered. Other reads go first where reads queue. */
const LOOK: Size = { rows: 1000, bytes: 1024 * 1024, patient: true };

/** Whether a stored document belongs to the rows. */
export type Passes = (row: Uint8Array) => boolean;

/**
 * The rows that pass, for a set that has no index for them. Rows that do not pass are as good as absent, also in
 * `From.skip` and `Batch.more`. A read looks at every row from its beginning to the row after its last one, so its time
 * grows with the rows that do not pass. Where a client's cursor is, rows after it are read: it need not be of a row that
 * passes.
 */
export function filteredRows(rows: RowReader, slots: Slots, passes: Passes): RowReader {
  return {
    read: (plan, from, size, signal) => readPassing(rows, { plan, from, size, slots, passes }, signal),
    confirm: (...call) => rows.confirm(...call),
    get: async (id, signal) => {
      const batch = await rows.get(id, signal);
      if (!batch) return null;
      return orRelease(batch, () => {
        if (passes(documentOf(batch))) return batch;
        batch.release();
        return null;
      });
    },
  };
}

interface Reading {
  readonly plan: Plan;
  readonly from: From;
  readonly size: Size;
  readonly slots: Slots;
  readonly passes: Passes;
}

async function readPassing(rows: RowReader, reading: Reading, signal: AbortSignal): Promise<Batch> {
  const { from, slots } = reading;
  const kept = new Kept(reading);
  let { plan } = reading;
  let batch = await rows.read(plan, from.after ? { after: from.after } : {}, LOOK, signal);
  for (;;) {
    const { more, last } = batch;
    const isEnough = kept.take(batch);
    if (isEnough || !more || !last) return kept.toBatch(slots, batch);
    // As in a chain: no later read is of an older state, or of another collection.
    plan = { ...placeOf(batch), ...plan };
    await rows.confirm(batch, plan, signal);
    batch = await rows.read(plan, { after: last }, LOOK, signal);
  }
}

/** The state and the collection that a batch was read from, for the reads after it. */
function placeOf({ asOf, identity }: Batch): Pick<Plan, 'since' | 'identity'> {
  return { ...(asOf !== undefined && { since: asOf }), ...(identity !== undefined && { identity }) };
}

/** Copies of the rows that pass, until they are enough. */
class Kept {
  readonly #reading: Reading;
  readonly #documents: Uint8Array[] = [];
  #skip: number;
  #bytes = 0;
  #more = false;
  /** The first batch: the others are of its state or a later one. */
  #first: Batch | null = null;

  constructor(reading: Reading) {
    this.#reading = reading;
    this.#skip = reading.from.skip ?? 0;
  }

  /** Takes rows of a batch and releases it. Returns whether there are enough, and one more that is left out. */
  take(batch: Batch): boolean {
    const { passes, size } = this.#reading;
    this.#first ??= batch;
    try {
      for (const row of rowsOf(batch)) {
        if (!passes(row)) continue;
        if (this.#skip > 0) this.#skip--;
        else if (this.#documents.length >= size.rows || this.#bytes >= size.bytes) return (this.#more = true);
        else {
          this.#documents.push(Uint8Array.from(row));
          this.#bytes += ROW_HEAD_BYTES + row.length;
        }
      }
      return false;
    } finally {
      batch.release();
    }
  }

  /** The rows as a batch. `end`: the batch that was read last. */
  toBatch(slots: Slots, { readBy }: Batch): Batch {
    const slot = slots.take(this.#bytes);
    const bytes = slot.bytes();
    let length = 0;
    for (const document of this.#documents) {
      const at = beginRow(bytes, length);
      bytes.set(document, at);
      length = at + document.length;
    }
    const last = this.#documents.at(-1);
    const { asOf, identity } = this.#first ?? {};
    return {
      ...{ slot, start: 0, length, rows: this.#documents.length },
      last: last ? bookmarkOf(last, this.#reading.plan) : null,
      more: this.#more,
      ...(asOf !== undefined && { asOf }),
      ...(identity !== undefined && { identity }),
      ...(readBy !== undefined && { readBy }),
      release: () => slot.release(),
    };
  }
}
