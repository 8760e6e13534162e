import type { Slots } from '../slots.ts';
import type { Connection } from './connection.ts';
import type { Core } from './core.ts';
import type { ChangeLog } from './log.ts';

/** What a set is, beyond its rows. */
export interface SetShape {
  /** The name in the file. */
  readonly name: string;
  /** The name for messages. */
  readonly label: string;
  /** The paths of indexes that the set must have. */
  readonly indexes: readonly (readonly string[])[];
  /** Whether its changes are noted for readers. */
  readonly hasChanges: boolean;
  /** Why the set refuses a row, beyond what every set does. Null: it does not. */
  readonly refusalOf: (document: Uint8Array) => string | null;
}

export interface OpenSetOptions {
  readonly slots: Slots;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
  /** A clock in milliseconds. */
  readonly now: () => number;
  readonly onWarning: (message: string) => void;
}

type Shared = Pick<Core, 'sets' | 'looks' | 'writes' | 'maintenance' | 'reader' | 'watch'>;

/** A set, and what the parts of an open set share. */
export interface SetParts extends SetShape, OpenSetOptions, Shared {
  readonly connection: Connection;
  /** Null: no one reads the changes of the set. */
  readonly log: ChangeLog | null;
  /** Frees the space of discarded tables. */
  readonly sweep: () => Promise<void>;
  /** What places are made with: the epoch of the file's history and the secret of sealed places. */
  readonly epoch: () => string;
  readonly secret: Uint8Array;
}
