import type { ChunkEntry, EditionHead } from '../base/edition/head.ts';
import type { TableSchema } from './delta/schema.ts';

/**
 * What an edition is to programs that do not know sluice: a version of a table, whose files are the edition's chunks. The
 * Delta table is one (delta/log.ts). The builder calls it when the record has the edition, so all files of it are stored.
 */
export interface Face {
  /**
   * Makes the edition the newest version of the table. `previous`: the edition that was kept before it, if there is one,
   * whose version is made up for when nothing published it. Does nothing when the table has this version, so it is called
   * for the newest edition by each attempt, also by several at once. Rejects with what `ObjectStore` rejects with, and
   * with ForeignVersionError (delta/log.ts) when another program wrote into the table.
   */
  commit(edition: TableEdition, previous: TableEdition | null): Promise<void>;
}

/** An edition with chunks of Parquet. */
export interface TableEdition {
  readonly head: EditionHead;
  /** All of its chunks in order. */
  readonly chunks: readonly ChunkEntry[];
  /** Its `name` is the head's `schema`. */
  readonly schema: TableSchema;
}
