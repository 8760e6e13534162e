import { CommandRefusal } from '../../base/errors.ts';
import type { FilledRow, HowToFill, OwnedCollection } from '../collection.ts';

/** The number of concurrent inserts. One is written to disk while the next one is in transit. */
const PARALLEL = 2;

/** See OwnedCollection.fill. Rows appear as they come; those that are replaced are removed first. */
export async function fillByInserts(
  store: Pick<OwnedCollection, 'insert' | 'clear'>,
  rows: AsyncIterable<readonly FilledRow[]>,
  how: HowToFill,
): Promise<void> {
  if (how.onRemoved) how.onRemoved(await store.clear(how.signal));
  await insertAll(store, rows, how);
}

/**
 * Inserts batches of rows, up to PARALLEL of them at the same time; with `replace` one, so that a later row replaces an
 * earlier one. Within a few thousand rows of each other, `skip` and `fail` may keep either of two with the same id. When
 * `rows` rejects, those that came before are written. Rejects with the first error of the store, else with that of `rows`.
 */
export async function insertAll(
  store: Pick<OwnedCollection, 'insert'>,
  rows: AsyncIterable<readonly FilledRow[]>,
  how: Pick<HowToFill, 'onConflict' | 'refuse' | 'onWritten'>,
): Promise<void> {
  const inserts = new Inserts(store, how);
  try {
    for await (const batch of rows) if (batch.length > 0) await inserts.add(batch);
  } finally {
    await inserts.end();
  }
}

/** Adds the indexes of an import that are missing. */
export async function addIndexes(
  store: Pick<OwnedCollection, 'addIndex'>,
  { indexes = [], onIndex, signal }: HowToFill,
): Promise<void> {
  for (const paths of indexes)
    try {
      onIndex?.(await store.addIndex(paths, () => undefined, signal));
    } catch (error) {
      if (!(error instanceof CommandRefusal)) throw error;
      onIndex?.(error);
    }
}

class Inserts {
  readonly #store: Pick<OwnedCollection, 'insert'>;
  readonly #how: Pick<HowToFill, 'onConflict' | 'refuse' | 'onWritten'>;
  readonly #pending = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | null = null;

  constructor(
    store: Pick<OwnedCollection, 'insert'>,
    how: Pick<HowToFill, 'onConflict' | 'refuse' | 'onWritten'>,
  ) {
    this.#store = store;
    this.#how = how;
  }

  /** Resolves when the next batch may come. */
  async add(batch: readonly FilledRow[]): Promise<void> {
    const most = this.#how.onConflict === 'replace' ? 1 : PARALLEL;
    while (this.#pending.size >= most) await Promise.race(this.#pending);
    this.#throwFailure();
    const written = this.#write(batch).finally(() => this.#pending.delete(written));
    this.#pending.add(written);
  }

  async end(): Promise<void> {
    await Promise.all(this.#pending);
    this.#throwFailure();
  }

  /** Never rejects: the next call throws the error. */
  async #write(batch: readonly FilledRow[]): Promise<void> {
    const { onConflict, refuse, onWritten } = this.#how;
    try {
      const result = await this.#store.insert(
        batch.map(({ item }) => item),
        onConflict,
      );
      for (const { index, reason } of result.refused) refuse(batch[index]?.at ?? 0, reason);
      onWritten(result);
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
