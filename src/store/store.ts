import type { Identity, PointInTime } from './bookmark.ts';
import type { Declaration, Found, OwnedCollection } from './collection.ts';
import type { FileStore } from './files.ts';
import type { Records, RecordDeclaration } from './records.ts';

export type * from './collection.ts';
export type * from './plan.ts';
export type { Identity, PointInTime };

export interface Store {
  readonly name: 'mongodb' | 'sqlite';
  /**
   * Whether the store itself keeps the declarations of the resources that `make` makes, so that every start serves them
   * under their names. Otherwise the operator's settings name its collections, see Declaration.
   */
  readonly keepsDeclarations: boolean;
  /** Whether no process that had the store open has ended in order yet: the first start makes it. Absent: no. */
  readonly isNew?: boolean;
  /** The collection that the store was opened with. test/contracts/store.contract.ts runs on both stores. */
  readonly items: OwnedCollection;
  readonly files: FileStore;
  /**
   * Opens an existing collection. Also resolves while the store does not answer: each method then rejects
   * with `store-unavailable`. Rejects with an error for the operator when the collection cannot be served.
   */
  open(declaration: Declaration): Promise<OwnedCollection>;
  /**
   * Opens a collection that this server itself writes. Also resolves while the store does not answer, and when the
   * collection is one of another program: each method then rejects with the reason.
   */
  records(declaration: RecordDeclaration): Promise<Records>;
  /**
   * Opens a collection for a command that writes it. Makes it when it is missing. Calls `report` with a line for each
   * thing that was made. Rejects with CommandRefusal when it cannot be a resource.
   */
  make(declaration: Declaration, report: (line: string) => void): Promise<OwnedCollection>;
  /**
   * The collections of a database that the store has, also those that cannot be served. Absent: of its own database.
   */
  list(database?: string): Promise<readonly Found[]>;
  /** The resources whose declarations the store itself keeps, with those that are not served yet. */
  declared(): Promise<readonly Declaration[]>;
  /**
   * Returns the reads of items that currently fail although others work, one sentence each. Rejects with AppError
   * `store-unavailable` when the store does not answer, and with `store-unfit` and the reason when no item can be
   * read.
   */
  ping(): Promise<readonly string[]>;
  /** The size of the write-ahead log beside the store's file. Absent: it has none here. */
  logBytes?(): number;
  close(): Promise<void>;
}
