import type { Identity, PointInTime } from './bookmark.ts';
import type { Declaration, Listing, OwnedCollection } from './collection.ts';
import type { FileStore } from './files.ts';
import type { Records, RecordDeclaration } from './records.ts';

export type * from './collection.ts';
export type * from './plan.ts';
export type { Identity, PointInTime };

/** What holds the rows of resources, the server's own records, and files. test/contracts/ runs on both stores. */
export interface Store {
  readonly name: 'mongodb' | 'sqlite';
  readonly files: FileStore;
  /**
   * Opens a collection.
   *
   * To `read` it (the default), it must exist, or its declaration must say how it is made; the embedded store makes any.
   * Also resolves while the store does not answer: each method then rejects with `store-unavailable`. Rejects with an
   * error for the operator when the collection cannot be served.
   *
   * A command that writes it may `make` it when it is missing. Rejects with CommandRefusal when it cannot be a resource.
   */
  open(declaration: Declaration, may?: 'read' | 'make'): Promise<OwnedCollection>;
  /**
   * Opens a collection that this server itself writes. Also resolves while the store does not answer, and when the
   * collection is one of another program: each method then rejects with the reason.
   */
  records(declaration: RecordDeclaration): Promise<Records>;
  /**
   * The collections of a database that the store has, also those that cannot be served. Absent: of its own database.
   */
  list(database?: string): Promise<Listing>;
  /**
   * Returns the reads of open collections that currently fail although others work, one sentence each. Rejects with
   * AppError `store-unavailable` when the store does not answer, and with `store-unfit` and the reason when a collection
   * cannot be read at all.
   */
  ping(): Promise<readonly string[]>;
  close(): Promise<void>;
  /**
   * Whether the rights of this server permit it to write records, and files, if they lie in the store. Absent: they do. True
   * while the store does not answer.
   */
  mayWrite?(declaration: Pick<RecordDeclaration, 'collection'>): Promise<boolean>;
  /** The size of the write-ahead log beside the store's file, in bytes. Absent: it has none here. */
  size?(): number;
}
